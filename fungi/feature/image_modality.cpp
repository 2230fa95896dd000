// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/image_modality.h"

#include <fmt/format.h>

#include "fungi/backbone/sides.h"
#include "fungi/base/error.h"

namespace fungi {
namespace {

// What a plan deviates in from the evaluation transform.
struct Deviations {
  ImageStatistics statistics = ImageStatistics::model;
  bool squash = false;
};

struct DeviationsOf {
  template <class Plan>  // one that deviates in nothing, or is none of images
  Deviations operator()(const Plan&) const {
    return {};
  }
  Deviations operator()(const WholeImage& plan) const { return {plan.statistics, plan.squash}; }
  Deviations operator()(const ImageCrops& plan) const { return {plan.statistics}; }
  Deviations operator()(const ImagePatches& plan) const { return {plan.statistics}; }
};

}  // namespace

Preprocess evaluation_transform(const Architecture& a, Preset preset) {
  if (a.input_h != a.input_w || a.channels != 3)
    fail(fmt::format("the backbone wants {}x{}x{} inputs", a.channels, a.input_h, a.input_w),
         "extract", "image views are square and have three channels");
  Preprocess p = a.preprocess.transform;
  p.input_size = a.input_h;
  // DEVIATION: the paper's code resolves the data configuration of AugReg and EVA models wrongly
  // and runs them with ImageNet's statistics and crop (SPEC 3.4).
  const bool misresolved = a.family == "eva02-clip" || a.preprocess.augreg;
  if (preset == Preset::paper && misresolved) {
    if (!a.preprocess.stated_colours) p.mean = kImageNetMean, p.std = kImageNetStd;
    if (!a.preprocess.stated_resize)
      p.resize = Preprocess::Resize::short_side, p.resize_size = a.input_h * 256 / 224,
      p.floor_crop = a.preprocess.stated_crop && a.preprocess.transform.floor_crop;
  }
  // DEVIATION: the paper ran CLIP through timm, whose transform is wider than OpenAI's own: crop
  // 0.9, and 1.0 for patches of 14 (SPEC 3.4). Files of timm's say so themselves.
  if (preset == Preset::paper && a.family == "clip" && a.dialect != "timm" &&
      !a.preprocess.stated_resize) {
    p.resize_size = a.patch_h == 14 ? a.input_h : size_t(double(a.input_h) / 0.9);
    p.floor_crop = a.preprocess.stated_crop && a.preprocess.transform.floor_crop;
  }
  return p;
}

size_t ImageModality::views(const ViewPlan& plan) const {
  const size_t count = image_view_count(plan, evaluation_.input_size);
  const bool crops = std::holds_alternative<ImageCrops>(plan);
  check_side(model_, view_side(plan, count - 1), crops ? "local_size" : "patch_size");
  return count;
}

std::unique_ptr<ViewMaker> ImageModality::maker(const ViewPlan& plan) const {
  return std::make_unique<ImageViews>(plan, preprocess(plan));
}

Preprocess ImageModality::preprocess(const ViewPlan& plan) const {
  const Deviations wanted = std::visit(DeviationsOf{}, plan);
  Preprocess p = evaluation_;
  if (wanted.statistics != ImageStatistics::model) p.mean = kImageNetMean, p.std = kImageNetStd;
  if (wanted.statistics == ImageStatistics::deepcluster) p.std[0] = 0.228f;
  if (wanted.squash) {  // DEVIATION: the library squashes to 256 x 256, bilinear, whatever the
                        // input size (SPEC 3.5)
    p.resize = Preprocess::Resize::squash;
    p.resize_size = 256;
    p.filter = Filter::bilinear;
    p.floor_crop = false;
  }
  return p;
}

}  // namespace fungi
