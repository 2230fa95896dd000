// SPDX-License-Identifier: Apache-2.0
// Which of several ranks computes which shard. Each has a run of consecutive ones, with whole
// archives where there are enough; who is done takes the last ones of whoever has most left.
// Internal to the library.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "fungi/store/writer.h"

namespace fungi {

class WorkShare {
 public:
  WorkShare(std::span<const StoreWork> works, const std::vector<StoreSample>& samples,
            size_t ranks);
  std::optional<size_t> next(size_t rank);  // the number of a work; nothing: all are given out

 private:
  std::vector<std::pair<size_t, size_t>> left_;  // of each rank: from, to
};

}  // namespace fungi
