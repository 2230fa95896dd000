// SPDX-License-Identifier: Apache-2.0
// The vocabulary of numbers: View (borrowed) and Matrix (owned), both row-major.
// Letters used for sizes everywhere: n samples, v views, t tokens, d width, h heads, m gradient
// length, k neighbours.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "fungi/base/error.h"

namespace fungi {

inline constexpr size_t kAlignment = 64;  // one cache line, one 512-bit vector, one tile row

constexpr size_t round_up(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Raw, zero-filled, 64-byte aligned memory; on huge pages where it is large. Move-only; what was
// moved from is empty. More bytes than a pointer can count are std::bad_alloc.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t bytes);
  Buffer(Buffer&& b) noexcept : data_(std::move(b.data_)), bytes_(std::exchange(b.bytes_, 0)) {}
  Buffer& operator=(Buffer&& b) noexcept {
    data_ = std::move(b.data_);
    bytes_ = std::exchange(b.bytes_, 0);
    return *this;
  }
  std::byte* data() noexcept { return data_.get(); }
  const std::byte* data() const noexcept { return data_.get(); }
  size_t bytes() const noexcept { return bytes_; }

 private:
  struct Free {
    Free() noexcept : alignment{kAlignment} {}
    explicit Free(std::align_val_t a) noexcept : alignment(a) {}
    void operator()(std::byte* p) const noexcept { ::operator delete(p, alignment); }
    std::align_val_t alignment;
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t bytes_ = 0;
};

// Borrowed rows; `stride` elements lie between the starts of two rows. View<const T> reads only.
template <class T>
struct View {
  T* data = nullptr;
  size_t rows = 0, cols = 0, stride = 0;

  View() = default;
  View(T* d, size_t r, size_t c) : data(d), rows(r), cols(c), stride(c) {}
  View(T* d, size_t r, size_t c, size_t s) : data(d), rows(r), cols(c), stride(s) {}
  operator View<const T>() const { return {data, rows, cols, stride}; }

  T* row(size_t i) const { return data + i * stride; }
  T& operator()(size_t i, size_t j) const { return data[i * stride + j]; }
  View slice(size_t first, size_t count) const { return {row(first), count, cols, stride}; }
};

// Owned, zero-filled, aligned, compact unless a stride is asked for. Move-only, as Buffer; copy()
// is explicit.
template <class T>
class Matrix {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Matrix() = default;
  Matrix(size_t rows, size_t cols) : Matrix(rows, cols, cols) {}
  Matrix(size_t rows, size_t cols, size_t stride)
      : buffer_(bytes_of(rows, stride)), rows_(rows), cols_(cols), stride_(stride) {
    if (stride < cols) fail("expected a stride of at least as many elements as columns", "Matrix");
  }
  Matrix(Matrix&& m) noexcept { *this = std::move(m); }
  Matrix& operator=(Matrix&& m) noexcept {
    buffer_ = std::move(m.buffer_);
    rows_ = std::exchange(m.rows_, 0);
    cols_ = std::exchange(m.cols_, 0);
    stride_ = std::exchange(m.stride_, 0);
    return *this;
  }

  size_t rows() const noexcept { return rows_; }
  size_t cols() const noexcept { return cols_; }
  size_t stride() const noexcept { return stride_; }
  bool empty() const noexcept { return rows_ * cols_ == 0; }
  T* data() noexcept { return reinterpret_cast<T*>(buffer_.data()); }
  const T* data() const noexcept { return reinterpret_cast<const T*>(buffer_.data()); }
  T* row(size_t i) noexcept { return data() + i * stride_; }
  const T* row(size_t i) const noexcept { return data() + i * stride_; }
  T& operator()(size_t i, size_t j) noexcept { return data()[i * stride_ + j]; }
  const T& operator()(size_t i, size_t j) const noexcept { return data()[i * stride_ + j]; }

  View<T> view() noexcept { return {data(), rows_, cols_, stride_}; }
  View<const T> view() const noexcept { return {data(), rows_, cols_, stride_}; }
  operator View<T>() noexcept { return view(); }
  operator View<const T>() const noexcept { return view(); }

  Matrix copy() const {
    Matrix m(rows_, cols_, stride_);
    if (buffer_.bytes()) std::memcpy(m.data(), data(), buffer_.bytes());
    return m;
  }

 private:
  static size_t bytes_of(size_t rows, size_t stride) {
    size_t bytes = 0;
    if (__builtin_mul_overflow(rows, stride, &bytes) ||
        __builtin_mul_overflow(bytes, sizeof(T), &bytes))
      throw std::bad_alloc();
    return bytes;
  }
  Buffer buffer_;
  size_t rows_ = 0, cols_ = 0, stride_ = 0;
};

// Some rows of a matrix in the given order (Error where there is no such row), and all of them;
// compact.
Matrix<float> gather(View<const float> matrix, std::span<const size_t> rows);
Matrix<float> copy_of(View<const float> matrix);

}  // namespace fungi
