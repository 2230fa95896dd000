// SPDX-License-Identifier: Apache-2.0
// Rows of length one.
#pragma once

#include <vector>

#include "fungi/base/matrix.h"

namespace fungi {

// unit = x / |x| per row, with norms and products in f64; a zero row stays zero with norm 0. May be
// in place. A row that holds NaN or infinity has a norm that is not finite, and no unit row. (What
// a projection gives is divided by its norm instead, which may round otherwise: projection.h.)
std::vector<double> normalise_rows(View<const float> x, View<float> unit);

}  // namespace fungi
