// SPDX-License-Identifier: Apache-2.0
// pca, project, export and report: files made of stores.
#include <algorithm>

#include "fungi/base/atomic_file.h"
#include "fungi/retrieve/outside.h"
#include "fungi/store/export.h"
#include "python/settings.h"
#include "python/watch.h"

namespace fungi::python {
namespace {

namespace fs = std::filesystem;

nb::dict pca_of(const std::vector<fs::path>& stores, const fs::path& output,
                const std::string& features, size_t dim, const fs::path& apply, unsigned threads) {
  Watch watch;
  PcaFolder made;
  watch.run([&] {
    Pool pool(threads_or_default(threads));
    made = write_pca_folder(stores, output, {.features = features, .dim = dim, .apply = apply},
                            pool);
  });
  const Reduction& r = made.reduction;
  nb::dict d;
  d["features"] = r.features();
  d["input_columns"] = r.input_width();
  d["dim"] = r.output_width();
  d["fitted_rows"] = r.pca()->fitted_rows();
  d["explained_variance_share"] = made.explained_share;
  nb::list files;
  for (const PcaFolder::Vectors& one : made.files)
    files.append(nb::make_tuple(to_str(one.store.string()), to_str(one.file.string()), one.rows,
                                r.output_width()));
  d["files"] = files;
  return d;
}

nb::dict project_of(const Store& from, const fs::path& output, const std::string& kind,
                    size_t rows, std::optional<uint64_t> seed, std::optional<Array<float>> matrix,
                    bool keep_factors, bool prune, bool overwrite, unsigned threads,
                    nb::object progress) {
  require_outside(from, output);
  ReprojectOptions options{.kind = parse_projection(kind),
                           .rows = rows,
                           .seed = seed,
                           .keep_factors = keep_factors,
                           .overwrite = overwrite,
                           .prune = prune};
  if (matrix) options.matrix = copy_of(view_of(*matrix));
  Watch watch(std::move(progress));
  StoreTotals totals;
  size_t computed = 0;
  watch.run([&] {
    Pool pool(threads_or_default(threads));
    ExtractRun run;
    run.stop = watch.stop();
    run.rewrite_progress = watch.reporter("rewrite");
    run.progress = [&](const ExtractProgress& p) {
      watch.report("project", p.done, p.total, p.failed);
      computed = p.done;
    };
    totals = project_store(from, output, std::move(options), pool, run);
  });
  nb::dict d;
  d["store"] = to_str(output.string());
  d["rows"] = totals.rows;
  d["failed"] = totals.failed;
  d["missing"] = totals.missing;
  d["complete"] = totals.complete;
  d["computed"] = computed;
  d["dropped"] = totals.complete ? totals.dropped : 0;
  return d;
}

nb::list export_of(const Store& store, const fs::path& output, const std::string& format,
                   const std::string& split, const std::string& layer) {
  require_outside(store, output);
  std::vector<fs::path> files{output};
  {
    const nb::gil_scoped_release free;
    if (format == "npz")
      export_npz(store, output);
    else
      files = export_hdf5(
          store, output,
          {.split = split, .layer = layer.empty() ? dataset_name(store.manifest().spec) : layer});
  }
  nb::list list;
  for (const fs::path& file : files) list.append(to_str(file.string()));
  return list;
}

nb::list report_of(const Store& train, const Store& test, const fs::path& output,
                   const fs::path& train_pictures, const fs::path& test_pictures,
                   const nb::dict& how, const std::string& test_split, std::optional<size_t> k,
                   size_t queries, size_t pca,
                   const std::string& reduce,
                   const std::vector<std::tuple<uint32_t, fs::path, fs::path>>& seeded,
                   size_t memory, unsigned threads) {
  for (const Store* store : {&train, &test}) require_outside(*store, output);
  require_labels(train);
  require_labels(test);
  const fs::path out = behind_links(output);
  std::vector<std::string> notes;
  const Voters usual = voters(k, train.rows());
  if (!usual.note.empty()) notes.push_back(usual.note);
  std::vector<ReportDraw> draws;
  for (const auto& [seed, of_train, of_test] : seeded) {
    for (const fs::path& folder : {of_train, of_test}) require_outside(Store::open(folder), output);
    draws.push_back({seed, of_train, of_test});
  }
  const ReportOptions options{.k = usual.k,
                              .pca = pca,
                              .reduce = parse_reduce(reduce),
                              .queries = queries,
                              .memory_limit = memory ? memory : default_memory_limit(),
                              .draws = draws};
  const DatasetOptions stated = dataset_options(how);
  const auto open_like = [&](const Store& rows, const fs::path& data,
                             const std::string& split) -> std::unique_ptr<Dataset> {
    if (data.empty()) return nullptr;
    DatasetOptions looks = stated;
    looks.split = split;
    if (const StoreSpec& spec = rows.manifest().spec; has_settings(spec)) {
      const DatasetOptions looked =
          data_options(read_settings(spec, rows.folder().string()).input);
      looks.samples = looked.samples, looks.seconds = looked.seconds, looks.window = looked.window;
    }
    return open_dataset(data, looks);
  };
  Watch watch;
  watch.run([&] {
    { const AtomicFile possible(out); }  // an hour later it is too late to say that it is not
    const auto of_train = open_like(train, train_pictures, stated.split),
               of_test = open_like(test, test_pictures, test_split);
    Pool pool(threads_or_default(threads));
    for (const std::string& note : report_notes(train, test, of_train.get(), of_test.get()))
      notes.push_back(note);
    const std::string page =
        make_report(train, test, of_train.get(), of_test.get(), options, pool);
    AtomicFile file(out);
    file.write(std::as_bytes(std::span(page)));
    file.finish();
  });
  return worded_list(notes);
}

}  // namespace

void add_works(nb::module_& m) {
  m.def("pca", pca_of, nb::arg("stores"), nb::arg("output"), nb::arg("features"), nb::arg("dim"),
        nb::arg("apply"), nb::arg("threads"));
  m.def("project", project_of, nb::arg("store"), nb::arg("output"), nb::arg("kind"),
        nb::arg("rows"), nb::arg("seed").none(), nb::arg("matrix").none(), nb::arg("keep_factors"),
        nb::arg("prune"), nb::arg("overwrite"), nb::arg("threads"), nb::arg("progress").none());
  m.def("export", export_of, nb::arg("store"), nb::arg("output"), nb::arg("format"),
        nb::arg("split"), nb::arg("layer"));
  m.def("report", report_of, nb::arg("train"), nb::arg("test"), nb::arg("output"),
        nb::arg("train_pictures"), nb::arg("test_pictures"), nb::arg("how"),
        nb::arg("test_split"), nb::arg("k").none(),
        nb::arg("queries"), nb::arg("pca"), nb::arg("reduce"), nb::arg("draws"),
        nb::arg("memory"), nb::arg("threads"));
}

}  // namespace fungi::python
