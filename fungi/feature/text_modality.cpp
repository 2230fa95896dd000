// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/text_modality.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/error.h"
#include "fungi/view/hidden_words.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<const Tokenizer> tokenizer_beside(const fs::path& model) {
  if (model.empty())
    fail("a model of texts needs a tokeniser, and weights without a file have none beside them",
         "TextOptions::tokenizer", "give one: Tokenizer::open(folder)");
  std::error_code ignored;  // a path that is no folder is a file
  return Tokenizer::open(fs::is_directory(model, ignored) ? model : model.parent_path());
}

}  // namespace

size_t TextModality::views(const ViewPlan& plan) const {
  if (std::holds_alternative<HiddenWords>(plan)) require_mask(reading_);
  return text_view_count(plan);
}

std::unique_ptr<ViewMaker> TextModality::maker(const ViewPlan& plan) const {
  if (const auto* hidden = std::get_if<HiddenWords>(&plan))
    return std::make_unique<HiddenWordViews>(*hidden, reading_);
  return std::make_unique<TextViews>(plan, reading_);
}

TextReading text_reading(const Architecture& a, const TextOptions& options, const fs::path& model) {
  TextReading reading{options.tokenizer ? options.tokenizer : tokenizer_beside(model), a.tokens(),
                      options.prefix};
  const std::string place = model.empty() ? a.family : model.string();
  if (const size_t pieces = reading.tokenizer->vocabulary_size(); pieces > a.vocabulary)
    fail(fmt::format("the tokeniser has {} pieces, the model has {} words: they do not belong "
                     "together",
                     pieces, a.vocabulary),
         place, "put the model's own tokeniser beside its weights");
  if (const auto most = reading.tokenizer->model_max_length())
    reading.longest = std::min(reading.longest, *most);
  if (!options.max_tokens) return reading;
  if (options.max_tokens > a.tokens() && a.max_positions)
    fail(fmt::format("a view of {} tokens is more than the model can read: it has {} positions",
                     options.max_tokens, a.tokens()),
         "max_tokens", fmt::format("give at most {}", a.tokens()));
  if (const size_t around = reading.tokenizer->encode("").ids.size(); options.max_tokens <= around)
    fail(fmt::format("{} tokens leave no room for words: {} of the model's own stand around them",
                     options.max_tokens, around),
         "max_tokens", fmt::format("give at least {}", around + 1));
  reading.longest = options.max_tokens;
  return reading;
}

}  // namespace fungi
