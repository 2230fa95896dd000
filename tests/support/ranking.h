// SPDX-License-Identifier: Apache-2.0
// The ranks of a query's positives in a complete ranking, row by row: the plain way to count them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fungi/evaluate/retrieval.h"

namespace fungi::test {

inline std::vector<size_t> ranks_in(const std::vector<uint32_t>& ranking,
                                    const Relevance& relevance) {
  const auto holds = [](const std::vector<uint32_t>& rows, uint32_t row) {
    return std::find(rows.begin(), rows.end(), row) != rows.end();
  };
  std::vector<size_t> ranks;
  size_t rank = 0;
  for (uint32_t row : ranking) {
    if (holds(relevance.positive, row)) ranks.push_back(rank);
    if (!holds(relevance.junk, row)) ++rank;
  }
  return ranks;
}

}  // namespace fungi::test
