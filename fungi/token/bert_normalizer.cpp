// SPDX-License-Identifier: Apache-2.0
// The cleaning of BERT: no control characters, one sort of blank, Chinese characters as words, and
// for models without case neither accents nor capitals.
#include <array>

#include "fungi/token/normalizer.h"

namespace fungi::token {
namespace {

// The blocks that BERT calls Chinese: its own list, with its own gaps.
bool is_chinese(char32_t c) {
  if (c < 0x3400) return false;
  return (c >= 0x4E00 && c <= 0x9FFF) || c <= 0x4DBF || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B81F) ||
         (c >= 0x2B920 && c <= 0x2CEAF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

bool is_kept(char32_t c) {
  return c == '\t' || c == '\n' || c == '\r' || !(c == 0 || c == 0xFFFD || is_control(c));
}

class BertNormalizer final : public Normalizer {
 public:
  BertNormalizer(bool clean, bool chinese, bool strip_accents, bool lowercase)
      : clean_(clean), chinese_(chinese), strip_accents_(strip_accents), lowercase_(lowercase) {
    for (unsigned char c = 0; c < 128; ++c) {
      char& to = ascii_[c] = char(c);
      if (lowercase && c >= 'A' && c <= 'Z') to = char(c - 'A' + 'a');
      if (clean && is_space(c)) to = ' ';
      if (clean && !is_kept(c)) to = kDropped;
    }
  }

  void apply(Draft& draft) const override {
    if (is_ascii(draft.text)) return apply_ascii(draft);
    if (clean_) {
      keep_chars(draft, is_kept);
      rewrite(draft,
              [](std::string& out, char32_t c) { append_char(out, is_space(c) ? U' ' : c); });
    }
    if (chinese_)
      rewrite(draft, [](std::string& out, char32_t c) {
        const bool alone = is_chinese(c);
        if (alone) out += ' ';
        append_char(out, c);
        if (alone) out += ' ';
      });
    if (strip_accents_) {
      append_normalized(draft.spare, draft.text, Form::nfd);
      draft.take_spare();
      keep_chars(draft, [](char32_t c) { return !is_nonspacing_mark(c); });
    }
    if (lowercase_) lower_case(draft);
  }

 private:
  static constexpr char kDropped = '\x7F';  // the last character of ASCII is dropped itself

  template <class Write>
  static void rewrite(Draft& draft, const Write& write) {
    for (size_t at = 0; at < draft.text.size();) write(draft.spare, next_char(draft.text, at));
    draft.take_spare();
  }

  void apply_ascii(Draft& draft) const {
    size_t kept = 0;
    std::string& text = draft.text;
    for (const char c : text) {
      const char to = ascii_[uint8_t(c)];
      text[kept] = to;
      if (to != kDropped || !clean_)
        ++kept;
      else if (kept == 0)
        draft.at_start = false;
    }
    text.resize(kept);
  }

  bool clean_, chinese_, strip_accents_, lowercase_;
  std::array<char, 128> ascii_{};
};

}  // namespace

NormalizerPtr make_bert_normalizer(bool clean, bool chinese, bool strip_accents, bool lowercase) {
  return std::make_unique<BertNormalizer>(clean, chinese, strip_accents, lowercase);
}

NormalizerPtr make_bert_normalizer(PartFields& part) {
  const bool clean = part.get("clean_text", true), chinese = part.get("handle_chinese_chars", true);
  const bool lowercase = part.get("lowercase", true);
  return make_bert_normalizer(clean, chinese, part.get("strip_accents", lowercase), lowercase);
}

}  // namespace fungi::token
