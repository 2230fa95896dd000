// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/view_schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/error.h"

namespace fungi {
namespace {

bool same_plan(const ViewPlan& x, const ViewPlan& y) {
  if (x.kind != y.kind) return false;
  switch (x.kind) {
    case ViewPlan::Kind::evaluation:
      return true;
    case ViewPlan::Kind::patches:
      return x.patch_count == y.patch_count && x.stride_scale == y.stride_scale;
    case ViewPlan::Kind::crops:
      return x.global_crops == y.global_crops && x.local_crops == y.local_crops &&
             x.bilinear == y.bilinear &&
             std::equal(x.global_area, x.global_area + 2, y.global_area) &&
             std::equal(x.local_area, x.local_area + 2, y.local_area);
  }
  return false;
}

bool same_request(const ViewRequest& x, const ViewRequest& y) {
  const bool random = x.plan.kind == ViewPlan::Kind::crops || x.masked_views;
  return same_plan(x.plan, y.plan) && (!random || x.draw == y.draw) &&
         x.masked_views == y.masked_views && x.mask_ratio == y.mask_ratio &&
         x.statistics == y.statistics && x.squash == y.squash;
}

}  // namespace

Preprocess evaluation_transform(const Architecture& a, Preset preset) {
  if (a.input != InputKind::image)
    fail(fmt::format("a {} backbone reads {}, not images", a.family, to_string(a.input)),
         "extract");
  if (a.input_h != a.input_w || a.channels != 3)
    fail(fmt::format("the backbone wants {}x{}x{} inputs", a.channels, a.input_h, a.input_w),
         "extract", "image views are square and have three channels");
  Preprocess p;
  p.resize_size = a.preprocess.resize;
  if (a.preprocess.squash) p.resize = Preprocess::Resize::squash;
  p.filter = a.preprocess.bilinear ? Filter::bilinear : Filter::bicubic;
  p.input_size = a.input_h;
  p.floor_crop = a.preprocess.floor_crop;
  p.mean = a.preprocess.mean;
  p.std = a.preprocess.deviation;
  // DEVIATION: the paper's code resolves the data configuration of AugReg and EVA models wrongly
  // and runs them with ImageNet's statistics and crop (SPEC 3.4).
  const bool misresolved = a.family == "eva02-clip" || a.preprocess.augreg;
  if (preset == Preset::paper && misresolved) {
    if (!a.preprocess.stated_colours) p.mean = kImageNetMean, p.std = kImageNetStd;
    if (!a.preprocess.stated_resize)
      p.resize = Preprocess::Resize::short_side, p.resize_size = a.input_h * 256 / 224,
      p.floor_crop = a.preprocess.stated_crop && a.preprocess.floor_crop;
  }
  // DEVIATION: the paper ran CLIP through timm, whose transform is wider than OpenAI's own: crop
  // 0.9, and 1.0 for patches of 14 (SPEC 3.4). Files of timm's say so themselves.
  if (preset == Preset::paper && a.family == "clip" && a.dialect != "timm" &&
      !a.preprocess.stated_resize) {
    p.resize_size = a.patch_h == 14 ? a.input_h : size_t(double(a.input_h) / 0.9);
    p.floor_crop = a.preprocess.stated_crop && a.preprocess.floor_crop;
  }
  return p;
}

ViewSchedule::ViewSchedule(const Architecture& architecture, Preset preset)
    : evaluation_(evaluation_transform(architecture, preset)) {
  add(ViewRequest{});
}

Preprocess ViewSchedule::preprocess_for(const ViewRequest& request) const {
  Preprocess p = evaluation_;
  if (request.statistics != ImageStatistics::model) p.mean = kImageNetMean, p.std = kImageNetStd;
  if (request.statistics == ImageStatistics::deepcluster) p.std[0] = 0.228f;
  if (request.squash) {  // DEVIATION: the library squashes to 256 x 256, bilinear, whatever the
                         // input size (SPEC 3.5)
    p.resize = Preprocess::Resize::squash;
    p.resize_size = 256;
    p.filter = Filter::bilinear;
    p.floor_crop = false;
  }
  return p;
}

size_t ViewSchedule::add(const ViewRequest& request) {
  if (!(request.mask_ratio >= 0 && request.mask_ratio <= 1))
    fail(fmt::format("expected a share of hidden tokens from 0 to 1, found {}", request.mask_ratio),
         "ViewRequest::mask_ratio");
  for (size_t i = 0; i < requests_.size(); ++i)
    if (same_request(requests_[i].request, request)) return i;
  ScheduledRequest s{request, preprocess_for(request), 0};
  s.views = view_count(request.plan, s.preprocess.input_size);
  requests_.push_back(s);
  return requests_.size() - 1;
}

size_t ViewSchedule::views_per_sample() const {
  size_t n = 0;
  for (const ScheduledRequest& r : requests_) n += r.views;
  return n;
}

size_t ViewSchedule::first_row(size_t request, size_t samples) const {
  size_t row = 0;
  for (size_t i = 0; i < request; ++i) row += requests_[i].views * samples;
  return row;
}

}  // namespace fungi
