// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/text_modality.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "fungi/base/error.h"
#include "fungi/base/json.h"
#include "fungi/view/hidden_words.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& model) {
  std::error_code ignored;  // a path that is no folder is a file
  return fs::is_directory(model, ignored) ? model : model.parent_path();
}

std::shared_ptr<const Tokenizer> tokenizer_beside(const fs::path& model) {
  if (model.empty())
    fail("a model of texts needs a tokeniser, and weights without a file have none beside them",
         "TextOptions::tokenizer", "give one: Tokenizer::open(folder)");
  return Tokenizer::open(folder_of(model));
}

constexpr const char* kSentences = "sentence_bert_config.json";

// Its texts are put into small letters before the tokeniser sees them, which is no matter where the
// tokeniser does that itself.
void require_lower_case(const Tokenizer& tokenizer, const std::string& place) {
  const auto ids = [&](const char* text) { return tokenizer.encode(text).ids; };
  if (ids("The Quick BROWN Fox \u00c9t\u00e9") != ids("the quick brown fox \u00e9t\u00e9"))
    fail("do_lower_case is true, but the tokeniser tells capitals apart, which is not known here",
         place, "put the texts into small letters yourself, and set it to false");
}

// How many tokens sentence-transformers gives this model, where a file of its says so.
std::optional<size_t> max_seq_length(const fs::path& model, const Tokenizer& tokenizer) {
  const fs::path file = folder_of(model) / kSentences;
  std::error_code ignored;
  if (model.empty() || !fs::is_regular_file(file, ignored)) return {};
  const std::string place = file.string();
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const nlohmann::json facts = parse_json(text);
  if (!facts.is_object())
    fail("expected a JSON object, found something else or a part of one", place,
         "get the file again, or move it away");
  if (facts.value("do_lower_case", nlohmann::json()) == true) require_lower_case(tokenizer, place);
  const auto length = facts.find("max_seq_length");
  if (length == facts.end() || length->is_null()) return {};
  constexpr size_t kMost = 1 << 20;
  if (!length->is_number_unsigned() || *length == 0u || *length > kMost)
    fail(fmt::format("max_seq_length is {}, expected a whole number from 1 to {}", length->dump(),
                     kMost),
         place, "correct the file, or move it away");
  return length->get<size_t>();
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
  const size_t around = reading.tokenizer->encode("").ids.size();
  if (const auto most = max_seq_length(model, *reading.tokenizer)) {
    if (*most <= around)
      fail(fmt::format("max_seq_length is {}, which leaves no room for words", *most),
           (folder_of(model) / kSentences).string(), "correct the file, or move it away");
    reading.longest = a.max_positions ? std::min(a.tokens(), *most) : *most;
  } else if (const auto own = reading.tokenizer->model_max_length()) {
    reading.longest = std::min(reading.longest, *own);
  }
  if (!options.max_tokens) return reading;
  if (options.max_tokens > a.tokens() && a.max_positions)
    fail(fmt::format("a view of {} tokens is more than the model can read: it has {} positions",
                     options.max_tokens, a.tokens()),
         "max_tokens", fmt::format("give at most {}", a.tokens()));
  if (options.max_tokens <= around)
    fail(fmt::format("{} tokens leave no room for words: {} of the model's own stand around them",
                     options.max_tokens, around),
         "max_tokens", fmt::format("give at least {}", around + 1));
  reading.longest = options.max_tokens;
  return reading;
}

}  // namespace fungi
