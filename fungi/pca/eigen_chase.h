// SPDX-License-Identifier: Apache-2.0
// The second stage of the eigen-solver: a band B = Q T Qᵀ becomes three diagonals T. Sweep s brings
// column s to its place by one reflection of kBand rows, which fills a block below the band; the
// first column of that block is reflected in turn, and so on down to the last row. What remains of
// the blocks is met by the next sweep, shifted by one. Internal to this room.
#pragma once

#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"
#include "fungi/pca/eigen_kernel.h"

namespace fungi {

class Chase {
 public:
  // a holds b(i, j) for i ≤ j ≤ i + kBand as BandReduction leaves them; it is overwritten with the
  // reflections and must live as long as this.
  Chase(Matrix<double>& a, const EigenKernel& kernel, Pool& pool);

  const std::vector<double>& diagonal() const { return diagonal_; }
  const std::vector<double>& off_diagonal() const { return off_diagonal_; }  // n, the last unused

  // z [n, kernel.columns] ← Q z.
  void transform_back(double* z) const;

 private:
  struct Sweep;
  void advance(Sweep& sweep, double* band);

  Matrix<double>& reflections_;  // row s: those of sweep s side by side, from column s + 1 on
  const size_t n_;
  const EigenKernel& kernel_;
  Matrix<double> tau_;  // [sweep, step]
  std::vector<double> diagonal_, off_diagonal_;
};

}  // namespace fungi
