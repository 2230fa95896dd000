// SPDX-License-Identifier: Apache-2.0
// What the multiply-adds of the innermost loop can do at most: in registers, on random data.
// Internal to this room.
#pragma once

#include "fungi/kernel/micro_kernel.h"

namespace fungi::kernel {
namespace {

template <class E>
double multiply_add_rounds(const float* random, size_t rounds) noexcept {
  constexpr size_t kChains =
      12;  // two units of latency four need eight; sixteen registers hold twelve
  using Left = LeftOf<E>;
  using Sum = typename SumOf<Left>::Register;
  Sum total[kChains];
  for (size_t c = 0; c < kChains; ++c) total[c] = Sum(load(random + c * kLanes));
  Floats factor[2];
  for (size_t f = 0; f < 2; ++f) {
    const float* from = random + (kChains + 2 * f) * kLanes;
    factor[f] = load(from);
    if (sizeof(E) == 2 && Factors<E>::kStep == 2)
      factor[f] = Floats(rounded_pairs(factor[f], load(from + kLanes)));
  }
  Floats left = factor[0], right = factor[1];
  for (size_t i = 0; i < rounds; ++i) {
    opaque(left);
    opaque(right);
#pragma GCC unroll 16
    for (size_t c = 0; c < kChains; ++c) total[c] = add_product(Left{}, left, right, total[c]);
  }
  for (size_t c = 0; c < kChains; ++c) opaque(total[c]);
  return double(rounds) * double(2 * kChains * kLanes * Factors<E>::kStep);
}

}  // namespace
}  // namespace fungi::kernel
