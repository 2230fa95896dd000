// SPDX-License-Identifier: Apache-2.0
// Growing storage for a workspace: another shape takes what memory there is, and more only where
// that is too little, so a call of a size that was there before allocates nothing. What it holds
// then is left over; only the padding that kernels rely on (table.h, k_multiple) is zero. Internal
// to this room.
#pragma once

#include <cstring>
#include <new>

#include "fungi/base/matrix.h"
#include "fungi/kernel/kernel.h"

namespace fungi {

// Makes room for so many bytes; whether the memory is new, and zero.
inline bool grow(Buffer& buffer, size_t rows, size_t row_bytes) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(rows, row_bytes, &bytes)) throw std::bad_alloc();
  if (bytes <= buffer.bytes()) return false;
  buffer = Buffer(bytes);
  return true;
}

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
    if (grow(buffer_, rows, stride * size_)) return;
    for (size_t i = 0; i < rows; ++i) std::memset(at(i, cols), 0, (stride - cols) * size_);
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
    cols_ = cols;
    stride_ = round_up(cols, 16);
    grow(buffer_, rows, stride_ * sizeof(float));
  }
  float* row(size_t i) { return reinterpret_cast<float*>(buffer_.data()) + i * stride_; }
  const float* row(size_t i) const {
    return reinterpret_cast<const float*>(buffer_.data()) + i * stride_;
  }
  size_t stride() const { return stride_; }
  size_t cols() const { return cols_; }

 private:
  Buffer buffer_;
  size_t cols_ = 0, stride_ = 0;
};

}  // namespace fungi
