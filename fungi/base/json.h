// SPDX-License-Identifier: Apache-2.0
// JSON that a stranger wrote. Not for public headers.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace fungi {

// Discarded (is_discarded()) when it is no JSON, or nested deeper than any file we know has a
// reason to be: the parser does not mind, but copying, comparing and printing what it makes is
// recursive.
nlohmann::json parse_json(std::string_view text);

}  // namespace fungi
