// SPDX-License-Identifier: Apache-2.0
#include "fungi/token/unicode.h"

#include <utf8proc.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "fungi/base/error.h"

namespace fungi::token {
namespace {

constexpr Categories bit(utf8proc_category_t category) { return Categories(1) << category; }

constexpr Categories kLetters = bit(UTF8PROC_CATEGORY_LU) | bit(UTF8PROC_CATEGORY_LL) |
                                bit(UTF8PROC_CATEGORY_LT) | bit(UTF8PROC_CATEGORY_LM) |
                                bit(UTF8PROC_CATEGORY_LO);
constexpr Categories kMarks =
    bit(UTF8PROC_CATEGORY_MN) | bit(UTF8PROC_CATEGORY_MC) | bit(UTF8PROC_CATEGORY_ME);
constexpr Categories kNumbers =
    bit(UTF8PROC_CATEGORY_ND) | bit(UTF8PROC_CATEGORY_NL) | bit(UTF8PROC_CATEGORY_NO);
constexpr Categories kPunctuation = bit(UTF8PROC_CATEGORY_PC) | bit(UTF8PROC_CATEGORY_PD) |
                                    bit(UTF8PROC_CATEGORY_PS) | bit(UTF8PROC_CATEGORY_PE) |
                                    bit(UTF8PROC_CATEGORY_PI) | bit(UTF8PROC_CATEGORY_PF) |
                                    bit(UTF8PROC_CATEGORY_PO);
constexpr Categories kControl = bit(UTF8PROC_CATEGORY_CC) | bit(UTF8PROC_CATEGORY_CF) |
                                bit(UTF8PROC_CATEGORY_CS) | bit(UTF8PROC_CATEGORY_CO);
constexpr Categories kSeparators =
    bit(UTF8PROC_CATEGORY_ZS) | bit(UTF8PROC_CATEGORY_ZL) | bit(UTF8PROC_CATEGORY_ZP);

const utf8proc_uint8_t* bytes(std::string_view text) {
  return reinterpret_cast<const utf8proc_uint8_t*>(text.data());
}

// Symbols that Unicode counts as alphabetic although no letters: circled and squared ones.
// utf8proc knows the general category only.
bool is_alphabetic_symbol(char32_t c) {
  return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
         (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

}  // namespace

bool is_ascii(std::string_view text) {
  uint64_t seen = 0, eight;
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::memcpy(&eight, text.data() + i, 8);
    seen |= eight;
  }
  for (; i < text.size(); ++i) seen |= uint8_t(text[i]);
  return !(seen & 0x8080808080808080);
}

std::optional<size_t> first_invalid_byte(std::string_view text) {
  if (is_ascii(text)) return {};
  for (size_t at = 0; at < text.size();) {
    utf8proc_int32_t c;
    const auto used = utf8proc_iterate(bytes(text) + at, utf8proc_ssize_t(text.size() - at), &c);
    if (used <= 0) return at;
    at += size_t(used);
  }
  return {};
}

char32_t char_before(std::string_view text, size_t end) {
  size_t at = end - 1;
  while (at > 0 && (uint8_t(text[at]) & 0xC0) == 0x80) --at;
  return char_at(text, at);
}

void append_char(std::string& text, char32_t c) {
  utf8proc_uint8_t encoded[4];
  const auto size = utf8proc_encode_char(utf8proc_int32_t(c), encoded);
  text.append(reinterpret_cast<const char*>(encoded), size_t(size));
}

size_t count_chars(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += (uint8_t(c) & 0xC0) != 0x80;
  return count;
}

Categories category_of(char32_t c) { return bit(utf8proc_category(utf8proc_int32_t(c))); }

std::optional<Categories> categories_named(std::string_view name) {
  Categories found = 0;
  static constexpr const char* kNames[] = {
      "Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps",
      "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};
  static_assert(UTF8PROC_CATEGORY_LU == 1 && UTF8PROC_CATEGORY_CO == 29);
  if (name.empty()) return {};
  for (unsigned i = 0; i < 30; ++i)
    if (std::string_view(kNames[i]).substr(0, name.size()) == name) found |= Categories(1) << i;
  if (!found) return {};
  return found;
}

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return c == 0x85 || (category_of(c) & kSeparators);
}

bool is_word(char32_t c) {
  constexpr Categories kind = kLetters | kMarks | bit(UTF8PROC_CATEGORY_ND) |
                              bit(UTF8PROC_CATEGORY_NL) | bit(UTF8PROC_CATEGORY_PC);
  const bool joiner = c == 0x200C || c == 0x200D;
  return (category_of(c) & kind) || joiner || is_alphabetic_symbol(c);
}

bool is_punctuation(char32_t c) {
  if (c < 0x80)
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
  return category_of(c) & kPunctuation;
}

bool is_control(char32_t c) { return category_of(c) & kControl; }
bool is_nonspacing_mark(char32_t c) { return category_of(c) & bit(UTF8PROC_CATEGORY_MN); }
bool is_mark(char32_t c) { return category_of(c) & kMarks; }
bool is_numeric(char32_t c) { return category_of(c) & kNumbers; }

void append_lower(std::string& text, char32_t c) {
  // The one character whose small form is two: utf8proc knows single ones only.
  if (c == 0x130) return void(text += "i\u0307");
  append_char(text, char32_t(utf8proc_tolower(utf8proc_int32_t(c))));
}

void append_normalized(std::string& out, std::string_view text, Form form) {
  if (is_ascii(text)) return void(out += text);
  int options = UTF8PROC_STABLE;
  options |= form == Form::nfc || form == Form::nfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == Form::nfkc || form == Form::nfkd) options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t* result = nullptr;
  const auto size =
      utf8proc_map(bytes(text), utf8proc_ssize_t(text.size()), &result, utf8proc_option_t(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(result, &std::free);
  if (size == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  FUNGI_ASSERT(size >= 0);
  out.append(reinterpret_cast<const char*>(result), size_t(size));
}

size_t grapheme_end(std::string_view text, size_t at) {
  char32_t left = next_char(text, at);
  utf8proc_int32_t state = 0;
  while (at < text.size()) {
    size_t next = at;
    const char32_t right = next_char(text, next);
    if (utf8proc_grapheme_break_stateful(utf8proc_int32_t(left), utf8proc_int32_t(right), &state))
      break;
    left = right, at = next;
  }
  return at;
}

}  // namespace fungi::token
