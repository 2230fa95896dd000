// SPDX-License-Identifier: Apache-2.0
// Characters and their properties, as utf8proc knows them. Texts are valid UTF-8 everywhere behind
// first_invalid_byte(). Internal to this room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fungi::token {

std::optional<size_t> first_invalid_byte(std::string_view text);
bool is_ascii(std::string_view text);

inline size_t bytes_of(char first) {
  const auto byte = uint8_t(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// The character that begins at `at`, which moves behind it.
inline char32_t next_char(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return char32_t(uint8_t(text[at + i])); };
  const size_t bytes = bytes_of(text[at]);
  char32_t c = byte(0);
  if (bytes == 2) c = (c & 0x1F) << 6 | (byte(1) & 0x3F);
  if (bytes == 3) c = (c & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  if (bytes == 4)
    c = (c & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
  at += bytes;
  return c;
}

inline char32_t char_at(std::string_view text, size_t at) { return next_char(text, at); }
char32_t char_before(std::string_view text, size_t end);  // that ends there; there is one
void append_char(std::string& text, char32_t c);
size_t count_chars(std::string_view text);

// General categories as bits, so that a set of them is one number.
using Categories = uint32_t;
Categories category_of(char32_t c);
// "L", "Lu", "Cn" ...; nothing where there is no such category.
std::optional<Categories> categories_named(std::string_view name);

bool is_space(char32_t c);        // White_Space
bool is_word(char32_t c);         // \w as Unicode recommends it
bool is_punctuation(char32_t c);  // P*, or any ASCII character that is a sign
bool is_control(char32_t c);      // C*, but not what Unicode has not assigned yet
bool is_nonspacing_mark(char32_t c);
bool is_mark(char32_t c);
bool is_numeric(char32_t c);  // N*

void append_lower(std::string& text, char32_t c);

enum class Form { nfc, nfd, nfkc, nfkd };
void append_normalized(std::string& out, std::string_view text, Form form);

// The end of the grapheme cluster (what a reader takes for one character) that begins at `at`.
size_t grapheme_end(std::string_view text, size_t at);

}  // namespace fungi::token
