// SPDX-License-Identifier: Apache-2.0
// The assignment of rows to columns of largest total value (Kuhn, Munkres), exact, O(n³), any
// rectangle. Internal to this room.
#pragma once

#include <cstddef>
#include <vector>

#include "fungi/base/matrix.h"

namespace fungi {

// For each row the column assigned to it, or kUnassigned where there are more rows than columns.
// Every value finite.
inline constexpr size_t kUnassigned = size_t(-1);
std::vector<size_t> best_assignment(View<const double> value);

}  // namespace fungi
