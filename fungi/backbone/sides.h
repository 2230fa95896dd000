// SPDX-License-Identifier: Apache-2.0
// A model of pictures that looks at square ones smaller than its own input: positions are brought
// to their grid as its family does it, weights stay. Internal to the library.
#pragma once

#include <string>

#include "fungi/backbone/architecture.h"

namespace fungi {

// Error unless the model can look at pictures of that side (0: its own). `place` names who asks.
void check_side(const Architecture& a, size_t side, const std::string& place);

// The same model with that side for its input; one that check_side() has accepted.
Architecture at_side(Architecture a, size_t side);
size_t patches_at(const Architecture& a, size_t side);

}  // namespace fungi
