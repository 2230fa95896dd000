// SPDX-License-Identifier: Apache-2.0
#include "fungi/base/random.h"

#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

namespace fungi {

double RandomStream::normal(
    uint64_t index) const {  // Box-Muller on two uniforms of this index alone
  const double u = 1.0 - uniform(2 * index), w = uniform(2 * index + 1);
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * w);
}

std::vector<uint32_t> TorchRandom::permutation(uint32_t n) {
  std::vector<uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  for (uint32_t i = 0; i + 1 < n; ++i) std::swap(order[i], order[i + integer(n - i)]);
  return order;
}

}  // namespace fungi
