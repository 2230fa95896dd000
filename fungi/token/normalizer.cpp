// SPDX-License-Identifier: Apache-2.0
// Normalizers that change characters, whatever the model. bert_normalizer.cpp and precompiled.cpp
// have those of one family of models.
#include "fungi/token/normalizer.h"

#include <algorithm>

#include "fungi/token/part_json.h"
#include "fungi/token/pattern.h"
#include "fungi/token/pre_tokenizer.h"
#include "fungi/token/unicode.h"

namespace fungi::token {
namespace {

class Sequence final : public Normalizer {
 public:
  Sequence(PartFields& part) {
    const nlohmann::json& list = part.value("normalizers");
    if (!list.is_array()) part.refuse("normalizers", "a list");
    for (const nlohmann::json& each : list)
      if (auto normalizer = read_normalizer(each, part.place()))
        all_.push_back(std::move(normalizer));
  }
  void apply(Draft& draft) const override {
    for (const auto& each : all_) {
      each->apply(draft);
      draft.require_lengths();
    }
  }

 private:
  std::vector<NormalizerPtr> all_;
};

class UnicodeForm final : public Normalizer {
 public:
  explicit UnicodeForm(Form form) : form_(form) {}
  void apply(Draft& draft) const override {
    if (is_ascii(draft.text)) return;
    append_normalized(draft.spare, draft.text, form_);
    draft.take_spare();
  }

 private:
  Form form_;
};

class Lowercase final : public Normalizer {
 public:
  void apply(Draft& draft) const override { lower_case(draft); }
};

class StripAccents final : public Normalizer {
 public:
  void apply(Draft& draft) const override {
    if (!is_ascii(draft.text)) keep_chars(draft, [](char32_t c) { return !is_mark(c); });
  }
};

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  void apply(Draft& draft) const override {
    const std::string& text = draft.text;
    size_t begin = 0, end = text.size();
    while (left_ && begin < end && is_space(char_at(text, begin))) begin += bytes_of(text[begin]);
    while (right_ && begin < end && is_space(char_before(text, end))) {
      --end;
      while ((uint8_t(text[end]) & 0xC0) == 0x80) --end;
    }
    if (begin > 0) draft.at_start = false;
    draft.text.erase(end).erase(0, begin);
  }

 private:
  bool left_, right_;
};

class Replace final : public Normalizer {
 public:
  Replace(PartFields& part) : pattern_(part), by_(part.text("content")) {
    if (pattern_.is_regex() && by_.find('$') != std::string::npos)
      part.refuse("content", "a text without parts of what was found");
  }
  void apply(Draft& draft) const override {
    size_t done = 0;
    pattern_.for_each_match(draft.text, [&](size_t begin, size_t end) {
      // What replaces several characters counts as the last of them.
      if (begin == 0 && (by_.empty() || end > bytes_of(draft.text[0]))) draft.at_start = false;
      draft.spare.append(draft.text, done, begin - done).append(by_);
      draft.require_lengths();
      done = end;
    });
    if (done == 0) return draft.spare.clear();
    draft.spare.append(draft.text, done);
    draft.take_spare();
  }

 private:
  Pattern pattern_;
  std::string by_;
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string what) : what_(std::move(what)) {}
  void apply(Draft& draft) const override {
    if (!draft.text.empty()) draft.text.insert(0, what_);
  }

 private:
  std::string what_;
};

// What machine translation of Google's cleans away. The numbers are its own, not Unicode's.
class Nmt final : public Normalizer {
 public:
  void apply(Draft& draft) const override {
    keep_chars(draft, [](char32_t c) {
      return !((c >= 1 && c <= 8) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F ||
               c == 0x8F || c == 0x9F);
    });
    for (size_t at = 0; at < draft.text.size();) {
      const char32_t c = next_char(draft.text, at);
      const bool blank = c == '\t' || c == '\n' || c == '\f' || c == '\r' || c == 0x1680 ||
                         (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 ||
                         c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
      append_char(draft.spare, blank ? U' ' : c);
    }
    draft.take_spare();
  }
};

// As of the pre-tokenizer: each byte as a character that can be seen.
class ByteLevel final : public Normalizer {
 public:
  void apply(Draft& draft) const override {
    for (const char byte : draft.text) append_byte_char(draft.spare, uint8_t(byte));
    draft.take_spare();
  }
};

NormalizerPtr make(PartFields& part) {
  const std::string& type = part.type();
  if (type == "Sequence") return std::make_unique<Sequence>(part);
  if (type == "BertNormalizer") return make_bert_normalizer(part);
  if (type == "Precompiled") return make_precompiled(part);
  if (type == "NFC") return std::make_unique<UnicodeForm>(Form::nfc);
  if (type == "NFD") return std::make_unique<UnicodeForm>(Form::nfd);
  if (type == "NFKC") return std::make_unique<UnicodeForm>(Form::nfkc);
  if (type == "NFKD") return std::make_unique<UnicodeForm>(Form::nfkd);
  if (type == "Lowercase") return std::make_unique<Lowercase>();
  if (type == "StripAccents") return std::make_unique<StripAccents>();
  if (type == "Strip") {
    const bool left = part.get("strip_left", true), right = part.get("strip_right", true);
    return std::make_unique<Strip>(left, right);
  }
  if (type == "Replace") return std::make_unique<Replace>(part);
  if (type == "Prepend") return std::make_unique<Prepend>(part.text("prepend"));
  if (type == "Nmt") return std::make_unique<Nmt>();
  if (type == "ByteLevel") return std::make_unique<ByteLevel>();
  part.refuse_type();
}

}  // namespace

void lower_case(Draft& draft) {
  if (is_ascii(draft.text)) {
    for (char& c : draft.text) c += c >= 'A' && c <= 'Z' ? 'a' - 'A' : 0;
    return;
  }
  for (size_t at = 0; at < draft.text.size();) append_lower(draft.spare, next_char(draft.text, at));
  draft.take_spare();
}

NormalizerPtr read_normalizer(const nlohmann::json& json, const std::string& place) {
  if (json.is_null()) return nullptr;
  PartFields part(json, "normalizer", place);
  NormalizerPtr made = make(part);
  part.finish();
  return made;
}

}  // namespace fungi::token
