// SPDX-License-Identifier: Apache-2.0
// The products of the columns of one block of rows, in f32 (on tiles: of four bf16 products of the
// split number), of which sums over many rows are made. Internal to this room.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"

namespace fungi {

struct CovarianceKernel;

class BlockProducts {
 public:
  enum class Products { automatic, f32, split_bf16 };

  // Rows of a block: long enough that adding in f64 costs little, short enough for f32 sums.
  static constexpr size_t kRows = 2304;
  static constexpr size_t kTile = 192;  // columns of a tile: whole panels

  explicit BlockProducts(size_t width, Products products = Products::automatic);

  // Near the mean: keeps the products small. That of the first block taken, if none is given.
  const std::vector<float>& shift() const { return shift_; }
  void set_shift(std::vector<float> shift) { shift_ = std::move(shift); }

  // Takes up to kRows rows; returns the sums of their shifted columns. Error naming the row, as
  // counted from first_row, where there is NaN or infinity.
  std::vector<double> take(View<const float> block, size_t first_row, Pool& pool);

  // Tiles of columns i and j ≤ i, numbered along the rows of the lower triangle.
  size_t tiles() const;
  static std::pair<size_t, size_t> tile_of(size_t task);
  size_t tile_columns(size_t tile) const;

  // The products of the block taken last: tile [kTile, kTile], where i = j its lower half. From all
  // threads of the pool.
  using UseTile = std::function<void(size_t i, size_t j, const Matrix<float>& tile)>;
  void each_tile(Pool& pool, const UseTile& use);

 private:
  std::vector<double> take_panels(View<const float> block, size_t first_row, Pool& pool);
  template <class Product>
  void each_product(Pool& pool, const UseTile& use, Product product);
  void multiply(Pool& pool, const UseTile& use);
  void multiply_split(Pool& pool, const UseTile& use);
  float* panel(size_t p);

  size_t width_, rows_ = 0;
  Products products_;
  const CovarianceKernel* kernel_;
  std::vector<float> shift_;
  Buffer panels_;  // the block, shifted, in panels of columns
};

}  // namespace fungi
