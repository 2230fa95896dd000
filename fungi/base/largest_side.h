// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace fungi {

// Of a picture that a model looks at, and of what it is cut from. None is larger, and sides up to
// it can be multiplied.
inline constexpr size_t kLargestSide = size_t{1} << 14;

}  // namespace fungi
