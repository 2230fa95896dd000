// SPDX-License-Identifier: Apache-2.0
// Means and products of columns over a stream of rows, for PCA and CKA. Products are f32 sums over
// blocks of a fixed number of rows (covariance_block.h), which are added in f64 in the order of the
// rows. However the rows arrive and however many threads or processes help, the blocks are the
// same, and so are the bytes of the result. Internal to the library.
#pragma once

#include <cstddef>
#include <vector>

#include "fungi/base/load_run.h"
#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"
#include "fungi/pca/covariance_block.h"

namespace fungi {

class Comm;

struct Moments {
  size_t rows = 0;
  std::vector<double> mean;  // [width]
  Matrix<double> scatter;    // [width, width]: Σ (x − mean)(x − mean)ᵀ
};

class Covariance {
 public:
  using Products = BlockProducts::Products;

  explicit Covariance(size_t width, Products products = Products::automatic);

  // Takes more rows. Error naming the row (counted over all calls) when there is NaN or infinity.
  void add(View<const float> rows, Pool& pool);
  size_t rows() const { return taken_ + waiting_; }
  size_t width() const { return width_; }

  // The result so far; the object is empty afterwards. Error without rows.
  Moments finish(Pool& pool);

 private:
  void take_block(View<const float> block, Pool& pool);

  size_t width_;
  Products kind_;
  BlockProducts products_;
  size_t taken_ = 0, waiting_ = 0;
  Matrix<float> buffer_;     // rows that do not fill a block yet
  std::vector<double> sum_;  // of shifted columns
  Matrix<double> scatter_;   // lower triangle of tiles
};

// Collective: the moments of `total` rows at rank 0, elsewhere none. Each rank asks for rows of its
// own alone, a block at a time; sums go from rank to rank in the order of the blocks, so that they
// are those of one process.
Moments moments_on_ranks(size_t total, size_t width, const LoadRun& load, Pool& pool, Comm& comm,
                         Covariance::Products products = Covariance::Products::automatic);

// From sums of shifted columns, and the lower triangle of their products.
Moments moments_of(size_t rows, const std::vector<float>& shift, const std::vector<double>& sum,
                   Matrix<double> scatter, Pool& pool);

}  // namespace fungi
