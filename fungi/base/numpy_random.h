// SPDX-License-Identifier: Apache-2.0
// numpy's legacy RandomState, as far as scikit-learn's splits use it, bit for bit (SPEC 5.9).
// Internal to the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace fungi {

class NumpyRandom {
 public:
  explicit NumpyRandom(uint32_t seed) : engine_(seed) {}

  // RandomState.permutation: Fisher-Yates from the end, each place drawn by masked rejection.
  std::vector<size_t> permutation(size_t n);
  void shuffle(std::vector<size_t>& values);

 private:
  uint64_t interval(uint64_t largest);  // in [0, largest]
  std::mt19937 engine_;
};

}  // namespace fungi
