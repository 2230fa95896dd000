// SPDX-License-Identifier: Apache-2.0
// The fused end of a GEMM: a block of finished sums in cache goes through bias, activation, scale
// and residual to the outputs, in the order that table.h says. One code for whole and partial
// registers. Internal to this room.
#pragma once

#include "fungi/kernel/activation.h"

namespace fungi::kernel {
namespace {

// Rows of finished sums, a register of columns at a time: column(j)(i) is what stands in row i from
// column j on. Sums of int8 (bytes.h) are whole numbers that become floats there.
struct Sums {
  const float* at;
  size_t stride;

  struct Column {
    const float* at;
    size_t stride;
    FUNGI_INLINE Floats operator()(size_t i) const { return load(at + i * stride); }
    FUNGI_INLINE Floats plus(size_t i, Floats bias) const { return (*this)(i) + bias; }
  };
  FUNGI_INLINE Column column(size_t j) const { return {at + j, stride}; }
};

// An epilogue that begins at (row, col) of the output. Bytes: what it gives will be bytes again.
template <class E, bool Bytes = false>
struct Outlet {
  const float *bias, *scale, *residual;
  float *pre, *out;
  E* elements;
  size_t pre_stride, residual_stride, out_stride, element_stride;

  Outlet(const Epilogue& e, size_t row, size_t col)
      : bias(e.bias ? e.bias + col : nullptr),
        scale(e.scale ? e.scale + col : nullptr),
        residual(e.residual ? e.residual + row * e.residual_stride + col : nullptr),
        pre(e.pre_activation ? e.pre_activation + row * e.pre_stride + col : nullptr),
        out(e.out ? e.out + row * e.out_stride + col : nullptr),
        elements(e.element_out ? static_cast<E*>(e.element_out) + row * e.element_stride + col
                               : nullptr),
        pre_stride(e.pre_stride),
        residual_stride(e.residual_stride),
        out_stride(e.out_stride),
        element_stride(e.element_stride) {}

  template <Activation A>
  FUNGI_INLINE static Floats finished(Floats y) {
    if constexpr (Bytes && A == Activation::gelu)
      return gelu_for_bytes(y);
    else
      return activated<A, sizeof(E) == 2>(y);
  }

  // Sums of row i, columns [0, cols), readable up to the next whole register.
  template <Activation A, class From>
  FUNGI_INLINE void take(size_t i, size_t cols, const From& sums) const {
    for_each_vector(cols, [&](size_t j, size_t count) FUNGI_FORCE {
      const auto column = sums.column(j);
      Floats y = bias ? column.plus(i, load(bias + j, count)) : column(i);
      if (pre) store(pre + i * pre_stride + j, count, y);
      y = finished<A>(y);
      if (scale) y *= load(scale + j, count);
      if (residual) y += load(residual + i * residual_stride + j, count);
      if (out) store(out + i * out_stride + j, count, y);
      if (elements) store_elements(elements + i * element_stride + j, count, y);
    });
  }

  // Rows [first, last) of two whole registers each. Nearly every product ends in a bias and then
  // either elements, or a residual and f32: for these the same operations, with all that the rows
  // share in registers. take() reads it again after every store, which might have changed it, and
  // between tiles there is no time for that.
  template <Activation A, class From>
  FUNGI_INLINE void take_rows(size_t first, size_t last, const From& sums) const {
    constexpr size_t kWidth = 2 * kLanes;
    const auto left = sums.column(0), right = sums.column(kLanes);
    const bool common = bias && !pre && !scale;
    if (common && elements && !residual && !out) {
      const Floats low = load(bias), high = load(bias + kLanes);
      const size_t stride = element_stride;
      E* to = elements + first * stride;
      for (size_t i = first; i < last; ++i, to += stride) {
        store_two(to, finished<A>(left.plus(i, low)), finished<A>(right.plus(i, high)));
      }
    } else if (common && !elements && residual && out) {
      const Floats low = load(bias), high = load(bias + kLanes);
      const size_t stride = out_stride, other = residual_stride;
      const float* add = residual + first * other;
      float* to = out + first * stride;
      for (size_t i = first; i < last; ++i, to += stride, add += other) {
        store(to, finished<A>(left.plus(i, low)) + load(add));
        store(to + kLanes, finished<A>(right.plus(i, high)) + load(add + kLanes));
      }
    } else {
      for (size_t i = first; i < last; ++i) take<A>(i, kWidth, sums);
    }
  }
};

}  // namespace
}  // namespace fungi::kernel
