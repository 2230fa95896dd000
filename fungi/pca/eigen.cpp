// SPDX-License-Identifier: Apache-2.0
#include "fungi/pca/eigen.h"

#include <lapacke.h>

#include <algorithm>
#include <cmath>

#include "fungi/base/cpu.h"
#include "fungi/base/error.h"
#include "fungi/pca/eigen_band.h"
#include "fungi/pca/eigen_chase.h"

namespace fungi {
namespace {

// LAPACK finds eigenvalues one after the other and takes the same time for each: parts of the
// spectrum go to different threads, always the same parts.
constexpr size_t kParts = 4;
constexpr size_t kSmallestPart = 32;
constexpr double kOrthogonal = 1e-11;  // between parts; more means a cluster was cut

struct Tridiagonal {
  const std::vector<double>&diagonal, &off_diagonal;

  // Eigenpairs [first, first + count), counted from the smallest; vectors as rows [count, n].
  bool solve(size_t first, size_t count, double* values, double* vectors) const {
    std::vector<double> d = diagonal, e = off_diagonal, found_values(d.size());
    std::vector<lapack_int> support(2 * d.size());
    const lapack_int n = lapack_int(d.size());
    lapack_int found = 0;
    lapack_logical try_accurate = 1;
    const lapack_int info = LAPACKE_dstemr(LAPACK_COL_MAJOR, 'V', 'I', n, d.data(), e.data(), 0, 0,
                                           lapack_int(first + 1), lapack_int(first + count), &found,
                                           found_values.data(), vectors, n, lapack_int(count),
                                           support.data(), &try_accurate);
    std::copy_n(found_values.data(), count, values);
    return info == 0 && size_t(found) == count;
  }

  // The QR iteration: slow, but it does not give up on a few pathological matrices as dstemr does.
  void solve_all(std::vector<double>& values, Matrix<double>& vectors) const {
    std::vector<double> d = diagonal, e = off_diagonal;
    const size_t n = d.size(), count = values.size();
    Matrix<double> all(n, n);
    if (LAPACKE_dsteqr(LAPACK_COL_MAJOR, 'I', lapack_int(n), d.data(), e.data(), all.data(),
                       lapack_int(n)) != 0)
      fail("the eigenvalue iteration did not converge", "covariance",
           "look for extreme values in the features");
    std::copy_n(d.data() + n - count, count, values.data());
    std::copy_n(all.row(n - count), count * n, vectors.data());
  }
};

// Whether rows of different parts are orthogonal.
bool parts_agree(const Matrix<double>& vectors, size_t part, const EigenKernel& kernel,
                 Pool& pool) {
  const size_t count = vectors.rows(), n = vectors.cols();
  std::vector<char> good(kParts, true);
  pool.parallel_for(kParts - 1, 1, [&](size_t p, size_t, unsigned) {
    const size_t begin = p * part, rows = part, rest = count - begin - rows;
    Matrix<double> columns(n, rows), products(rest, rows);
    for (size_t i = 0; i < rows; ++i)
      for (size_t c = 0; c < n; ++c) columns(c, i) = vectors(begin + i, c);
    kernel.subtract_product(rest, rows, n, vectors.row(begin + rows), n, columns.data(), rows,
                            products.data(), rows);
    for (size_t i = 0; i < rest * rows; ++i)
      if (!(std::fabs(products.data()[i]) <= kOrthogonal)) good[p] = false;
  });
  return std::all_of(good.begin(), good.end(), [](char g) { return g; });
}

// The largest eigenpairs of the tridiagonal matrix; vectors as rows, smallest first.
void solve(const Tridiagonal& matrix, std::vector<double>& values, Matrix<double>& vectors,
           const EigenKernel& kernel, Pool& pool) {
  const size_t count = vectors.rows(), first = vectors.cols() - count;
  if (count >= kParts * kSmallestPart) {
    const size_t part = count / kParts;
    std::vector<char> good(kParts);
    pool.parallel_for(kParts, 1, [&](size_t p, size_t, unsigned) {
      const size_t begin = p * part, end = p + 1 == kParts ? count : begin + part;
      good[p] = matrix.solve(first + begin, end - begin, values.data() + begin, vectors.row(begin));
    });
    if (std::all_of(good.begin(), good.end(), [](char g) { return g; }) &&
        std::is_sorted(values.begin(), values.end()) && parts_agree(vectors, part, kernel, pool))
      return;
  }
  if (!matrix.solve(first, count, values.data(), vectors.data())) matrix.solve_all(values, vectors);
}

}  // namespace

Eigen largest_eigen(Matrix<double>& a, size_t count, Pool& pool) {
  const size_t n = a.rows();
  FUNGI_ASSERT(n > 0 && a.cols() == n && count >= 1 && count <= n);
  const EigenKernel& kernel = eigen_kernel(best_isa());
  const BandReduction band(a, kernel, pool);
  const Chase chase(a, kernel, pool);
  std::vector<double> values(count);
  Matrix<double> vectors(count, n);
  solve({chase.diagonal(), chase.off_diagonal()}, values, vectors, kernel, pool);

  Eigen out{std::vector<double>(values.rbegin(), values.rend()), Matrix<double>(count, n)};
  pool.parallel_for(count, kernel.columns, [&](size_t begin, size_t end, unsigned) {
    Matrix<double> z(n, kernel.columns);  // some vectors side by side
    for (size_t i = begin; i < end; ++i)
      for (size_t c = 0; c < n; ++c) z(c, i - begin) = vectors(count - 1 - i, c);
    chase.transform_back(z.data());
    band.transform_back(z.data());
    for (size_t i = begin; i < end; ++i)
      for (size_t c = 0; c < n; ++c) out.vectors(i, c) = z(c, i - begin);
  });
  return out;
}

}  // namespace fungi
