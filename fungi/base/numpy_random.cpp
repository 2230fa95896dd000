// SPDX-License-Identifier: Apache-2.0
#include "fungi/base/numpy_random.h"

#include <numeric>
#include <utility>

namespace fungi {

uint64_t NumpyRandom::interval(uint64_t largest) {
  if (largest == 0) return 0;
  uint64_t mask = largest;
  for (unsigned shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
  const bool wide = largest > 0xffffffffu;
  for (;;) {
    uint64_t value = engine_();
    if (wide) value = value << 32 | engine_();
    if ((value & mask) <= largest) return value & mask;
  }
}

void NumpyRandom::shuffle(std::vector<size_t>& values) {
  for (size_t i = values.size(); i-- > 1;) std::swap(values[i], values[interval(i)]);
}

std::vector<size_t> NumpyRandom::permutation(size_t n) {
  std::vector<size_t> values(n);
  std::iota(values.begin(), values.end(), size_t{0});
  shuffle(values);
  return values;
}

}  // namespace fungi
