// SPDX-License-Identifier: Apache-2.0
// An Architecture as a JSON object, as manifests hold it: every field under its own name, numbers
// as numbers. For people, `tokens` and `parameters` stand among them, which follow from the rest.
// Internal to the library.
#pragma once

#include <string>

#include "fungi/backbone/architecture.h"

namespace fungi {

std::string to_json(const Architecture& architecture);
// Error naming the field and `place` where one is missing or of another type. Null is taken for
// "not said": the field keeps its default. Stores of format version 1 said less.
Architecture parse_architecture(const std::string& json, const std::string& place);

}  // namespace fungi
