// SPDX-License-Identifier: Apache-2.0
// Pieces with their ids. Internal to this room.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace fungi::token {

using Vocabulary = std::vector<std::pair<std::string, int32_t>>;

// Error unless it is a number that a table of words could have.
int32_t checked_id(const nlohmann::json& id, const std::string& of, const std::string& place);

Vocabulary read_vocabulary(const nlohmann::json& pieces, const std::string& place);

}  // namespace fungi::token
