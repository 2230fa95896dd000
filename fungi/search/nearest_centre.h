// SPDX-License-Identifier: Apache-2.0
// The nearest of a few centres for many rows, again and again while the centres move. Exact in the
// sense of knn.h: the centre of the smallest f64 key, equal keys by the smaller number; threads,
// blocks and instruction sets change nothing.
//
// The rows are prepared once. From the second time on, a row's distance to its old centre plus the
// way that centre has gone bounds the distance to the nearest one (of inner products: the way times
// the row's length), and the scan names only centres within it; a row for which it names one centre
// has kept its own, and is not looked at. Of the cosine there is no such bound.
// Internal to this room.
#pragma once

#include <memory>
#include <vector>

#include "fungi/search/scan.h"

namespace fungi::search {

class NearestCentre {
 public:
  // Keeps the view. Error on NaN or infinity.
  NearestCentre(View<const float> rows, Metric metric, Pool& pool);
  // The number of the nearest centre, for every row.
  const std::vector<uint32_t>& assign(View<const float> centres, Pool& pool);

 private:
  void load(ScanKind kind, Pool& pool);
  void note_moves(View<const float> centres);
  double widen_bound(size_t row);
  struct Scratch;
  uint64_t assign_some(View<const float> centres, size_t begin, size_t end, unsigned worker,
                       Scratch& scratch);
  uint64_t settle(View<const float> centres, size_t row, const std::vector<Hit>& hits, Best& best);

  const View<const float> rows_;
  const ExactKey exact_;
  ScanKind kind_;
  std::unique_ptr<Scan> scan_;
  Matrix<float> centres_;          // of the last time; none before the first
  std::vector<double> moved_;      // how far each has gone since
  std::vector<uint32_t> nearest_;  // of every row
  std::vector<double> bound_;      // of the distance to it, or of its key
};

}  // namespace fungi::search
