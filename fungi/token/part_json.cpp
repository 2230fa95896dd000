// SPDX-License-Identifier: Apache-2.0
#include "fungi/token/part_json.h"

#include <fmt/format.h>

#include "fungi/base/error.h"

namespace fungi::token {

PartFields::PartFields(const nlohmann::json& part, const char* kind, const std::string& place)
    : kind_(kind), place_(place), fields_(part, kind, place) {
  type_ = get<std::string>("type", "");
}

bool PartFields::is_there(const std::string& name) {
  return fields_.has(name) && !fields_.value(name).is_null();
}

void PartFields::leave(const std::string& name) { is_there(name); }

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
