// SPDX-License-Identifier: Apache-2.0
// Which blocks of a store are evaluated together.
#pragma once

#include <string>
#include <vector>

namespace fungi {

enum class Combine {
  steps,     // the first block, then one more at a time; where blocks are of layers, the first one,
             // each of the others alone, each beside the first one
  all,       // every combination, counted in binary: a, b, a+b, c, a+c, ...
  overview,  // for reading: of up to kMostCombined blocks every combination, fewer blocks first; of
             // more, each block alone, then the steps; of layers as `steps`
};
inline constexpr size_t kMostCombined = 4;

// Names as Store::select() reads them. Error on more blocks than anybody would wait for.
std::vector<std::string> combinations(const std::vector<std::string>& blocks, Combine rule);

}  // namespace fungi
