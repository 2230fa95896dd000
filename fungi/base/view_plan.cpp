// SPDX-License-Identifier: Apache-2.0
#include "fungi/base/view_plan.h"

#include "fungi/base/error.h"

namespace fungi {
namespace {

template <class Plan>
auto& crops_of(Plan& plan, const std::string& place) {
  if (auto* crops = std::get_if<ImageCrops>(&plan)) return *crops;
  fail("this objective compares global with local views, and its views are all of one sort", place,
       "plan its views as crops");
}

}  // namespace

const char* to_string(SampleKind kind) {
  switch (kind) {
    case SampleKind::image:
      return "image";
    case SampleKind::text:
      return "text";
    case SampleKind::sound:
      return "sound";
    case SampleKind::own:
      return "own";
  }
  return "";
}

ViewPlan simplest(const ViewPlan& plan) {
  return plan == ViewPlan(WholeImage{}) ? ViewPlan(WholeView{}) : plan;
}

bool is_random(const ViewPlan& plan) { return std::holds_alternative<ImageCrops>(plan); }

ViewCounts view_counts(const ViewPlan& plan, const std::string& place) {
  const ImageCrops& crops = crops_of(plan, place);
  return {crops.global_crops, crops.local_crops};
}

ViewPlan global_views(ViewPlan plan, size_t count, const std::string& place) {
  ImageCrops& crops = crops_of(plan, place);
  crops.global_crops = count;
  crops.local_crops = 0;
  return plan;
}

}  // namespace fungi
