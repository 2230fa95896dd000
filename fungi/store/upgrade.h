// SPDX-License-Identifier: Apache-2.0
// Manifests of earlier format versions, as the present one has them. Internal to the store.
#pragma once

#include <string>

#include "fungi/store/text.h"

namespace fungi::store {

// Version 1 -> 2. Error naming the field and `place` where it was touched. Settings of programs of
// one's own stay as they are.
Json upgrade_from_1(Json manifest, const std::string& place);

}  // namespace fungi::store
