// SPDX-License-Identifier: Apache-2.0
// Lists of names in JSON, as files of ground truth hold them. Internal to the library.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace fungi {

// Errors: no JSON; no list of texts under that key.
nlohmann::json parse_list(std::string_view text, const std::string& place);
std::vector<std::string> name_list(const nlohmann::json& from, const char* key,
                                   const std::string& place);

}  // namespace fungi
