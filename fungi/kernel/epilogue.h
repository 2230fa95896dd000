// SPDX-License-Identifier: Apache-2.0
// The fused end of a GEMM: a block of finished sums in cache goes through bias, activation, scale
// and residual to the outputs, in the order that table.h says. One code for whole and partial
// registers.
#pragma once

#include "fungi/kernel/activation.h"

namespace fungi::kernel {
namespace {

// An epilogue that begins at (row, col) of the output.
template <class E>
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

  // Sums of row i, columns [0, cols), readable up to the next whole register.
  template <Activation A>
  FUNGI_INLINE void take(size_t i, size_t cols, const float* sums) const {
    for_each_vector(cols, [&](size_t j, size_t count) FUNGI_FORCE {
      Floats y = load(sums + j);
      if (bias) y += load(bias + j, count);
      if (pre) store(pre + i * pre_stride + j, count, y);
      y = activated<A, sizeof(E) == 2>(y);
      if (scale) y *= load(scale + j, count);
      if (residual) y += load(residual + i * residual_stride + j, count);
      if (out) store(out + i * out_stride + j, count, y);
      if (elements) store_elements(elements + i * element_stride + j, count, y);
    });
  }
};

}  // namespace
}  // namespace fungi::kernel
