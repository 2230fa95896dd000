// SPDX-License-Identifier: Apache-2.0
#include "fungi/token/part_json.h"

#include <fmt/format.h>

#include "fungi/base/error.h"

namespace fungi::token {
namespace {

constexpr size_t kLongestShown = 100;

}  // namespace

PartFields::PartFields(const nlohmann::json& part, const char* kind, const std::string& place)
    : kind_(kind), place_(place), fields_(part, kind, place) {
  type_ = get<std::string>("type", "");
}

bool PartFields::is_there(const std::string& name) {
  return fields_.has(name) && !fields_.value(name).is_null();
}

void PartFields::leave(const std::string& name) { is_there(name); }

void PartFields::refuse(const std::string& name, const std::string& expected) {
  using nlohmann::json;
  // An Error of its own where there is none. A vocabulary is a long text.
  std::string found = fields_.value(name).dump(-1, ' ', true, json::error_handler_t::replace);
  if (found.size() > kLongestShown) found.replace(kLongestShown, std::string::npos, "...");
  fail(fmt::format("the field '{}{}{}' holds {}, which is not {}", kind_, *kind_ ? "." : "", name,
                   found, expected),
       place_, "fetch the file again, or use another model");
}

void PartFields::refuse_type() const {
  fail(fmt::format("the {} '{}' is none that this version understands", kind_, type_), place_,
       "use a model whose tokenizer is one of those in docs/formats.md");
}

PatternText pattern_text(PartFields& part) {
  const nlohmann::json& pattern = part.value("pattern");
  for (const char* kind : {"String", "Regex"})
    if (pattern.is_object() && pattern.size() == 1 && pattern.contains(kind) &&
        pattern[kind].is_string())
      return {pattern[kind].get<std::string>(), std::string_view(kind) == "Regex"};
  part.refuse("pattern", "a text as 'String' or 'Regex'");
}

}  // namespace fungi::token
