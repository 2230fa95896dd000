// SPDX-License-Identifier: Apache-2.0
// The largest eigenvalues of a symmetric matrix and their vectors, in f64. The heavy part
// (reduction to a band, then to three diagonals, and the way back) is our own: parallel with a
// fixed partition, hence the same bytes for any thread count. The tridiagonal problem itself goes
// to LAPACK (dstemr), a part of the spectrum at a time. Internal to the library.
#pragma once

#include <cstddef>
#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"

namespace fungi {

struct Eigen {
  std::vector<double> values;  // [count], largest first
  Matrix<double> vectors;      // [count, n], one per row, orthonormal
};

// Of a [n, n], symmetric and finite; only a(i, j) with j ≥ i is read, and all of it is overwritten.
// 1 ≤ count ≤ n.
Eigen largest_eigen(Matrix<double>& a, size_t count, Pool& pool);

}  // namespace fungi
