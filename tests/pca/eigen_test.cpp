// SPDX-License-Identifier: Apache-2.0
// The eigen-solver against its definition: A v = λ v, orthonormal, largest first, same bytes for
// any thread count.
#include "fungi/pca/eigen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "fungi/base/cpu.h"
#include "fungi/base/random.h"
#include "fungi/pca/eigen_band.h"
#include "fungi/pca/eigen_kernel.h"

namespace fungi {
namespace {

Matrix<double> random_symmetric(size_t n, uint64_t seed) {
  Matrix<double> a(n, n);
  const RandomStream random(seed, "eigen test");
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j <= i; ++j) a(i, j) = a(j, i) = random.normal(i * n + j);
  return a;
}

// Whatever stood in v before.
TEST(Reflection, BringsAVectorToItsFirstAxis) {
  for (const std::vector<double>& x : {std::vector<double>{3, 0, 0, 0, 0, 0, 0},
                                       {0, 0, 0, 0, 0, 0, 0},
                                       {-2, 0, 0, 0, 0, 0, 0},
                                       {1, 2, -3, 4, 5, -6, 7},
                                       {-1, 2, -3, 4, 5, -6, 7},
                                       {0, 1e-200, 0, 0, 1e-200, 0, 0},
                                       {1e200, 1e200, 0, 0, 0, 0, -1e200}}) {
    std::vector<double> v(x.size(), std::nan(""));
    double beta = 0, along = 0;
    const double tau = reflection(x.data(), x.size(), v.data(), beta);
    for (size_t i = 0; i < x.size(); ++i) along += v[i] * x[i];
    EXPECT_EQ(v[0], 1);
    const double scale = std::fabs(beta) + 1e-300;
    EXPECT_NEAR((x[0] - tau * along) / scale, beta / scale, 1e-14);
    for (size_t i = 1; i < x.size(); ++i)
      EXPECT_NEAR((x[i] - tau * along * v[i]) / scale, 0, 1e-14) << i;
  }
}

void expect_eigen(const Matrix<double>& a, const Eigen& eigen, double scale) {
  const size_t n = a.rows(), count = eigen.values.size();
  for (size_t k = 0; k < count; ++k) {
    if (k > 0) {
      EXPECT_LE(eigen.values[k], eigen.values[k - 1] + 1e-12 * scale);
    }
    for (size_t i = 0; i < n; ++i) {
      double sum = 0;
      for (size_t j = 0; j < n; ++j) sum += a(i, j) * eigen.vectors(k, j);
      ASSERT_NEAR(sum, eigen.values[k] * eigen.vectors(k, i), 1e-11 * scale) << k << " " << i;
    }
    for (size_t l = 0; l <= k; ++l) {
      double sum = 0;
      for (size_t j = 0; j < n; ++j) sum += eigen.vectors(k, j) * eigen.vectors(l, j);
      ASSERT_NEAR(sum, k == l ? 1.0 : 0.0, 1e-11) << k << " " << l;
    }
  }
}

TEST(Eigen, definition_holds_for_every_size_around_the_band) {
  Pool pool(2);
  for (size_t n : {1u,  2u,  3u,  5u,  17u, 47u, 48u, 49u,  50u,  51u,
                   64u, 65u, 95u, 96u, 97u, 98u, 99u, 145u, 200u, 257u})
    for (size_t count : {size_t{1}, (n + 1) / 2, n}) {
      SCOPED_TRACE(n);
      const Matrix<double> a = random_symmetric(n, n);
      Matrix<double> work = a.copy();
      expect_eigen(a, largest_eigen(work, count, pool), std::sqrt(double(n)) + 1);
    }
}

TEST(Eigen, known_spectrum) {
  Pool pool(2);
  // The second difference matrix: λ_k = 2 − 2 cos(kπ/(n+1)).
  const size_t n = 50;
  Matrix<double> a(n, n);
  for (size_t i = 0; i < n; ++i) {
    a(i, i) = 2;
    if (i + 1 < n) a(i, i + 1) = a(i + 1, i) = -1;
  }
  const Eigen eigen = largest_eigen(a, n, pool);
  for (size_t k = 0; k < n; ++k)
    EXPECT_NEAR(eigen.values[k], 2 - 2 * std::cos(double(n - k) * M_PI / double(n + 1)), 1e-13);
}

TEST(Eigen, degenerate_matrices) {
  Pool pool(2);
  Matrix<double> zero(40, 40), identity(40, 40), rank_one(40, 40);
  for (size_t i = 0; i < 40; ++i) {
    identity(i, i) = 3;
    for (size_t j = 0; j < 40; ++j) rank_one(i, j) = double(i + 1) * double(j + 1) * 1e-150;
  }
  for (Matrix<double>* a : {&zero, &identity, &rank_one}) {
    Matrix<double> work = a->copy();
    const Eigen eigen = largest_eigen(work, 7, pool);
    expect_eigen(*a, eigen, a == &rank_one ? 1e-140 : 1.0);
  }
}

TEST(Eigen, repeated_values_are_not_cut_apart) {
  Pool pool(2);
  const size_t n = 200;  // asked for all at once, so that parts of the spectrum are solved apart
  Matrix<double> identity(n, n), four(n, n);
  for (size_t i = 0; i < n; ++i) identity(i, i) = 3, four(i, i) = double(i % 4);
  // The same four values behind a reflection: no longer diagonal.
  std::vector<double> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = std::sin(double(i)) / std::sqrt(double(n) / 2);
  double length = 0;
  for (double x : v) length += x * x;
  Matrix<double> mixed(n, n);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j)
      for (size_t k = 0; k < n; ++k)
        mixed(i, j) += ((i == k) - 2 * v[i] * v[k] / length) * double(k % 4) *
                       ((j == k) - 2 * v[j] * v[k] / length);
  for (Matrix<double>* a : {&identity, &four, &mixed}) {
    Matrix<double> work = a->copy();
    expect_eigen(*a, largest_eigen(work, n, pool), 3.0);
  }
}

TEST(Eigen, clusters_across_parts_stay_orthogonal) {
  Pool pool(2);
  // Wilkinson's matrix, many times, weakly tied together: clusters closer than rounding. Of order
  // 11, the borders between parts of the spectrum cut them, and vectors solved apart are not
  // orthogonal; of order 21, LAPACK's fast method gives up.
  for (size_t order : {11u, 21u})
    for (double tie : {1e-4, 1e-8}) {
      const size_t n = 418 / order * order;
      Matrix<double> a(n, n);
      for (size_t i = 0; i < n; ++i) {
        a(i, i) = std::fabs(double(i % order) - double(order / 2));
        if (i + 1 < n) a(i, i + 1) = a(i + 1, i) = i % order == order - 1 ? tie : 1.0;
      }
      Matrix<double> work = a.copy();
      expect_eigen(a, largest_eigen(work, n, pool), 11.0);
    }
}

TEST(Eigen, same_bytes_for_any_thread_count) {
  const size_t n = 600, count = 150;  // large enough that sweeps and parts go to several threads
  const Matrix<double> a = random_symmetric(n, 5);
  std::vector<Eigen> results;
  for (unsigned threads : {1u, 2u, 3u}) {
    Pool pool(threads);
    Matrix<double> work = a.copy();
    results.push_back(largest_eigen(work, count, pool));
  }
  expect_eigen(a, results[0], std::sqrt(double(n)));
  for (size_t r = 1; r < results.size(); ++r) {
    EXPECT_EQ(results[0].values, results[r].values);
    EXPECT_TRUE(std::equal(results[0].vectors.data(), results[0].vectors.data() + count * n,
                           results[r].vectors.data()));
  }
}

TEST(EigenKernel, every_table_equals_plain_loops) {
  for (Isa isa : supported_isas()) {
    const EigenKernel& kernel = eigen_kernel(isa);
    for (size_t n : {1u, 3u, 9u, 30u, 61u, 150u}) {
      const Matrix<double> a = random_symmetric(n, 7), b = random_symmetric(n, 8);
      Matrix<double> c = random_symmetric(n, 9), expected = c.copy();
      const size_t m = n / 2 + 1, k = n;  // a is symmetric, but its first m rows are not
      for (size_t i = 0; i < m; ++i)
        for (size_t j = 0; j < n; ++j)
          for (size_t l = 0; l < k; ++l) expected(i, j) -= a(i, l) * b(l, j);
      const Matrix<double> before = c.copy();
      kernel.subtract_product(m, n, k, a.data(), n, b.data(), n, c.data(), n);
      for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j) EXPECT_NEAR(c(i, j), expected(i, j), 1e-12 * double(n));
      Matrix<double> columns(k, m);
      for (size_t i = 0; i < m; ++i)
        for (size_t l = 0; l < k; ++l) columns(l, i) = a(i, l);
      c = before.copy();
      kernel.subtract_transposed(m, n, k, columns.data(), m, b.data(), n, c.data(), n);
      for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j) EXPECT_NEAR(c(i, j), expected(i, j), 1e-12 * double(n));

      std::vector<double> y(n, 0.5), x(n), z(n);
      double product = 0;
      for (size_t i = 0; i < n; ++i) x[i] = a(0, i), z[i] = b(0, i), product += x[i] * z[i];
      EXPECT_NEAR(kernel.dot(n, x.data(), z.data()), product, 1e-12 * double(n));
      kernel.add_two(n, 2.0, x.data(), -3.0, z.data(), y.data());
      for (size_t i = 0; i < n; ++i) EXPECT_NEAR(y[i], 0.5 + 2 * x[i] - 3 * z[i], 1e-13);
    }
  }
}

TEST(EigenKernel, every_table_reflects) {
  for (Isa isa : supported_isas()) {
    const EigenKernel& kernel = eigen_kernel(isa);
    for (size_t length : {1u, 2u, 7u, 31u, 47u, 48u}) {
      const Matrix<double> random = random_symmetric(2 * kBand, 3);
      std::vector<double> v(kBand, 0.0), u(kBand, 0.0);
      for (size_t i = 0; i < length; ++i) v[i] = random(i, 90), u[i] = random(i, 91);
      const double tau = 0.3;
      // H a H, of which the triangle above the diagonal must stay as it is.
      const size_t stride = kBand + kBandPadding;
      Matrix<double> a(kBand, stride), before(kBand, stride);
      for (size_t i = 0; i < kBand; ++i)
        for (size_t j = 0; j < stride; ++j) a(i, j) = before(i, j) = random(i, j);
      kernel.reflect_both(length, tau, v.data(), a.data(), stride);
      const auto h = [&](size_t i, size_t j) { return (i == j ? 1.0 : 0.0) - tau * v[i] * v[j]; };
      for (size_t i = 0; i < kBand; ++i)
        for (size_t j = 0; j < stride; ++j) {
          double expected = i < length && j <= i ? 0.0 : before(i, j);
          if (i < length && j <= i)
            for (size_t x = 0; x < length; ++x)
              for (size_t y = 0; y < length; ++y) expected += h(i, x) * random(x, y) * h(y, j);
          ASSERT_NEAR(a(i, j), expected, 1e-11) << length << " " << i << " " << j;
        }

      // A block of `length` rows: its product with v, then H' (c − left vᵀ).
      std::vector<double> w(kBand), product(kBand), left(kBand, 0.0);
      for (size_t i = 0; i < kBand; ++i) w[i] = random(i, 92);
      a = before.copy();
      kernel.multiply_band(length, a.data(), stride, w.data(), product.data());
      double u_left = 0;
      for (size_t i = 0; i < length; ++i) {
        double sum = 0;
        for (size_t j = 0; j < kBand; ++j) sum += before(i, j) * w[j];
        ASSERT_NEAR(product[i], sum, 1e-12);
        u_left += u[i] * (left[i] = product[i] * 0.4);
      }
      kernel.reflect_left(length, a.data(), stride, left.data(), w.data(), tau, u.data(), u_left);
      for (size_t j = 0; j < kBand; ++j) {
        double along = 0;
        for (size_t i = 0; i < length; ++i) along += u[i] * (before(i, j) - left[i] * w[j]);
        for (size_t i = 0; i < kBand; ++i)
          ASSERT_NEAR(
              a(i, j),
              i < length ? before(i, j) - left[i] * w[j] - tau * u[i] * along : before(i, j),
              1e-11);
      }

      // First v from the second row on, then u from the first.
      for (size_t v_length : {length - 1, length}) {
        Matrix<double> z(kBand + 1, kernel.columns), expected(kBand + 1, kernel.columns);
        for (size_t i = 0; i <= kBand; ++i)
          for (size_t j = 0; j < kernel.columns; ++j) z(i, j) = expected(i, j) = random(i, j);
        kernel.reflect_columns(v_length, tau, v.data(), length, 0.7, u.data(), z.data());
        for (size_t j = 0; j < kernel.columns; ++j) {
          double along = 0;
          for (size_t i = 0; i < v_length; ++i) along += v[i] * expected(i + 1, j);
          for (size_t i = 0; i < v_length; ++i) expected(i + 1, j) -= tau * v[i] * along;
          along = 0;
          for (size_t i = 0; i < length; ++i) along += u[i] * expected(i, j);
          for (size_t i = 0; i < length; ++i) expected(i, j) -= 0.7 * u[i] * along;
          for (size_t i = 0; i <= kBand; ++i) ASSERT_NEAR(z(i, j), expected(i, j), 1e-10);
        }
      }
    }
  }
}

}  // namespace
}  // namespace fungi
