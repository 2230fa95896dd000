// SPDX-License-Identifier: Apache-2.0
// Bytes as text (RFC 4648, with padding). Internal to the library.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fungi {

std::string to_base64(std::span<const uint8_t> bytes);
// Nothing where a character is none of the 64; padding may be missing.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace fungi
