// SPDX-License-Identifier: Apache-2.0
// Means and products of columns over a stream of rows, for PCA and CKA. Products run through the
// f32 GEMM (on tiles: as four bf16 products of the split number) in blocks of a fixed number of
// rows; blocks are added in f64. However the rows arrive and however many threads help, the blocks
// are the same, and so are the bytes of the result.
#pragma once

#include <cstddef>
#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"
#include "fungi/kernel/kernel.h"

namespace fungi {

struct Moments {
  size_t rows = 0;
  std::vector<double> mean;  // [width]
  Matrix<double> scatter;    // [width, width]: Σ (x − mean)(x − mean)ᵀ
};

class Covariance {
 public:
  enum class Products { automatic, f32, split_bf16 };

  explicit Covariance(size_t width, Products products = Products::automatic);

  // Takes more rows. Error naming the row (counted over all calls) when there is NaN or infinity.
  void add(View<const float> rows, Pool& pool);
  size_t rows() const { return taken_ + waiting_; }
  size_t width() const { return width_; }

  // The result so far; the object is empty afterwards. Error without rows.
  Moments finish(Pool& pool);

 private:
  void take_block(View<const float> block, Pool& pool);
  void transpose(View<const float> block, Pool& pool);
  void multiply(size_t rows, Pool& pool);

  // One operand of the products of a block: packed as W, and, if split, as rows of x, too.
  struct Operand {
    Buffer elements;
    size_t stride = 0;
    kernel::PackedMatrix packed;
  };
  static void split_operand(const kernel::Kernel& table, View<const float> plain, Operand& operand);

  size_t width_;
  Products products_;
  size_t taken_ = 0, waiting_ = 0;
  Matrix<float> buffer_;      // rows that do not fill a block yet
  std::vector<float> shift_;  // near the mean: keeps the products small (the first block's mean)
  std::vector<double> sum_;   // of shifted columns
  Matrix<float> columns_;     // [width, block rows], shifted
  std::vector<Operand> operands_;  // of the last block: memory for the next
  Matrix<double> scatter_;         // lower triangle of tiles
};

}  // namespace fungi
