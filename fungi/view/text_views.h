// SPDX-License-Identifier: Apache-2.0
// Views of a text: the whole of it, or with some of its words left out, each as the token ids that
// its model reads. Internal to the library; feature/text_modality makes them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fungi/token/tokenizer.h"
#include "fungi/view/view.h"

namespace fungi {

// How many views of a text the plan gives. Error where it is none of texts, or gives more than
// kMostViews.
size_t text_view_count(const ViewPlan& plan);

// What a text becomes for the model that reads it.
struct TextReading {
  std::shared_ptr<const Tokenizer> tokenizer;
  size_t longest = 0;       // tokens of a view, the model's own among them; what is behind is cut
  std::string prefix = {};  // stands before every view: "query: "; its words are never left out
};

class TextViews final : public ViewMaker {
 public:
  TextViews(const ViewPlan& plan, const TextReading& reading);
  // Error where the text is not valid UTF-8.
  void open(const Sample& sample, uint32_t seed) override;
  void write(size_t view, InputBuffer& out) override;
  size_t same_as(size_t view) const override { return first_[view]; }
  bool cut() const override { return cut_; }

 private:
  void add(const std::string& text);

  ViewPlan plan_;
  TextReading reading_;
  std::vector<std::string> texts_;         // of the views of the open sample, each once
  std::vector<std::vector<int32_t>> ids_;  // of those
  std::vector<size_t> place_, first_;      // of each view: its text; the first view that has it
  bool cut_ = false;
};

}  // namespace fungi
