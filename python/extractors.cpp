// SPDX-License-Identifier: Apache-2.0
// An extractor that Python holds: shared by its threads, and rebuilt in a forked process, whose
// pool has no threads any more.
#include <unistd.h>

#include <mutex>

#include "fungi/kernel/kernel.h"

#include "python/samples.h"
#include "python/settings.h"
#include "python/watch.h"

namespace fungi::python {
namespace {

class PythonExtractor {
 public:
  // like: a store, whose settings hold for all that is left out, whose model is opened where none is
  // given, and whose heads, negatives and centres are taken.
  PythonExtractor(nb::handle model, const nb::dict& stated, const std::filesystem::path& like,
                  unsigned threads)
      : threads_(threads_or_default(threads)) {
    ExtractionSettings settings;
    const auto followed = begun_store(like);
    if (!like.empty()) settings = followed_settings(like);
    Model where = settings.model;
    if (!model.is_none()) where = model_of(model);
    if (!like.empty() && std::holds_alternative<std::filesystem::path>(where))
      require_followed_model(like, std::get<std::filesystem::path>(where));
    apply(stated, settings);
    follow_precision(settings.backbone, followed ? &*followed : nullptr, nullptr);
    options_ = std::move(settings.extractor);
    const BackboneOptions wanted = backbone_for(options_, settings.backbone);
    Watch watch;
    watch.run([&] {
      if (followed) state_ = extraction_record(*followed, like).state;
      Pool opening(threads_);
      backbone_.emplace(open_backbone(where, wanted, opening));
      here();
    });
  }
  PythonExtractor(const PythonExtractor&) = delete;
  PythonExtractor& operator=(const PythonExtractor&) = delete;
  ~PythonExtractor() {
    if (pid_ == getpid()) return;
    (void)extractor_.release();  // their threads are in another process: nothing to wait for
    (void)pool_.release();
  }

  bool fit(Dataset& support, nb::object progress) {
    Watch watch(std::move(progress));
    bool all = false;
    watch.run([&] {
      Extractor& e = here();
      listen(support, e);
      all = e.fit(support, watch.reporter("support"), watch.stop());
      keep_state(e);
    });
    return all;
  }

  nb::tuple extract(Dataset& data, bool normalise, nb::object progress) {
    Watch watch(std::move(progress));
    std::vector<StoreFailure> failures;
    FeatureSet set;
    watch.run([&] {
      const size_t total = data.size();
      const MemoryRun run{
          .normalise = normalise,
          .progress = [&](size_t done, size_t failed) { watch.report("extract", done, total, failed); },
          .stop = watch.stop()};
      Extractor& e = here();
      listen(data, e);
      set = extract_to_memory(e, data, &failures, run);
    });
    nb::list failed;
    for (const StoreFailure& f : failures)
      failed.append(nb::make_tuple(f.position, to_str(data.id(f.position)), f.stage,
                                   to_str(worded(f.reason)), to_str(worded(f.hint))));
    return nb::make_tuple(to_numpy(std::move(set.features)), failed, to_list(set.ids),
                          to_numpy(std::move(set.labels)), to_list(set.classes));
  }

  nb::list state() {
    std::vector<NamedMatrix> found;
    {
      const nb::gil_scoped_release free;
      found = here().state();
    }
    nb::list list;
    for (NamedMatrix& m : found)
      list.append(nb::make_tuple(m.name, to_numpy(std::move(m.values))));
    return list;
  }
  void restore(nb::list given) {
    std::vector<NamedMatrix> state;
    for (nb::handle one : given)
      state.push_back({nb::cast<std::string>(one[0]),
                       fungi::copy_of(view_of(nb::cast<Array<float>>(one[1])))});
    const nb::gil_scoped_release free;
    Extractor& e = here();
    e.restore(state);
    keep_state(e);
  }

  nb::list blocks() {
    nb::list list;
    for (const StoreBlock& b : here().blocks())
      if (is_feature(b)) list.append(nb::make_tuple(b.name, b.width));
    return list;
  }
  // A data set as the extractor looks at it.
  std::unique_ptr<Dataset> open(const std::filesystem::path& path) {
    const nb::gil_scoped_release free;
    DatasetOptions looks = here().data();
    looks.window = options_.sound.window;
    return open_dataset(path, looks);
  }
  bool ready() {
    const nb::gil_scoped_release free;
    return here().ready();
  }
  std::vector<std::string> notes() { return here().notes(); }
  size_t views() { return here().views_per_sample(); }
  SampleKind kind() const { return sample_kind(backbone_->architecture()); }
  const Backbone& backbone() const { return *backbone_; }
  Extractor& shared() { return here(); }
  unsigned threads() const { return threads_; }

 private:
  static void listen(Dataset& data, const Extractor& extractor) {
    if (auto* held = dynamic_cast<Samples*>(&data)) held->listen(extractor.data().seconds);
  }
  Extractor& here() {
    const std::lock_guard lock(*changing_);
    if (extractor_ && pid_ == getpid()) return *extractor_;
    (void)extractor_.release();
    (void)pool_.release();
    pool_ = std::make_unique<Pool>(threads_);
    extractor_ = std::make_unique<Extractor>(*backbone_, copy_of(options_), *pool_);
    if (!state_.empty()) extractor_->restore(state_);
    pid_ = getpid();
    return *extractor_;
  }
  void keep_state(const Extractor& e) {
    std::vector<NamedMatrix> found = e.state();
    const std::lock_guard lock(*changing_);
    state_ = std::move(found);
  }

  unsigned threads_;
  ExtractorOptions options_;
  std::optional<Backbone> backbone_;
  std::vector<NamedMatrix> state_;  // what a forked process goes on with
  std::unique_ptr<std::mutex> changing_ = std::make_unique<std::mutex>();
  std::unique_ptr<Pool> pool_;  // before what uses it
  std::unique_ptr<Extractor> extractor_;
  pid_t pid_ = 0;
};

}  // namespace

void add_extractors(nb::module_& m) {
  nb::class_<Dataset>(m, "Dataset")
      .def("__len__", &Dataset::size)
      .def("ids", [](const Dataset& d) {
        nb::list ids;
        for (size_t i = 0; i < d.size(); ++i) ids.append(to_str(d.id(i)));
        return ids;
      })
      .def("labels", [](const Dataset& d) {
        std::vector<int64_t> labels;
        for (size_t i = 0; i < d.size(); ++i) labels.push_back(d.label(i));
        return to_numpy(std::move(labels));
      })
      .def("classes", [](const Dataset& d) { return to_list(d.class_names()); })
      .def("notes", [](const Dataset& d) { return worded_list(d.notes()); })
      .def("read", [](const Dataset& d, size_t i) {
        const std::vector<uint8_t> bytes = d.read(i);
        return nb::bytes(bytes.data(), bytes.size());
      })
      .def("image", [](const Dataset& d, size_t i) {
        Image image = d.image(i);
        auto* kept = new std::vector<uint8_t>(std::move(image.rgb));
        const nb::capsule owner(
            kept, [](void* p) noexcept { delete static_cast<std::vector<uint8_t>*>(p); });
        const size_t shape[3] = {image.height, image.width, 3};
        return nb::cast(nb::ndarray<nb::numpy, uint8_t>(kept->data(), 3, shape, owner));
      });
  nb::class_<Samples, Dataset>(m, "Samples")
      .def("__init__",
           [](Samples* self, nb::list items, nb::list ids, const std::string& kind) {
             new (self) Samples(items, ids, parse_samples(kind));
           },
           nb::arg("items"), nb::arg("ids"), nb::arg("kind"), nb::keep_alive<1, 2>())
      .def("set_labels", &Samples::set_labels, nb::arg("labels"), nb::arg("classes"));
  nb::class_<PythonExtractor>(m, "Extractor")
      .def(nb::init<nb::handle, const nb::dict&, const std::filesystem::path&, unsigned>(),
           nb::arg("model").none(), nb::arg("stated"), nb::arg("like"), nb::arg("threads"))
      .def("fit", &PythonExtractor::fit, nb::arg("support"), nb::arg("progress").none())
      .def("extract", &PythonExtractor::extract, nb::arg("data"), nb::arg("normalise"),
           nb::arg("progress").none())
      .def("open", &PythonExtractor::open, nb::arg("path"))
      .def("state", &PythonExtractor::state)
      .def("restore", &PythonExtractor::restore)
      .def("blocks", &PythonExtractor::blocks)
      .def("ready", &PythonExtractor::ready)
      .def("notes", [](PythonExtractor& e) { return worded_list(e.notes()); })
      .def("views", &PythonExtractor::views)
      .def("kind", [](const PythonExtractor& e) { return to_string(e.kind()); })
      .def("width",
           [](const PythonExtractor& e) { return e.backbone().architecture().embedding_width; })
      .def("sha256",
           [](const PythonExtractor& e) {
             const nb::gil_scoped_release free;
             return e.backbone().sha256();
           })
      .def("precision",
           [](const PythonExtractor& e) { return to_string(*e.backbone().options().precision); })
      .def("kernel",
           [](const PythonExtractor& e) {
             const BackboneOptions& o = e.backbone().options();
             return std::string(kernel::kernel_for(o.isa, *o.precision).name);
           })
      .def("threads", &PythonExtractor::threads);
}

}  // namespace fungi::python
