// SPDX-License-Identifier: Apache-2.0
// 8-bit codes that every table of the scan may multiply, the same on every machine: for codes that
// are kept. Internal to this room.
#pragma once

#include "fungi/search/scan_kernel.h"

namespace fungi::search {

// As ScanKernel::encode, within the limits of the narrowest sums.
CodeTerms encode_portably(bool query, size_t d_padded, const float* v, int8_t* codes) noexcept;

}  // namespace fungi::search
