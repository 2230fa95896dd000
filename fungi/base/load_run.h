// SPDX-License-Identifier: Apache-2.0
// Rows first, first + 1, ... of something that need not be in memory as a whole.
#pragma once

#include <functional>

#include "fungi/base/matrix.h"

namespace fungi {

using LoadRun = std::function<Matrix<float>(size_t first, size_t count)>;

}  // namespace fungi
