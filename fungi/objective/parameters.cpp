// SPDX-License-Identifier: Apache-2.0
// The reading half of parameters.h: text to checked values; and what can be chosen of views.
#include "fungi/objective/parameters.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace fungi {

std::string list_names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

Overrides parse_overrides(std::string_view text, const std::string& place) {
  Overrides overrides;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, comma);
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == item.size())
      fail(fmt::format("expected name=value, found '{}'", item), place,
           "write e.g. temperature=0.07,width=96");
    for (const auto& [name, value] : overrides)
      if (name == item.substr(0, equals)) fail(fmt::format("'{}' is given twice", name), place);
    overrides.emplace_back(item.substr(0, equals), item.substr(equals + 1));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return overrides;
}

namespace {

// One function for each alternative of a ViewPlan.
struct PlanVisitor {
  ParameterVisitor& visitor;

  void statistics(ImageStatistics& value) const {
    visitor.one_of("statistics", value, {"model", "imagenet", "deepcluster"});
  }
  void operator()(WholeView&) const {}
  void operator()(WholeImage& whole) const {
    statistics(whole.statistics);
    visitor.flag("squash", whole.squash);
  }
  void operator()(ImageCrops& crops) const {
    visitor.count("global_crops", crops.global_crops, 1);
    visitor.count("local_crops", crops.local_crops, 0);
    if (visitor.wants(crops.local_size != 0))
      visitor.count("local_size", crops.local_size, 0);
    statistics(crops.statistics);
    if (visitor.wants(crops.augmentation != ImageAugmentation::none))
      visitor.one_of("augmentation", crops.augmentation, {"none", "dino"});
  }
  void operator()(ImagePatches& patches) const {
    visitor.square("patch_count", patches.patch_count, 4);  // one view alone has no positive
    visitor.count("stride_scale", patches.stride_scale, 1);
    if (visitor.wants(patches.patch_size != 0))
      visitor.count("patch_size", patches.patch_size, 0);
    statistics(patches.statistics);
  }
  void operator()(WordDeletions& words) const {
    visitor.count("views", words.global_views, 1);
    visitor.count("local_views", words.local_views, 0);
    visitor.fraction("deleted", words.global_share);
    visitor.fraction("local_deleted", words.local_share);
    visitor.one_of("rule", words.rule, {"counted", "independent"});
  }
  void operator()(HiddenWords& words) const {
    visitor.count("views", words.views, 1);
    visitor.fraction("hidden", words.share);
    visitor.one_of("rule", words.rule, {"mixed", "mask_only"});
  }
  void operator()(SoundShifts& sounds) const {
    visitor.count("views", sounds.global_views, 1);
    visitor.count("local_views", sounds.local_views, 0);
    visitor.fraction("noise", sounds.noise);
    visitor.count("shift", sounds.shift, 0);
    visitor.one_of("rule", sounds.rule, {"experiments", "symmetric"});
  }
};

}  // namespace

void ParameterVisitor::views(ViewPlan& plan) { std::visit(PlanVisitor{*this}, plan); }

namespace parameters_detail {

Reader::Reader(const Overrides& overrides, std::string place)
    : overrides_(overrides), place_(std::move(place)), used_(overrides.size(), false) {}

const std::string* Reader::find(const char* name) {
  known_.push_back(name);
  for (size_t i = 0; i < overrides_.size(); ++i)
    if (overrides_[i].first == name) {
      used_[i] = true;
      return &overrides_[i].second;
    }
  return nullptr;
}

double Reader::number(const char* name, const std::string& text) const {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc{} || result.ptr != end || !std::isfinite(value))
    fail(fmt::format("{} must be a number, found '{}'", name, text), place_);
  return value;
}

void Reader::positive(const char* name, double& value) {
  const std::string* text = find(name);
  if (!text) return;
  value = number(name, *text);
  if (!(value > 0)) fail(fmt::format("{} must be above 0, found {}", name, *text), place_);
}

void Reader::fraction(const char* name, double& value) {
  const std::string* text = find(name);
  if (!text) return;
  value = number(name, *text);
  if (value < 0 || value > 1)
    fail(fmt::format("{} must lie between 0 and 1, found {}", name, *text), place_);
}

void Reader::count(const char* name, size_t& value, size_t lowest) {
  const std::string* text = find(name);
  if (!text) return;
  constexpr double kHighest = 1e6;  // far above any use: more would fill the memory first
  const double found = number(name, *text);
  if (found < static_cast<double>(lowest) || found > kHighest || found != std::floor(found))
    fail(fmt::format("{} must be a whole number from {} to {:.0f}, found {}", name, lowest,
                     kHighest, *text),
         place_);
  value = static_cast<size_t>(found);
}

void Reader::square(const char* name, size_t& value, size_t lowest) {
  count(name, value, lowest);
  const auto side = static_cast<size_t>(std::lround(std::sqrt(static_cast<double>(value))));
  if (side * side != value)
    fail(fmt::format("{} must be a perfect square, found {}", name, value), place_);
}

void Reader::flag(const char* name, bool& value) {
  const std::string* text = find(name);
  if (!text) return;
  if (*text != "true" && *text != "false" && *text != "yes" && *text != "no")
    fail(fmt::format("{} must be true or false, found '{}'", name, *text), place_);
  value = *text == "true" || *text == "yes";
}

void Reader::choice(const char* name, size_t& index, const std::vector<std::string>& names) {
  const std::string* text = find(name);
  if (!text) return;
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == *text) {
      index = i;
      return;
    }
  fail(fmt::format("{} must be one of {}, found '{}'", name, list_names(names), *text), place_);
}

void Reader::finish() const {
  for (size_t i = 0; i < overrides_.size(); ++i)
    if (!used_[i])
      fail(fmt::format("there is no parameter '{}'", overrides_[i].first), place_,
           fmt::format("choose from: {}", list_names(known_)));
}

}  // namespace parameters_detail
}  // namespace fungi
