// SPDX-License-Identifier: Apache-2.0
// The f64 inner loops of the eigen-solver, one table per instruction set. noexcept, no checks, no
// state. Internal to the library.
#pragma once

#include <cstddef>

namespace fungi {
enum class Isa;

struct EigenKernel {
  // c [m, n] −= a [m, k] · b [k, n], all row-major; transposed: a is stored as [k, m].
  using SubtractProduct = void(size_t m, size_t n, size_t k, const double* a, size_t a_stride,
                               const double* b, size_t b_stride, double* c,
                               size_t c_stride) noexcept;
  SubtractProduct *subtract_product, *subtract_transposed;

  // y[i] += s x[i] + t z[i] for two vectors at once, and Σ x[i] y[i].
  void (*add_two)(size_t n, double s, const double* x, double t, const double* z,
                  double* y) noexcept;
  double (*dot)(size_t n, const double* x, const double* y) noexcept;

  // Of the chase (eigen_chase.h). Vectors v have kBand numbers, zero from `length` or `rows` on.
  // a [length, length], of which the lower triangle is stored ← H a H with H = I − τ v vᵀ. Numbers
  // up to kBandPadding behind the diagonal are read and written back as they are.
  void (*reflect_both)(size_t length, double tau, const double* v, double* a,
                       size_t stride) noexcept;
  // product [rows] = c [rows, kBand] · v.
  void (*multiply_band)(size_t rows, const double* c, size_t stride, const double* v,
                        double* product) noexcept;
  // c [rows, kBand] ← H' (c − left vᵀ) with H' = I − τ' u uᵀ; u_left is u · left.
  void (*reflect_left)(size_t rows, double* c, size_t stride, const double* left, const double* v,
                       double tau, const double* u, double u_left) noexcept;
  // z ← (I − σ u uᵀ) (I − τ v vᵀ) z for `columns` vectors side by side. u meets u_length rows from
  // the first on, v meets `length` rows from the second on; u_length − 1 ≤ length ≤ u_length.
  void (*reflect_columns)(size_t length, double tau, const double* v, size_t u_length, double sigma,
                          const double* u, double* z) noexcept;
  size_t columns;
};

constexpr size_t kBand = 48;        // distance of the outermost diagonal of the band
constexpr size_t kBandPadding = 8;  // a register, at least

const EigenKernel& eigen_kernel(Isa isa);

extern const EigenKernel kEigenGeneric, kEigenAvx2, kEigenAvx512;

}  // namespace fungi
