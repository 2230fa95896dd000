// SPDX-License-Identifier: Apache-2.0
#include "fungi/token/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/error.h"
#include "fungi/token/tokenizer_parts.h"
#include "fungi/token/unicode.h"

namespace fungi {
namespace {

// One text on its way through the parts.
class Encoding {
 public:
  Encoding(const Tokenizer::Parts& parts, std::vector<int32_t>& ids) : parts_(parts), ids_(ids) {}

  void add(std::string_view text) {
    parts_.added.split(
        text,
        [&](size_t begin, size_t end) {
          draft_.text.assign(text.substr(begin, end - begin));
          draft_.at_start = begin == 0;
          draft_.most = token::longest_result(end - begin);
          add_draft();
        },
        [&](int32_t id) { ids_.push_back(id); });
  }

 private:
  void add_draft() {
    if (parts_.normalizer) parts_.normalizer->apply(draft_);
    parts_.added_normalized.split(
        draft_.text,
        [&](size_t begin, size_t end) {
          pieces_.text.assign(draft_.text, begin, end - begin);
          pieces_.spans.assign(1, {0, end - begin});
          pieces_.at_start = draft_.at_start && begin == 0;
          pieces_.most = token::longest_result(end - begin);
          add_pieces();
        },
        [&](int32_t id) { ids_.push_back(id); });
  }
  void add_pieces() {
    if (parts_.pre_tokenizer) parts_.pre_tokenizer->apply(pieces_);
    for (const token::Span span : pieces_.spans)
      parts_.model->append_ids(pieces_.of(span), scratch_, ids_);
  }

  const Tokenizer::Parts& parts_;
  std::vector<int32_t>& ids_;
  token::Draft draft_;
  token::Pieces pieces_;
  token::Scratch scratch_;
};

}  // namespace

void token::require_length(size_t bytes, size_t most) {
  if (bytes > most)
    fail(fmt::format("the tokenizer makes more than {} bytes of a text; real ones stay far below",
                     most),
         "", "fetch the tokenizer again, from a source that you trust");
}

void Tokenizer::Parts::add(const token::AddedToken& token) {
  if (token.special) special.insert(token.id);
  largest_id = std::max(largest_id, token.id);
  if (!token.normalized) return added.add(token, token.content);
  token::Draft draft;
  draft.text = token.content;
  draft.most = token::longest_result(token.content.size());
  if (normalizer) normalizer->apply(draft);
  added_normalized.add(token, draft.text);
}

Tokenizer::Tokenizer(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Tokenizer::~Tokenizer() = default;

Tokens Tokenizer::encode(std::string_view utf8, size_t max_tokens) const {
  const auto& [before, behind] = parts_->around;
  const size_t around = before.size() + behind.size();
  if (max_tokens < around)
    fail(fmt::format("expected room for at least {} tokens, which stand around every text, found "
                     "{}",
                     around, max_tokens),
         "", "allow more tokens");
  if (const auto at = token::first_invalid_byte(utf8))
    fail(fmt::format("expected UTF-8, found the byte 0x{:02X} at {}", uint8_t(utf8[*at]), *at), "",
         "convert the text to UTF-8, e.g. with iconv");
  Tokens tokens;
  tokens.ids.reserve(std::min(max_tokens, around + utf8.size() / 4));
  tokens.ids = before;
  Encoding(*parts_, tokens.ids).add(utf8);
  if (tokens.ids.size() + behind.size() > max_tokens) {
    tokens.ids.resize(max_tokens - behind.size());
    tokens.cut = true;
  }
  tokens.ids.insert(tokens.ids.end(), behind.begin(), behind.end());
  return tokens;
}

size_t Tokenizer::vocabulary_size() const { return size_t(parts_->largest_id + 1); }
std::optional<int32_t> Tokenizer::mask_id() const { return parts_->mask; }
bool Tokenizer::is_special(int32_t id) const { return parts_->special.count(id) > 0; }
std::optional<size_t> Tokenizer::model_max_length() const { return parts_->longest; }
const std::string& Tokenizer::fingerprint() const { return parts_->fingerprint; }

std::string Tokenizer::describe() const {
  return fmt::format("{}, {} pieces, {}", parts_->model->name(), parts_->model->pieces(),
                     parts_->file);
}

}  // namespace fungi
