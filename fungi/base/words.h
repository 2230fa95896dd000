// SPDX-License-Identifier: Apache-2.0
// How messages, hints and notes of the library name what a caller can set or run: between
// backticks, by its name here. `keep_factors`, `kind=flat` and `stated_facts[heads]=N` are members
// of option structs, `extract` is a work. Each face has one table and shows the names it gives
// them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace fungi {

struct Word {  // `name[key]=value`; key and value may be empty
  std::string_view name, key, value;
};

// The text with `say` of each word in its place; a word of which it says nothing stays, and so does
// anything else that stands between backticks.
std::string with_words(std::string_view text,
                       const std::function<std::optional<std::string>(const Word&)>& say);

}  // namespace fungi
