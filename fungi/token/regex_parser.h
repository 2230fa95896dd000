// SPDX-License-Identifier: Apache-2.0
// From the text of a regular expression to steps. Internal to this room.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fungi/token/regex.h"

namespace fungi::token {

void parse_regex(std::string_view pattern, const std::string& place,
                 std::vector<Regex::Step>& steps, std::vector<CharSet>& sets);

}  // namespace fungi::token
