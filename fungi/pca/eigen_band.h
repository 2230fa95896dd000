// SPDX-License-Identifier: Apache-2.0
// The first stage of the eigen-solver: A = Q B Qᵀ with B zero outside a band. kBand columns at a
// time are brought to the band by reflections whose product I − Vᵀ T V touches the rest of the
// matrix only as A − Vᵀ W − Wᵀ V: all heavy work is products of matrices, which do not wait for
// memory as a reduction to three diagonals at once would. Internal to this room.
#pragma once

#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"
#include "fungi/pca/eigen_kernel.h"

namespace fungi {

// v with v[0] = 1 and τ (returned) so that (I − τ v vᵀ) x = (beta, 0, …).
double reflection(const double* x, size_t length, double* v, double& beta);

class BandReduction {
 public:
  // Overwrites a (of which only j ≥ i is read) with B: b(i, j) for i ≤ j ≤ i + kBand.
  BandReduction(Matrix<double>& a, const EigenKernel& kernel, Pool& pool);

  // z [n, kernel.columns] ← Q z.
  void transform_back(double* z) const;

 private:
  // Of the rows [from − kBand, from). Where fewer reflections are needed, the last are zero.
  struct Panel {
    size_t from;
    Matrix<double> v;  // [kBand, n − from]: reflection s is zero before s, one there
    Matrix<double> t;  // [kBand, kBand]: H_1 H_2 … = I − Vᵀ T V, T upper triangular
  };
  void reduce_rows(Panel& panel);
  void multiply(const Panel& panel);
  void update(const Panel& panel, Panel* next);
  template <class Body>
  void for_blocks(size_t from, Body body);

  Matrix<double>& a_;
  const size_t n_;
  const EigenKernel& kernel_;
  Pool& pool_;
  Matrix<double> left_;   // [n, 2 kBand]: Vᵀ and Wᵀ of the panel, side by side
  Matrix<double> right_;  // [2 kBand, n]: W above V
  std::vector<Panel> panels_;
};

}  // namespace fungi
