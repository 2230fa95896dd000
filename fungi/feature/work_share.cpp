// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/work_share.h"

#include <algorithm>

namespace fungi {

WorkShare::WorkShare(std::span<const StoreWork> works, const std::vector<StoreSample>& samples,
                     size_t ranks) {
  std::vector<StoreSample> firsts(works.size());
  for (size_t w = 0; w < works.size(); ++w)
    firsts[w].container = samples[works[w].samples.front()].container;
  const std::vector<size_t> bounds = share_shards(firsts, 1, ranks);
  for (size_t r = 0; r < ranks; ++r) left_.emplace_back(bounds[r], bounds[r + 1]);
}

std::optional<size_t> WorkShare::next(size_t rank) {
  auto& own = left_[rank];
  if (own.first < own.second) return own.first++;
  auto& most = *std::max_element(left_.begin(), left_.end(), [](const auto& a, const auto& b) {
    return a.second - a.first < b.second - b.first;
  });
  if (most.first == most.second) return {};
  return --most.second;
}

}  // namespace fungi
