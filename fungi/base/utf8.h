// SPDX-License-Identifier: Apache-2.0
// Which bytes are UTF-8 (RFC 3629). Internal to the library.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace fungi {

// Length of the well-formed character at the start of `text`, 0 when there is none.
size_t utf8_length(std::string_view text);

// Where the first byte stands that belongs to no character.
std::optional<size_t> first_bad_byte(std::string_view text);
std::string describe_bad_byte(std::string_view text, size_t at);  // for a message

}  // namespace fungi
