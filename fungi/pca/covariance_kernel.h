// SPDX-License-Identifier: Apache-2.0
// The f32 inner loops of the products of columns, one table per instruction set. noexcept, no
// checks, no state. A panel is a block's rows of `columns` neighbouring columns, one row after the
// other: both factors of xᵀ y lie like that, and nothing needs to be transposed.
// Internal to this room.
#pragma once

#include <cstddef>

namespace fungi {
enum class Isa;

struct CovarianceKernel {
  size_t columns;  // of a panel

  // panel [rows, columns] = x − shift, zero from column `cols` on; sum [columns] += its columns.
  void (*take_panel)(size_t rows, size_t cols, const float* x, size_t x_stride, const float* shift,
                     float* panel, double* sum) noexcept;

  // c [columns, columns] += xᵀ y over `rows` rows of two panels.
  void (*add_products)(size_t rows, const float* x, const float* y, float* c,
                       size_t c_stride) noexcept;
};

const CovarianceKernel& covariance_kernel(Isa isa);

extern const CovarianceKernel kCovarianceGeneric, kCovarianceAvx2, kCovarianceAvx512;

}  // namespace fungi
