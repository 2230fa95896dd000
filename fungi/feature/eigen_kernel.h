// SPDX-License-Identifier: Apache-2.0
// The f64 inner loops of eigen.cpp, one table per instruction set. noexcept, no checks, no state.
#pragma once

#include <cstddef>

namespace fungi {
enum class Isa;

struct EigenKernel {
  // Rows [begin, end) of the upper triangle of a symmetric a [n, n]:
  //   p[r] = Σ_{c ≥ r} a[r,c] v[c]  and  q[c] += a[r,c] v[r] for c > r.
  void (*symmetric_product)(size_t begin, size_t end, size_t n, const double* a, size_t stride,
                            const double* v, double* p, double* q) noexcept;

  // c [m, n] −= a [m, k] · b [k, n], all row-major.
  void (*subtract_product)(size_t m, size_t n, size_t k, const double* a, size_t a_stride,
                           const double* b, size_t b_stride, double* c, size_t c_stride) noexcept;

  // y[i] += s x[i] + t z[i] for two vectors at once, and Σ x[i] y[i].
  void (*add_two)(size_t n, double s, const double* x, double t, const double* z,
                  double* y) noexcept;
  double (*dot)(size_t n, const double* x, const double* y) noexcept;
};

const EigenKernel& eigen_kernel(Isa isa);

}  // namespace fungi
