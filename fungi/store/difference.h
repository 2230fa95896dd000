// SPDX-License-Identifier: Apache-2.0
// Where two JSON values differ first; for messages. Not for public headers.
// Internal to the library.
#pragma once

#include <optional>
#include <string>

#include "fungi/store/manifest.h"
#include "fungi/store/text.h"

namespace fungi::store {

struct Difference {
  std::string path, expected, found;  // values as JSON, or "nothing"
};
// Neither the order of an object's fields nor the spelling of a number counts.
std::optional<Difference> first_difference(const Json& expected, const Json& found,
                                           const std::string& path = "");

// Error that names both values.
[[noreturn]] void fail_different(const Difference& difference, const std::string& place,
                                 const std::string& hint);

// What a message says of a block: its width, or [rows, width].
Json shape_of(const StoreBlock& block);

// Everything that must be equal where nobody says otherwise: pipeline, precision, model, settings,
// type and blocks.
Json identity(const StoreSpec& spec);

}  // namespace fungi::store
