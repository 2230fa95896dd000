// SPDX-License-Identifier: Apache-2.0
#include "fungi/base/json.h"

#include <nlohmann/json.hpp>

namespace fungi {
namespace {

constexpr size_t kDeepest = 64;

bool too_deep(std::string_view text) {
  size_t depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\')
      ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && (c == '{' || c == '[') && ++depth > kDeepest)
      return true;
    else if (!quoted && (c == '}' || c == ']') && depth > 0)
      --depth;
  }
  return false;
}

}  // namespace

nlohmann::json parse_json(std::string_view text) {
  using nlohmann::json;
  if (too_deep(text)) return json(json::value_t::discarded);
  return json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace fungi
