// SPDX-License-Identifier: Apache-2.0
// Float to IEEE half precision, for stores that keep float16: to nearest, ties to even, overflow to
// infinity, as numpy does it. The way back is to_floats() of the checkpoint room.
// Internal to the library.
#pragma once

#include <bit>
#include <cstdint>

namespace fungi {

constexpr uint16_t half_from_float(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  uint32_t half = 0;
  if (magnitude > 0x7F800000u) {  // NaN stays NaN, quiet
    half = 0x7E00u;
  } else if (magnitude >= 0x477FF000u) {  // 65520 and above, infinity included
    half = 0x7C00u;
  } else if (magnitude >= 0x38800000u) {  // normal: rebias the exponent and drop 13 bits
    half = (magnitude - 0x38000000u + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13;
  } else if (magnitude > 0x33000000u) {  // subnormal: a multiple of 2^-24
    const uint32_t shift = 126u - (magnitude >> 23);
    const uint32_t mantissa = (magnitude & 0x7FFFFFu) | 0x800000u;
    half = mantissa >> shift;
    const uint32_t rest = mantissa & ((1u << shift) - 1u), tie = 1u << (shift - 1u);
    if (rest > tie || (rest == tie && (half & 1u))) ++half;
  }
  return static_cast<uint16_t>(sign | half);
}

}  // namespace fungi
