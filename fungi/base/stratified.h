// SPDX-License-Identifier: Apache-2.0
// scikit-learn's stratified shuffle of rows into two parts, bit for bit (SPEC 5.9). Internal to the
// library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fungi {

struct StratifiedRows {
  std::vector<size_t> first, second;  // in scikit-learn's order, which is shuffled
};

// class_of: of each row, below `classes`. first_rows and the rest are at least one per class each,
// and every class has two rows: the caller checks.
StratifiedRows stratified_shuffle(std::span<const uint32_t> class_of, size_t classes,
                                  size_t first_rows, uint32_t seed);

}  // namespace fungi
