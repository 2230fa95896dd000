// SPDX-License-Identifier: Apache-2.0
#include "fungi/base/view_plan.h"

#include <utility>

#include "fungi/base/error.h"

namespace fungi {
namespace {

// The numbers of global and of local views of a plan that has both.
template <class Plan>
auto counts_of(Plan& plan, const std::string& place) {
  if (auto* crops = std::get_if<ImageCrops>(&plan))
    return std::pair(&crops->global_crops, &crops->local_crops);
  if (auto* words = std::get_if<WordDeletions>(&plan))
    return std::pair(&words->global_views, &words->local_views);
  if (auto* sounds = std::get_if<SoundShifts>(&plan))
    return std::pair(&sounds->global_views, &sounds->local_views);
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

size_t view_side(const ViewPlan& plan, size_t view) {
  if (const auto* crops = std::get_if<ImageCrops>(&plan))
    return view < crops->global_crops ? 0 : crops->local_size;
  if (const auto* patches = std::get_if<ImagePatches>(&plan)) return patches->patch_size;
  return 0;
}

bool is_random(const ViewPlan& plan) {
  return std::holds_alternative<ImageCrops>(plan) || std::holds_alternative<WordDeletions>(plan) ||
         std::holds_alternative<HiddenWords>(plan) || std::holds_alternative<SoundShifts>(plan);
}

ViewCounts view_counts(const ViewPlan& plan, const std::string& place) {
  const auto [global, local] = counts_of(plan, place);
  return {*global, *local};
}

ViewPlan global_views(ViewPlan plan, size_t count, const std::string& place) {
  const auto [global, local] = counts_of(plan, place);
  *global = count;
  *local = 0;
  return plan;
}

}  // namespace fungi
