// SPDX-License-Identifier: Apache-2.0
// Finite floats to bfloat16 and back, one at a time: to nearest, ties to even.
// Internal to the library.
#pragma once

#include <bit>
#include <cstdint>

#include "fungi/kernel/table.h"

namespace fungi {

constexpr kernel::bfloat16 to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return {static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}

constexpr float to_float(kernel::bfloat16 value) {
  return std::bit_cast<float>(uint32_t{value.bits} << 16);
}

constexpr float rounded_to_bfloat16(float value) { return to_float(to_bfloat16(value)); }

}  // namespace fungi
