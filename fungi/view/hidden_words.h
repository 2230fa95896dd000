// SPDX-License-Identifier: Apache-2.0
// A text with some of its tokens hidden, and which words those are (HiddenWords): what a masked
// language model is trained on. Internal to the library; feature/text_modality makes them.
#pragma once

#include <vector>

#include "fungi/view/text_views.h"

namespace fungi {

class HiddenWordViews final : public ViewMaker {
 public:
  // Error where the tokenizer has no token that hides.
  HiddenWordViews(const HiddenWords& plan, const TextReading& reading);
  // Error where the text is not valid UTF-8.
  void open(const Sample& sample, uint32_t seed) override;
  void write(size_t view, InputBuffer& out) override;
  size_t same_as(size_t view) const override;
  std::span<const int32_t> hidden_words(size_t view) const override { return views_[view].words; }
  bool cut() const override { return cut_; }

 private:
  struct Seen {
    std::vector<int32_t> ids, words;  // what is shown; what is hidden, as in ViewMaker
    bool operator==(const Seen&) const = default;
  };

  HiddenWords plan_;
  TextReading reading_;
  std::vector<Seen> views_;  // of the open sample
  bool cut_ = false;
};

// Error unless its tokenizer has a token that hides others.
void require_mask(const TextReading& reading);

}  // namespace fungi
