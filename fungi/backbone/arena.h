// SPDX-License-Identifier: Apache-2.0
// Growing storage for a workspace. Rows keep their width and type until another one is asked for,
// so the padding that kernels rely on (kernel.h, k_multiple) is zeroed once and stays zero.
#pragma once

#include "fungi/base/matrix.h"
#include "fungi/kernel/kernel.h"

namespace fungi {

// Rows of kernel elements (float or bfloat16), an odd number of cache lines apart: the same columns
// of neighbouring rows then lie in different sets of L1, also where a row is a power of two long.
class Elements {
 public:
  void ensure(const kernel::Kernel& kernel, size_t rows, size_t cols) {
    const size_t line = std::max(kernel.k_multiple, 64 / kernel.element_size);
    const size_t lines = round_up(cols, line) / line, stride = (lines + (lines + 1) % 2) * line;
    if (cols == cols_ && stride == stride_ && kernel.element_size == size_ && rows <= rows_) return;
    size_ = kernel.element_size;
    stride_ = stride;
    cols_ = cols;
    rows_ = rows;
    buffer_ = Buffer(rows * stride * size_);
  }
  std::byte* row(size_t i) { return buffer_.data() + i * stride_ * size_; }
  std::byte* at(size_t i, size_t j) { return buffer_.data() + (i * stride_ + j) * size_; }
  const std::byte* at(size_t i, size_t j) const {
    return buffer_.data() + (i * stride_ + j) * size_;
  }
  size_t stride() const { return stride_; }

 private:
  Buffer buffer_;
  size_t rows_ = 0, cols_ = 0, stride_ = 0, size_ = 0;
};

// Rows of floats.
class Floats {
 public:
  void ensure(size_t rows, size_t cols) {
    if (cols == cols_ && rows <= matrix_.rows()) return;
    cols_ = cols;
    matrix_ = Matrix<float>(rows, cols, round_up(cols, 16));
  }
  float* row(size_t i) { return matrix_.row(i); }
  const float* row(size_t i) const { return matrix_.row(i); }
  size_t stride() const { return matrix_.stride(); }
  size_t cols() const { return cols_; }

 private:
  Matrix<float> matrix_;
  size_t cols_ = 0;
};

}  // namespace fungi
