// SPDX-License-Identifier: Apache-2.0
// The eigen-solver against its definition: A v = λ v, orthonormal, largest first, same bytes for
// any thread count.
#include "fungi/feature/eigen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "fungi/base/cpu.h"
#include "fungi/base/random.h"
#include "fungi/feature/eigen_kernel.h"

namespace fungi {
namespace {

Matrix<double> random_symmetric(size_t n, uint64_t seed) {
  Matrix<double> a(n, n);
  const RandomStream random(seed, "eigen test");
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j <= i; ++j) a(i, j) = a(j, i) = random.normal(i * n + j);
  return a;
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

TEST(Eigen, definition_holds_for_every_size_around_the_panels) {
  Pool pool(2);
  for (size_t n : {1u, 2u, 3u, 4u, 5u, 17u, 31u, 32u, 33u, 34u, 35u, 66u, 100u, 257u, 300u})
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

TEST(Eigen, same_bytes_for_any_thread_count) {
  const Matrix<double> a = random_symmetric(400, 5);
  std::vector<Eigen> results;
  for (unsigned threads : {1u, 2u, 3u}) {
    Pool pool(threads);
    Matrix<double> work = a.copy();
    results.push_back(largest_eigen(work, 90, pool));
  }
  for (size_t r = 1; r < results.size(); ++r) {
    EXPECT_EQ(results[0].values, results[r].values);
    EXPECT_TRUE(std::equal(results[0].vectors.data(), results[0].vectors.data() + 90 * 400,
                           results[r].vectors.data()));
  }
}

TEST(EigenKernel, every_table_equals_plain_loops) {
  for (Isa isa : supported_isas()) {
    const EigenKernel& kernel = eigen_kernel(isa);
    for (size_t n : {1u, 3u, 9u, 30u, 61u}) {
      const Matrix<double> a = random_symmetric(n, 7), b = random_symmetric(n, 8);
      Matrix<double> c = random_symmetric(n, 9), expected = c.copy();
      const size_t m = n / 2 + 1, k = n;
      for (size_t i = 0; i < m; ++i)
        for (size_t j = 0; j < n; ++j)
          for (size_t l = 0; l < k; ++l) expected(i, j) -= a(i, l) * b(l, j);
      kernel.subtract_product(m, n, k, a.data(), n, b.data(), n, c.data(), n);
      for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j) EXPECT_NEAR(c(i, j), expected(i, j), 1e-12 * double(n));

      std::vector<double> v(n), p(n, 0.0), q(n, 0.0);
      for (size_t i = 0; i < n; ++i) v[i] = double(i % 5) - 1.7;
      kernel.symmetric_product(0, n, n, a.data(), n, v.data(), p.data(), q.data());
      for (size_t i = 0; i < n; ++i) {
        double sum = 0;
        for (size_t j = 0; j < n; ++j) sum += a(i, j) * v[j];
        EXPECT_NEAR(p[i] + q[i], sum, 1e-12 * double(n));
      }
      std::vector<double> y(n, 0.5), x(n), z(n);
      double product = 0;
      for (size_t i = 0; i < n; ++i) x[i] = a(0, i), z[i] = b(0, i), product += x[i] * z[i];
      EXPECT_NEAR(kernel.dot(n, x.data(), z.data()), product, 1e-12 * double(n));
      kernel.add_two(n, 2.0, x.data(), -3.0, z.data(), y.data());
      for (size_t i = 0; i < n; ++i) EXPECT_NEAR(y[i], 0.5 + 2 * x[i] - 3 * z[i], 1e-13);
    }
  }
}

}  // namespace
}  // namespace fungi
