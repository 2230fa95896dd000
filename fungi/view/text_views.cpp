// SPDX-License-Identifier: Apache-2.0
#include "fungi/view/text_views.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/error.h"
#include "fungi/view/word_deletion.h"

namespace fungi {
namespace {

struct Counter {
  size_t operator()(const WholeView&) const { return 1; }
  size_t operator()(const WordDeletions& plan) const {
    return checked(plan.global_views, plan.local_views, "WordDeletions::global_views");
  }
  size_t operator()(const HiddenWords& plan) const {
    return checked(plan.views, 0, "HiddenWords::views");
  }
  size_t checked(size_t global, size_t local, const char* place) const {
    if (global > kMostViews || local > kMostViews - global || global + local == 0)
      fail(fmt::format("expected 1 to {} views of a sample, found {} + {}", kMostViews, global,
                       local),
           place);
    return global + local;
  }
  template <class Plan>
  size_t operator()(const Plan&) const {
    fail("these views are of another kind of sample than texts", "ViewPlan",
         "plan the whole text, or words left out or hidden");
  }
};

}  // namespace

size_t text_view_count(const ViewPlan& plan) { return std::visit(Counter{}, plan); }

TextViews::TextViews(const ViewPlan& plan, const TextReading& reading)
    : plan_(plan), reading_(reading) {
  text_view_count(plan);
}

void TextViews::add(const std::string& text) {
  size_t place = size_t(std::find(texts_.begin(), texts_.end(), text) - texts_.begin());
  const auto same = std::find(place_.begin(), place_.end(), place);
  first_.push_back(size_t(same - place_.begin()));
  place_.push_back(place);
  if (place < texts_.size()) return;
  texts_.push_back(text);
  Tokens tokens = reading_.tokenizer->encode(reading_.prefix + text, reading_.longest);
  cut_ |= tokens.cut;
  ids_.push_back(std::move(tokens.ids));
}

void TextViews::open(const Sample& sample, uint32_t seed) {
  const std::string& text = text_of(sample).utf8;
  texts_.clear(), ids_.clear(), place_.clear(), first_.clear();
  cut_ = false;
  const auto* plan = std::get_if<WordDeletions>(&plan_);
  if (!plan) return add(text);
  TorchRandom random(seed);
  const DeletableWords words(text);
  const auto draw = [&](size_t views, double share) {
    for (size_t i = 0; i < views; ++i)
      add(plan->rule == WordDeletions::Rule::counted ? words.draw(share, random)
                                                     : without_words(text, share, random));
  };
  draw(plan->global_views, plan->global_share);
  draw(plan->local_views, plan->local_share);
}

void TextViews::write(size_t view, InputBuffer& out) {
  if (view >= place_.size())
    fail(fmt::format("expected a view from 0 to {} of an open text, found {}",
                     place_.empty() ? 0 : place_.size() - 1, view),
         "TextViews::write", "call open() first");
  const std::vector<int32_t>& ids = ids_[place_[view]];
  std::copy(ids.begin(), ids.end(), out.add_ids(ids.size()).begin());
}

}  // namespace fungi
