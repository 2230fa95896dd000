// SPDX-License-Identifier: Apache-2.0
// Means and products of columns over a stream of rows, for PCA and CKA. Products are f32 sums (on
// tiles: of four bf16 products of the split number) over blocks of a fixed number of rows; blocks
// are added in f64. However the rows arrive and however many threads help, the blocks are the same,
// and so are the bytes of the result. Internal to the library.
#pragma once

#include <cstddef>
#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"
#include "fungi/pca/covariance_kernel.h"

namespace fungi {

class Comm;

struct Moments {
  size_t rows = 0;
  std::vector<double> mean;  // [width]
  Matrix<double> scatter;    // [width, width]: Σ (x − mean)(x − mean)ᵀ
};

class Covariance {
 public:
  enum class Products { automatic, f32, split_bf16 };

  explicit Covariance(size_t width, Products products = Products::automatic);

  // Every rank takes all rows and multiplies its share of the tiles; finish(), a collective call
  // then, puts them together. Each tile is summed as by one rank, so that the bytes are the same.
  void share(Comm& ranks) { ranks_ = &ranks; }

  // Takes more rows. Error naming the row (counted over all calls) when there is NaN or infinity.
  void add(View<const float> rows, Pool& pool);
  size_t rows() const { return taken_ + waiting_; }
  size_t width() const { return width_; }

  // The result so far; the object is empty afterwards. Error without rows.
  Moments finish(Pool& pool);

 private:
  void take_block(View<const float> block, Pool& pool);
  std::vector<double> take_panels(View<const float> block, Pool& pool);
  template <class Product>
  void add_tiles(Pool& pool, Product product);
  void multiply(size_t rows, Pool& pool);
  void multiply_split(size_t rows, Pool& pool);
  size_t tiles() const;
  size_t tile_columns(size_t tile) const;
  float* panel(size_t p);

  bool is_own(size_t task) const;
  void put_together();

  size_t width_;
  Comm* ranks_ = nullptr;
  Products products_;
  const CovarianceKernel* kernel_;
  size_t taken_ = 0, waiting_ = 0;
  Matrix<float> buffer_;      // rows that do not fill a block yet
  std::vector<float> shift_;  // near the mean: keeps the products small (the first block's mean)
  std::vector<double> sum_;   // of shifted columns
  Buffer panels_;             // the block, shifted, in panels of columns
  Matrix<double> scatter_;    // lower triangle of tiles
};

}  // namespace fungi
