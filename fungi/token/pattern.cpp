// SPDX-License-Identifier: Apache-2.0
#include "fungi/token/pattern.h"

namespace fungi::token {

Pattern::Pattern(PartFields& part) {
  const PatternText pattern = pattern_text(part);
  if (pattern.text.empty()) part.refuse("pattern", "a text of at least one character");
  if (pattern.is_regex)
    regex_.emplace(pattern.text, part.place());
  else
    string_ = pattern.text;
}

}  // namespace fungi::token
