// SPDX-License-Identifier: Apache-2.0
// Means and products of columns against f64 sums.
#include "fungi/pca/covariance.h"
#include "fungi/pca/covariance_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "fungi/base/cpu.h"
#include "fungi/base/random.h"

namespace fungi {
namespace {

Matrix<float> random_rows(size_t rows, size_t cols, uint64_t seed, double mean) {
  Matrix<float> m(rows, cols);
  const RandomStream random(seed, "covariance test");
  for (size_t i = 0; i < rows; ++i)
    for (size_t c = 0; c < cols; ++c)
      m(i, c) = float(mean + std::pow(0.99, double(c)) * random.normal(i * (cols + 1) + c) +
                      0.3 * random.normal(i * (cols + 1) + cols));
  return m;
}

// `tolerance` is relative to the squares of both columns.
void expect_moments(const Matrix<float>& rows, const Moments& moments, double tolerance) {
  const size_t n = rows.rows(), d = rows.cols();
  std::vector<double> mean(d, 0.0);
  for (size_t i = 0; i < n; ++i)
    for (size_t c = 0; c < d; ++c) mean[c] += rows(i, c) / double(n);
  ASSERT_EQ(moments.rows, n);
  ASSERT_EQ(moments.scatter.rows(), d);
  for (size_t i = 0; i < d; i += i < 200 ? 7 : 31) {
    EXPECT_NEAR(moments.mean[i], mean[i], 1e-5);
    for (size_t j = 0; j < d; j += 11) {
      double sum = 0, scale = 0;
      for (size_t r = 0; r < n; ++r) {
        const double a = rows(r, i) - mean[i], b = rows(r, j) - mean[j];
        sum += a * b, scale += a * a + b * b;
      }
      ASSERT_NEAR(moments.scatter(i, j), sum, tolerance * scale) << d << " " << i << " " << j;
      ASSERT_EQ(moments.scatter(i, j), moments.scatter(j, i));
    }
  }
}

TEST(Covariance, equals_plain_sums_for_both_kinds_of_products) {
  Pool pool(2);
  const Matrix<float> rows = random_rows(2500, 300, 6, 100);  // a mean far from zero
  for (auto products : {Covariance::Products::f32, Covariance::Products::split_bf16}) {
    Covariance covariance(rows.cols(), products);
    covariance.add(rows, pool);
    expect_moments(rows, covariance.finish(pool), 1e-6);
    covariance.add(rows.view().slice(0, 700), pool);  // empty again
    EXPECT_EQ(covariance.finish(pool).rows, 700u);
  }
}

TEST(Covariance, is_empty_again_after_an_error) {
  Pool pool(2);
  const Matrix<float> rows = random_rows(700, 40, 6, 100);
  Matrix<float> large = rows.copy();
  large(3, 5) = 1e30f;
  Covariance covariance(rows.cols(), Covariance::Products::f32);
  covariance.add(large, pool);
  EXPECT_THROW(covariance.finish(pool), Error);
  covariance.add(rows, pool);
  expect_moments(rows, covariance.finish(pool), 1e-6);
}

TEST(Covariance, any_width) {
  Pool pool(2);
  for (size_t width : {1u, 11u, 12u, 13u, 47u, 48u, 49u, 97u, 191u, 192u, 193u, 400u}) {
    const Matrix<float> rows = random_rows(90, width, width, 1);
    for (auto products : {Covariance::Products::f32, Covariance::Products::split_bf16}) {
      Covariance covariance(width, products);
      covariance.add(rows, pool);
      expect_moments(rows, covariance.finish(pool), 4e-6);  // few rows: less averaging
    }
  }
}

TEST(CovarianceKernel, every_table_equals_plain_loops) {
  for (Isa isa : supported_isas()) {
    const CovarianceKernel& kernel = covariance_kernel(isa);
    const size_t wide = kernel.columns, rows = 37, stride = 2 * wide + 5;
    const Matrix<float> x = random_rows(rows, stride, 1, 3), shift = random_rows(1, wide, 2, 3);
    for (size_t cols : {size_t{1}, wide - 1, wide}) {
      std::vector<float> panel(rows * wide, 99.0f);
      std::vector<double> sum(wide, 0.5);
      kernel.take_panel(rows, cols, x.data() + 3, stride, shift.data(), panel.data(), sum.data());
      for (size_t c = 0; c < wide; ++c) {
        double expected = 0.5;
        for (size_t i = 0; i < rows; ++i) {
          const float value = c < cols ? x(i, c + 3) - shift(0, c) : 0.0f;
          ASSERT_EQ(panel[i * wide + c], value);
          expected += value;
        }
        ASSERT_NEAR(sum[c], expected, 1e-12);
      }
    }
    std::vector<float> left(rows * wide), right(rows * wide);
    for (size_t i = 0; i < rows * wide; ++i)
      left[i] = x(i / wide, i % wide), right[i] = x(i / wide, i % wide + wide);
    Matrix<float> c = random_rows(wide, wide + 7, 4, 1);
    const Matrix<float> before = c.copy();
    kernel.add_products(rows, left.data(), right.data(), c.data(), c.stride());
    for (size_t i = 0; i < wide; ++i)
      for (size_t j = 0; j < wide + 7; ++j) {
        double sum = before(i, j);
        for (size_t r = 0; r < rows && j < wide; ++r)
          sum += double(left[r * wide + i]) * double(right[r * wide + j]);
        ASSERT_NEAR(c(i, j), sum, 1e-3) << i << " " << j;
      }
  }
}

}  // namespace
}  // namespace fungi
