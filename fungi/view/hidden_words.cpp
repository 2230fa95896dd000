// SPDX-License-Identifier: Apache-2.0
#include "fungi/view/hidden_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fungi/base/error.h"
#include "fungi/base/random.h"

namespace fungi {
namespace {

// Places in an order drawn at random, and again in another one when all have had their turn.
class Turns {
 public:
  Turns(std::vector<size_t> places, TorchRandom& random)
      : places_(std::move(places)), random_(random), next_(places_.size()) {}
  size_t next() {
    if (next_ == places_.size()) {
      for (size_t i = 0; i + 1 < places_.size(); ++i)
        std::swap(places_[i], places_[i + random_.integer(uint32_t(places_.size() - i))]);
      next_ = 0;
    }
    return places_[next_++];
  }

 private:
  std::vector<size_t> places_;
  TorchRandom& random_;
  size_t next_;
};

int32_t shown_instead(int32_t word, HiddenWords::Rule rule, const Tokenizer& tokenizer,
                      TorchRandom& random) {
  constexpr float kMask = 0.8f, kAnyWord = 0.9f;
  const float draw = rule == HiddenWords::Rule::mixed ? random.uniform() : 0;
  if (draw < kMask) return *tokenizer.mask_id();
  return draw < kAnyWord ? int32_t(random.integer(uint32_t(tokenizer.vocabulary_size()))) : word;
}

}  // namespace

void require_mask(const TextReading& reading) {
  if (!reading.tokenizer->mask_id())
    fail("words cannot be hidden: the tokeniser has no mask token", reading.tokenizer->describe(),
         "give a model that was trained to guess hidden words, as BERT and RoBERTa were");
}

HiddenWordViews::HiddenWordViews(const HiddenWords& plan, const TextReading& reading)
    : plan_(plan), reading_(reading) {
  text_view_count(plan);
  require_mask(reading);
}

void HiddenWordViews::open(const Sample& sample, uint32_t seed) {
  const Tokenizer& tokenizer = *reading_.tokenizer;
  const Tokens tokens = tokenizer.encode(reading_.prefix + text_of(sample).utf8, reading_.longest);
  cut_ = tokens.cut;
  std::vector<size_t> own;  // not the start, the end and their like
  for (size_t i = 0; i < tokens.ids.size(); ++i)
    if (!tokenizer.is_special(tokens.ids[i])) own.push_back(i);
  const size_t wanted = size_t(std::lround(plan_.share * double(own.size()))),
               count = std::clamp<size_t>(wanted, std::min<size_t>(own.size(), 1), own.size());
  TorchRandom random(seed);
  Turns turns(own, random);
  views_.assign(plan_.views, {tokens.ids, std::vector<int32_t>(tokens.ids.size(), -1)});
  for (Seen& view : views_)
    for (size_t hidden = 0; hidden < count;) {
      const size_t at = turns.next();
      if (view.words[at] >= 0) continue;  // its turn came again within this view
      view.words[at] = tokens.ids[at];
      view.ids[at] = shown_instead(tokens.ids[at], plan_.rule, tokenizer, random);
      ++hidden;
    }
}

void HiddenWordViews::write(size_t view, InputBuffer& out) {
  if (view >= views_.size())
    fail(fmt::format("expected a view from 0 to {} of an open text, found {}",
                     views_.empty() ? 0 : views_.size() - 1, view),
         "HiddenWordViews::write", "call open() first");
  const std::vector<int32_t>& ids = views_[view].ids;
  std::copy(ids.begin(), ids.end(), out.add_ids(ids.size()).begin());
}

size_t HiddenWordViews::same_as(size_t view) const {
  return size_t(std::find(views_.begin(), views_.end(), views_[view]) - views_.begin());
}

}  // namespace fungi
