// SPDX-License-Identifier: Apache-2.0
// Linear centred kernel alignment between blocks of features: ‖XᵀY‖² / (‖XᵀX‖ ‖YᵀY‖) of the centred
// blocks. All pairs come from one covariance of the blocks side by side, so rows stream by once and
// only width² numbers are kept.
#pragma once

#include <string>
#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"
#include "fungi/pca/covariance.h"
#include "fungi/store/store.h"

namespace fungi {

// Blocks with the same number of rows. Result [blocks, blocks], symmetric, ones on the diagonal.
// Errors: no blocks, rows that differ, fewer than two rows, NaN, a block without variation (naming
// its number).
Matrix<double> linear_cka(const std::vector<View<const float>>& blocks, Pool& pool);

// The same for blocks of a store, read in parts: it may be larger than memory. Errors name blocks
// by their names.
Matrix<double> linear_cka(const Store& store, const std::vector<std::string>& blocks, Pool& pool);

// The same over a stream: each call brings some rows of every block.
class CkaStream {
 public:
  // names: of the blocks, in messages; their numbers if none are given.
  explicit CkaStream(std::vector<size_t> widths, std::vector<std::string> names = {});
  void add(const std::vector<View<const float>>& blocks, Pool& pool);
  void add_joined(View<const float> rows, Pool& pool);  // the blocks side by side
  Matrix<double> finish(Pool& pool);

 private:
  std::vector<size_t> widths_;
  std::vector<std::string> names_;
  Covariance covariance_;
};

}  // namespace fungi
