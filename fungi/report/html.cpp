// SPDX-License-Identifier: Apache-2.0
#include "fungi/report/html.h"

namespace fungi::html {
namespace {

// Bytes of the well-formed UTF-8 character that `text` begins with; 0 when it begins with none
// (Unicode, table 3-7).
size_t character(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? uint8_t(text[i]) : uint8_t(0); };
  const auto follows = [&](size_t i, uint8_t low = 0x80, uint8_t high = 0xBF) {
    return byte(i) >= low && byte(i) <= high;
  };
  const uint8_t first = byte(0);
  if (first < 0x80) return first >= 0x20 || first == '\n' || first == '\t' ? 1 : 0;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF)
    return follows(1, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF) && follows(2) ? 3
                                                                                              : 0;
  if (first >= 0xF0 && first <= 0xF4)
    return follows(1, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF) && follows(2) &&
                   follows(3)
               ? 4
               : 0;
  return 0;
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t size = character(text);
    if (size == 0)
      out += "\uFFFD";
    else if (text[0] == '&')
      out += "&amp;";
    else if (text[0] == '<')
      out += "&lt;";
    else if (text[0] == '>')
      out += "&gt;";
    else if (text[0] == '"')
      out += "&quot;";
    else
      out += text.substr(0, size);
    text.remove_prefix(size ? size : 1);
  }
  return out;
}

std::string breakable(std::string_view text) {
  std::string out;
  for (const char c : escape(text)) {
    out += c;
    if (c == '+') out += "<wbr>";
  }
  return out;
}

std::string base64(std::span<const uint8_t> bytes) {
  static constexpr char digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) group = group << 8 | (i + k < bytes.size() ? bytes[i + k] : 0);
    for (size_t k = 0; k < 4; ++k)
      out += i + k <= bytes.size() ? digits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

}  // namespace fungi::html
