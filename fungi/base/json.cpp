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

nlohmann::json parse_json(std::string_view text, std::vector<std::string>& keys) {
  using nlohmann::json;
  keys.clear();
  if (too_deep(text)) return json(json::value_t::discarded);
  const auto note_key = [&](int depth, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::key && depth == 1) keys.push_back(value.get<std::string>());
    return true;
  };
  return json::parse(text, note_key, /*allow_exceptions=*/false);
}

}  // namespace fungi
