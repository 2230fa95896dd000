// SPDX-License-Identifier: Apache-2.0
// JSON that a stranger wrote. Internal to the library.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace fungi {

// Discarded (is_discarded()) when it is no JSON, or nested deeper than any file we know has a
// reason to be: the parser does not mind, but copying, comparing and printing what it makes is
// recursive.
nlohmann::json parse_json(std::string_view text);
// The same, and the keys of an object in the order of the text, which the value forgets. (The
// ordered kind of nlohmann compares each key with all before it: 80000 of them take 8 seconds.)
nlohmann::json parse_json(std::string_view text, std::vector<std::string>& keys);

}  // namespace fungi
