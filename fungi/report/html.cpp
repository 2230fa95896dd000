// SPDX-License-Identifier: Apache-2.0
#include "fungi/report/html.h"

#include "fungi/base/utf8.h"

namespace fungi::html {
namespace {

// Bytes of the character that `text` begins with; 0 when it begins with none, or with a control
// character that HTML does not allow.
size_t character(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  return first < 0x20 && first != '\n' && first != '\t' ? 0 : utf8_length(text);
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

}  // namespace fungi::html
