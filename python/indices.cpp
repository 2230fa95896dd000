// SPDX-License-Identifier: Apache-2.0
// An index of a store: built, saved, opened, searched by vectors or by rows.
#include <algorithm>

#include "fungi/retrieve/outside.h"
#include "python/watch.h"

namespace fungi::python {
namespace {

FeatureIndex build(const Store& store, const std::string& kind, const std::string& features,
                   size_t pca, const std::string& metric, const nb::dict& tuning,
                   unsigned threads, nb::object progress) {
  Watch watch(std::move(progress));
  FeatureIndexOptions options{.features = features, .pca = pca};
  options.index.kind = parse_index_kind(kind);
  options.index.metric = parse_metric(metric);
  if (tuning.contains("links")) options.index.links = nb::cast<size_t>(tuning["links"]);
  if (tuning.contains("build_effort"))
    options.index.build_effort = nb::cast<size_t>(tuning["build_effort"]);
  if (tuning.contains("lists")) options.index.lists = nb::cast<size_t>(tuning["lists"]);
  if (tuning.contains("seed")) options.index.seed = nb::cast<uint64_t>(tuning["seed"]);
  options.index.progress = watch.ending_reporter("index");
  std::optional<FeatureIndex> built;
  watch.run([&] {
    Pool pool(threads_or_default(threads));
    built.emplace(FeatureIndex::build(store, options, pool));
  });
  return std::move(*built);
}

// Rows as Store.load() gives them, or vectors behind the index's own PCA.
nb::tuple search(const FeatureIndex& index, const Array<float>& queries, size_t k,
                 const SearchOptions& options, unsigned threads) {
  const View<const float> given = view_of(queries);
  const Reduction& reduction = index.reduction();
  if (given.cols != reduction.input_width() && given.cols != reduction.output_width())
    raise("InputError",
          "expected rows of " + std::to_string(reduction.input_width()) + " columns (" +
              reduction.features() + "), found " + std::to_string(given.cols),
          "queries", "give what Extractor.transform() or Store.load() gives for these features");
  Watch watch;
  Neighbours found;
  watch.run([&] {
    Pool pool(threads_or_default(threads));
    k = std::min(k, index.index().rows());
    if (given.cols == reduction.output_width())
      found = index.index().search(given, k, pool, options);
    else
      found = index.index().search(reduction.apply(copy_of(given), pool), k, pool, options);
  });
  return nb::make_tuple(to_numpy(std::move(found.index)), to_numpy(std::move(found.value)));
}

nb::dict facts(const FeatureIndex& opened) {
  const Index& index = opened.index();
  const Reduction& r = opened.reduction();
  nb::dict d;
  d["kind"] = to_string(index.kind());
  d["metric"] = to_string(index.metric());
  d["features"] = r.features();
  d["rows"] = index.rows();
  d["columns"] = index.width();
  d["input_columns"] = r.input_width();
  d["pca_applied"] = r.pca().has_value();
  d["model"] = to_str(r.origin().spec.model_path);
  return d;
}

}  // namespace

void add_indices(nb::module_& m) {
  nb::class_<SearchOptions>(m, "SearchOptions")
      .def("__init__",
           [](SearchOptions* o, size_t effort, size_t probes) {
             new (o) SearchOptions{.probes = probes, .effort = effort};
           },
           nb::arg("effort") = 0, nb::arg("probes") = 0);
  nb::class_<FeatureIndex>(m, "FeatureIndex")
      .def_static("build", build, nb::arg("store"), nb::arg("kind"), nb::arg("features"),
                  nb::arg("pca"), nb::arg("metric"), nb::arg("tuning"), nb::arg("threads"),
                  nb::arg("progress").none())
      .def_static("open",
                  [](const std::filesystem::path& folder) {
                    const nb::gil_scoped_release free;
                    return FeatureIndex::open(folder);
                  })
      .def("save", &FeatureIndex::save, nb::call_guard<nb::gil_scoped_release>())
      .def_static("require_can_save", &FeatureIndex::require_can_save)
      .def("facts", facts)
      .def("id", [](const FeatureIndex& i, size_t row) { return to_str(i.id(row)); })
      .def("label", &FeatureIndex::label)
      .def("class_name", [](const FeatureIndex& i, size_t row) { return to_str(i.class_name(row)); })
      .def("find", [](const FeatureIndex& i, nb::handle id) { return i.find(from_str(id)); })
      .def("search", search, nb::arg("queries"), nb::arg("k"), nb::arg("options"),
           nb::arg("threads"))
      .def(
          "recall",
          [](const FeatureIndex& i, size_t k, size_t sample, const SearchOptions& options,
             unsigned threads) {
            Watch watch;
            double found = 0;
            watch.run([&] {
              Pool pool(threads_or_default(threads));
              found = i.recall(k, sample, pool, options);
            });
            return found;
          },
          nb::arg("k"), nb::arg("sample"), nb::arg("options"), nb::arg("threads"));
  m.def("require_outside", [](const Store& store, const std::filesystem::path& out) {
    require_outside(store, out);
  });
}

}  // namespace fungi::python
