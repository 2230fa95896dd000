// SPDX-License-Identifier: Apache-2.0
// segment: pictures labelled by the patches of others; a whole evaluation, and new pictures by the
// memory that it left.
#include <nlohmann/json.hpp>

#include "fungi/base/atomic_file.h"
#include "fungi/input/png_write.h"
#include "python/settings.h"
#include "python/watch.h"

namespace fungi::python {
namespace {

namespace fs = std::filesystem;

// What is stated, by the names of fungi.segment(); what is left out keeps its default.
class Stated {
 public:
  explicit Stated(const nb::dict& stated) : stated_(stated) {}
  template <class T>
  bool read(const char* name, T& into) const {
    if (!stated_.contains(name)) return false;
    into = nb::cast<T>(stated_[name]);
    return true;
  }
  std::string text(const char* name) const {
    return stated_.contains(name) ? from_str(stated_[name]) : std::string();
  }

 private:
  const nb::dict& stated_;
};

PatchFeatureOptions feature_options(const Stated& stated) {
  PatchFeatureOptions o;
  stated.read("height", o.height);
  stated.read("width", o.width);
  stated.read("objectives", o.objective);
  if (o.objective == "none") o.objective.clear();
  if (const std::string preset = stated.text("preset"); !preset.empty())
    o.preset = parse_preset(preset);
  if (const std::string kind = stated.text("projection"); !kind.empty())
    o.projection = parse_projection(kind);
  stated.read("projection_dim", o.projection_rows);
  stated.read("seed", o.seed);
  return o;
}

BackboneOptions backbone_options(const Stated& stated) {
  BackboneOptions b;
  stated.read("facts", b.stated_facts);
  for (const auto& [key, value] : b.stated_facts) require_stated_key(key);
  stated.read("layer", b.layer);
  b.precision.reset();
  if (const std::string said = stated.text("precision"); !said.empty() && said != "auto")
    b.precision = parse_precision(said);
  return b;
}

SegmentOptions segment_options(const Stated& stated) {
  bool few = false;
  stated.read("few_shot", few);
  SegmentOptions o = few ? SegmentOptions::few_shot() : SegmentOptions();
  stated.read("memory", o.memory);
  stated.read("epochs", o.epochs);
  stated.read("images", o.images);
  stated.read("k", o.k);
  stated.read("temperature", o.temperature);
  stated.read("lists", o.search.lists);
  stated.read("probes", o.search.probes);
  stated.read("rerank", o.search.rerank);
  if (const std::string search = stated.text("search"); !search.empty())
    o.search.search = parse_bank_search(search);
  return o;
}

MaskDatasetOptions mask_options(const Stated& stated, MaskDatasetOptions::Role role) {
  MaskDatasetOptions o;
  o.role = role;
  o.split = stated.text(role == MaskDatasetOptions::Role::train ? "split" : "test_split");
  if (const std::string layout = stated.text("layout"); !layout.empty())
    o.layout = parse_mask_layout(layout);
  if (const std::string names = stated.text("class_names"); !names.empty())
    o.class_names = read_class_names(names);
  if (int ignore = 0; stated.read("ignore", ignore)) o.ignore = ignore;
  return o;
}

nb::list failures(const std::vector<BankFailure>& failed, const char* stage) {
  nb::list list;
  for (const BankFailure& f : failed)
    list.append(nb::make_tuple(to_str(f.id), stage, to_str(worded(f.reason)),
                               to_str(worded(f.hint))));
  return list;
}

nb::list scores(const Segmenter& segmenter, const SegmentationResult& result) {
  nb::list list;
  for (size_t i = 0; i < result.kinds.size(); ++i) {
    const SegmentationScore& s = result.scores[i];
    nb::dict one, classes;
    for (size_t c = 0; c < s.iou.size(); ++c) {
      nb::dict of_class;
      of_class["iou"] = s.iou[c];
      of_class["pixels"] = s.pixels[c];
      classes[to_str(result.class_names[c])] = of_class;
    }
    Matrix<uint64_t> confusion(s.iou.size(), s.iou.size());
    for (size_t truth = 0; truth < confusion.rows(); ++truth)
      for (size_t c = 0; c < confusion.cols(); ++c)
        confusion(truth, c) = result.confusions[i](truth, c);
    one["features"] = result.kinds[i];
    one["columns"] = segmenter.bank(i).spec().width;
    one["miou"] = s.miou;
    one["miou_present"] = s.present;
    one["miou_hungarian"] = s.hungarian;
    one["pixel_accuracy"] = s.pixel_accuracy;
    one["recall"] = result.recall[i];
    one["exact_search"] = segmenter.bank(i).is_exact();
    one["classes"] = classes;
    one["confusion"] = to_numpy(std::move(confusion));
    list.append(one);
  }
  return list;
}

nb::object per_picture(const SegmentationResult& result) {
  Matrix<double> all(result.pictures.size(), result.kinds.size());
  for (size_t i = 0; i < all.rows(); ++i)
    std::copy(result.pictures[i].begin(), result.pictures[i].end(), all.row(i));
  return to_numpy(std::move(all));
}

nb::dict test(const fs::path& train_path, const fs::path& test_path, const fs::path& output,
              nb::handle model, const nb::dict& options, bool page, size_t shown, unsigned threads,
              nb::object progress) {
  const Stated stated(options);
  PatchFeatureOptions looks = feature_options(stated);
  const SegmentOptions how = segment_options(stated);
  BackboneOptions backbone = backbone_options(stated);
  SegmentationTest measured;
  stated.read("at_picture_size", measured.at_picture_size);
  stated.read("masks", measured.write_masks);
  const fs::path where = nb::cast<fs::path>(model);
  const MaskDatasetOptions of_train = mask_options(stated, MaskDatasetOptions::Role::train),
                           of_test = mask_options(stated, MaskDatasetOptions::Role::test);
  Watch watch(std::move(progress));
  const SegmentHooks hooks{
      .progress = [&](const std::string& stage, size_t done, size_t total,
                      size_t failed) { watch.report(stage, done, total, failed); },
      .stop = watch.stop()};
  std::optional<Segmenter> segmenter;
  SegmentationResult result;
  std::vector<std::string> notes;
  watch.run([&] {
    const auto train = open_mask_dataset(train_path, of_train),
               data = open_mask_dataset(test_path, of_test);
    for (const MaskDataset* one : {train.get(), data.get()})
      notes.insert(notes.end(), one->notes().begin(), one->notes().end());
    Pool pool(threads_or_default(threads));
    PatchFeatures features = PatchFeatures::open(where, std::move(looks), pool, std::move(backbone));
    train->find_classes(watch.ending_reporter("masks"));
    data->use_classes(*train);
    segmenter =
        Segmenter::build(std::move(features), *train, output / "bank", how, pool, hooks);
    if (!segmenter) return;
    result = test_segmentation(*segmenter, *data, output, measured, pool, hooks);
    if (result.complete && page)
      write_file_atomically(output / "index.html",
                            make_segment_page(*segmenter, *data, result, {.pictures = shown}, pool));
  });
  nb::dict d;
  d["complete"] = segmenter && result.complete;
  if (!segmenter || !result.complete) return d;
  for (const std::string& note : segmenter->notes()) notes.push_back(note);
  d["results"] = scores(*segmenter, result);
  d["test_pictures"] = result.ids.size();
  d["rows"] = segmenter->bank(0).rows();
  d["settings"] = to_python(nlohmann::json::parse(segmenter->settings()));
  d["failed_train"] = failures(segmenter->failed(), "train");
  d["failed_test"] = failures(result.failed, "test");
  d["notes"] = worded_list(notes);
  d["ids"] = to_list(result.ids);
  d["picture_miou"] = per_picture(result);
  return d;
}

class PythonSegmenter {
 public:
  PythonSegmenter(const fs::path& bank, const fs::path& model, const std::string& kind,
                  bool colours, unsigned threads)
      : threads_(threads_or_default(threads)) {
    Watch watch;
    watch.run([&] {
      Pool pool(threads_);
      segmenter_.emplace(Segmenter::open(bank, pool, model));
      const std::vector<std::string>& kinds = segmenter_->kinds();
      const auto found = kind.empty() ? kinds.end() - 1 : std::find(kinds.begin(), kinds.end(), kind);
      if (found == kinds.end())
        fail("the memory has no features '" + kind + "'", bank.string(),
             "leave out `kind`, or make a memory with gradients");
      kind_ = size_t(found - kinds.begin());
      if (colours) colours_.emplace(PatchColours::fit(segmenter_->bank(kind_).features(), pool));
    });
  }

  // The mask of the first picture, its colours as a PNG or none, and the share of each class.
  nb::tuple segment(const Dataset& pictures, const std::string& id) {
    Mask mask;
    std::vector<uint8_t> coloured;
    Watch watch;
    watch.run([&] {
      Pool pool(threads_);  // of each call: one that is kept has no threads in a forked process
      const Image image = pictures.image(0);
      auto labels = segmenter_->label(
          1, [&](size_t) { return image; }, std::span(&id, 1), pool);
      if (labels[0].failure) fail(labels[0].failure->reason, id, labels[0].failure->hint);
      mask = segmenter_->mask(labels[0].shares[kind_], image.width, image.height);
      const PatchFeatures& f = segmenter_->features();
      if (colours_)
        coloured = encode_png(colours_->picture(labels[0].features[kind_], f.grid_h(), f.grid_w(),
                                                image.width, image.height, pool));
    });
    std::vector<size_t> pixels(segmenter_->classes(), 0);
    for (const uint8_t value : mask.values) ++pixels[value];
    nb::dict shares;
    for (size_t c = 0; c < pixels.size(); ++c)
      if (pixels[c])
        shares[to_str(segmenter_->class_name(c))] = double(pixels[c]) / double(mask.values.size());
    Matrix<uint8_t> values(mask.height, mask.width);
    for (size_t y = 0; y < mask.height; ++y)
      std::copy_n(mask.values.data() + y * mask.width, mask.width, values.row(y));
    return nb::make_tuple(to_numpy(std::move(values)), shares,
                          colours_ ? nb::object(nb::bytes(coloured.data(), coloured.size()))
                                   : nb::none());
  }

  std::vector<std::string> kinds() const { return segmenter_->kinds(); }
  nb::list class_names() const {
    nb::list names;
    for (size_t c = 0; c < segmenter_->classes(); ++c) names.append(to_str(segmenter_->class_name(c)));
    return names;
  }

 private:
  unsigned threads_;
  std::optional<Segmenter> segmenter_;
  size_t kind_ = 0;
  std::optional<PatchColours> colours_;
};

void write_mask_of(const fs::path& file, const nb::ndarray<const uint8_t, nb::ndim<2>, nb::c_contig,
                                                          nb::device::cpu>& values) {
  Mask mask{values.shape(1), values.shape(0), {values.data(), values.data() + values.size()}};
  const nb::gil_scoped_release free;
  write_mask(file, mask);
}

}  // namespace

void add_segments(nb::module_& m) {
  m.def("segment", test, nb::arg("train"), nb::arg("test"), nb::arg("output"), nb::arg("model"),
        nb::arg("stated"), nb::arg("page"), nb::arg("shown"), nb::arg("threads"),
        nb::arg("progress").none());
  m.def("write_mask", write_mask_of, nb::arg("file"), nb::arg("values"));
  nb::class_<PythonSegmenter>(m, "Segmenter")
      .def(nb::init<const fs::path&, const fs::path&, const std::string&, bool, unsigned>(),
           nb::arg("bank"), nb::arg("model"), nb::arg("kind"), nb::arg("colours"),
           nb::arg("threads"))
      .def("segment", &PythonSegmenter::segment, nb::arg("pictures"), nb::arg("id"))
      .def("kinds", &PythonSegmenter::kinds)
      .def("class_names", &PythonSegmenter::class_names);
}

}  // namespace fungi::python
