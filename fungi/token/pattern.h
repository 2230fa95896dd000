// SPDX-License-Identifier: Apache-2.0
// What a part of tokenizer.json looks for in texts: a string or a regular expression.
// Internal to this room.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "fungi/token/part_json.h"
#include "fungi/token/regex.h"
#include "fungi/token/unicode.h"

namespace fungi::token {

class Pattern {
 public:
  explicit Pattern(PartFields& part);
  explicit Pattern(std::string_view regex) : regex_(std::in_place, regex, "") {}

  // For all, from left to right: found(begin, end). They do not overlap.
  template <class Found>
  void for_each_match(std::string_view text, const Found& found) const {
    if (!regex_) {
      for (size_t at = 0; (at = text.find(string_, at)) != std::string_view::npos;) {
        found(at, at + string_.size());
        at += string_.size();
      }
      return;
    }
    size_t steps = kFirstSteps + kStepsPerByte * text.size();
    size_t last = std::string_view::npos;  // where the one before ended
    for (size_t at = 0; at < text.size();) {
      const auto end = regex_->match_at(text, at, steps);
      const bool empty = end == at;
      if (end && !(empty && at == last)) found(at, *end), last = *end;
      at = end && !empty ? *end : at + bytes_of(text[at]);
    }
  }
  bool is_regex() const { return regex_.has_value(); }

 private:
  // What the patterns of published models need is far below: about 30 steps for a byte.
  static constexpr size_t kFirstSteps = 100000, kStepsPerByte = 1000;
  std::string string_;
  std::optional<Regex> regex_;
};

}  // namespace fungi::token
