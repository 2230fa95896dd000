// SPDX-License-Identifier: Apache-2.0
// What all evaluations of stores take.
#pragma once

#include "python/watch.h"

namespace fungi::python {

struct Combined {
  std::string features;
  bool all = false;
  size_t pca = 512, memory = 0;
  unsigned threads = 0;
  std::string reduce = "pca";
  std::optional<uint32_t> seed = {};  // of what an evaluation draws; none: its own
};

// Both must outlive the work.
CombinationOptions combinations_of(const Combined& c, Watch& watch,
                                   std::vector<std::string>& notes);

}  // namespace fungi::python
