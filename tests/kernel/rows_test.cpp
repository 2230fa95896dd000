// SPDX-License-Identifier: Apache-2.0
// Row-wise kernels against the reference, for every table: norms and their gradient, softmax,
// conversions, dot.
#include "tests/kernel/reference.h"
#include "tests/kernel/support.h"

namespace fungi::kernel {
namespace {

using RowsTest = TableTest;
const size_t kWidths[] = {1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 63, 65, 127, 192, 197, 768, 1025};

TEST_P(RowsTest, Norm) {
  for (bool rms : {false, true})
    for (size_t d : kWidths)
      for (bool with_beta : {false, true}) {
        SCOPED_TRACE(testing::Message() << "rms " << rms << " d " << d << " beta " << with_beta);
        constexpr size_t kRows = 4;
        Rows x = random_rows(kRows, d, 3, unsigned(d));
        for (size_t j = 0; j < d; ++j) x(1, j) += 1000;   // a mean far from zero
        for (size_t j = 0; j < d; ++j) x(2, j) = 0;       // nothing at all
        for (size_t j = 0; j < d; ++j) x(3, j) *= 1e15f;  // squares near the end of the range
        const Rows gamma = random_rows(1, d, 0, 2), beta = random_rows(1, d, 0, 3);
        Rows out(kRows, d, d + 2);
        Elements elements(table(), out, 1);
        table().norm(rms, kRows, d, x.data(), x.stride, gamma.data(),
                     with_beta ? beta.data() : nullptr, 1e-6f, out.data(), out.stride,
                     elements.data(), elements.stride);
        out.expect_margin_untouched();
        for (size_t i = 0; i < kRows; ++i) {
          std::vector<double> row(d), g(d), b(d), y(d);
          for (size_t j = 0; j < d; ++j) row[j] = x(i, j), g[j] = gamma(0, j), b[j] = beta(0, j);
          reference::norm(rms, d, row.data(), g.data(), with_beta ? b.data() : nullptr, 1e-6,
                          y.data());
          // the mean of numbers near 1000 is known to 1e-4 only, and one number has no deviation
          const double tolerance = i == 1 && !rms ? (d == 1 ? 0.2 : 2e-3) : 4e-6;
          for (size_t j = 0; j < d; ++j) {
            ASSERT_NEAR(out(i, j), y[j], tolerance * (1 + std::abs(y[j]))) << i << ", " << j;
            ASSERT_EQ(elements.value(i, j), bf16() ? to_bf16(out(i, j)) : out(i, j));
          }
        }
      }
}

TEST_P(RowsTest, NormWritesWhatIsAskedFor) {
  const Rows x = random_rows(3, 20, 0, 1), gamma = random_rows(1, 20, 0, 2);
  Rows both(3, 20, 20), alone(3, 20, 20);
  Elements both_elements(table(), both), elements(table(), both);
  table().norm(false, 3, 20, x.data(), 20, gamma.data(), nullptr, 1e-5f, both.data(), 20,
               both_elements.data(), both_elements.stride);
  table().norm(false, 3, 20, x.data(), 20, gamma.data(), nullptr, 1e-5f, alone.data(), 20, nullptr,
               0);
  table().norm(false, 3, 20, x.data(), 20, gamma.data(), nullptr, 1e-5f, nullptr, 0,
               elements.data(), elements.stride);
  EXPECT_EQ(values(both), values(alone));
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < 20; ++j)
      EXPECT_EQ(both_elements.value(i, j), elements.value(i, j)) << i << ", " << j;
}

TEST_P(RowsTest, NormGradient) {
  for (bool rms : {false, true})
    for (bool accumulate : {false, true})
      for (size_t d : kWidths) {
        SCOPED_TRACE(testing::Message() << "rms " << rms << " d " << d);
        constexpr size_t kRows = 3;
        const Rows x = random_rows(kRows, d, 1, unsigned(d)), gamma = random_rows(1, d, 0, 2);
        const Rows d_out = random_rows(kRows, d, 2, 3), before = random_rows(kRows, d, 3, 4);
        Rows d_x = before;
        const float eps = 1e-2f;
        table().norm_backward(rms, kRows, d, x.data(), x.stride, gamma.data(), eps, d_out.data(),
                              d_out.stride, accumulate, d_x.data(), d_x.stride);
        d_x.expect_margin_untouched();
        for (size_t i = 0; i < kRows; ++i) {
          std::vector<double> row(d), g(d), up(d), truth(d);
          for (size_t j = 0; j < d; ++j) row[j] = x(i, j), g[j] = gamma(0, j), up[j] = d_out(i, j);
          reference::norm_backward(rms, d, row.data(), g.data(), double(eps), up.data(),
                                   truth.data());
          for (size_t j = 0; j < d; ++j)
            ASSERT_NEAR(d_x(i, j), truth[j] + (accumulate ? before(i, j) : 0),
                        2e-5 * (1 + std::abs(truth[j])))
                << i << ", " << j;
        }
      }
}

TEST_P(RowsTest, Softmax) {
  for (size_t d : kWidths) {
    SCOPED_TRACE(d);
    constexpr size_t kRows = 5;
    const float infinity = std::numeric_limits<float>::infinity();
    Rows x = random_rows(kRows, d, 2, unsigned(d), false, 3);
    for (size_t j = 0; j < d; ++j) x(1, j) *= 1e30f;                          // one wins outright
    for (size_t j = 0; j < d; ++j) x(2, j) = -infinity;                       // nothing to choose
    for (size_t j = 0; j < d; ++j) x(3, j) = j % 2 == 1 ? -infinity : 80.0f;  // equal survivors
    for (size_t j = 0; j < d; ++j) x(4, j) = 0;
    const Rows before = x;
    std::vector<float> lse(kRows, kPoison);
    table().softmax(kRows, d, x.data(), x.stride, lse.data());
    x.expect_margin_untouched();
    for (size_t i = 0; i < kRows; ++i) {
      std::vector<double> row(d);
      for (size_t j = 0; j < d; ++j) row[j] = before(i, j);
      const double truth = reference::softmax(d, row.data());
      if (std::isinf(truth))
        EXPECT_EQ(lse[i], float(truth));
      else
        EXPECT_NEAR(lse[i], truth, 1e-6 * (1 + std::abs(truth)));
      for (size_t j = 0; j < d; ++j) ASSERT_NEAR(x(i, j), row[j], 2e-6 * row[j] + 1e-12) << i;
    }
    Rows again = before;
    table().softmax(kRows, d, again.data(), again.stride, nullptr);
    EXPECT_EQ(values(again), values(x));
  }
}

TEST_P(RowsTest, Conversions) {
  for (size_t d : kWidths) {
    Rows x = random_rows(3, d, 2, unsigned(d));
    x(0, 0) = std::numeric_limits<float>::infinity();
    x(1, 0) = 1 + 1.0f / 256;     // a tie, to the even side
    x(2, 0) = 1 + 3.0f / 256;     // a tie, to the even side above
    x(2, d / 2) = 3.3895314e38f;  // the largest bf16
    Elements elements(table(), x, 1);
    Rows back(3, d, d + 3);
    table().to_floats(3, d, elements.data(), elements.stride, back.data(), back.stride);
    back.expect_margin_untouched();
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = 0; j < d; ++j)
        ASSERT_EQ(back(i, j), bf16() ? to_bf16(x(i, j)) : x(i, j)) << i << ", " << j;
  }
}

TEST_P(RowsTest, SplitKeepsWhatRoundingLeavesOver) {
  for (size_t n : {1, 3, 7, 14, 16, 17, 32, 45}) {
    const Rows x = random_rows(1, n, 2, unsigned(n));
    const Rows twice(2, n, n);
    Elements both(table(), twice);
    table().split(n, x.data(), both.at(0, 0), both.at(1, 0));
    for (size_t j = 0; j < n; ++j) {
      const float whole = bf16() ? to_bf16(x(0, j)) : x(0, j), rest = x(0, j) - whole;
      ASSERT_EQ(both.value(0, j), whole) << n << ", " << j;
      ASSERT_EQ(both.value(1, j), bf16() ? to_bf16(rest) : rest) << n << ", " << j;
    }
    for (size_t i = 0; i < 2; ++i)
      for (size_t j = n; j < round_up(n, table().k_multiple); ++j)
        EXPECT_EQ(both.value(i, j), 0) << "written beyond the " << n << " given";
  }
}

TEST_P(RowsTest, ConversionKeepsNaN) {
  Rows x(1, 40, 40), back(1, 40, 40);
  for (size_t j = 0; j < 40; ++j) {
    const uint32_t bits = j % 2 ? 0x7fffffffu : 0xff800001u;
    std::memcpy(&x(0, j), &bits, 4);
    back(0, j) = 0;
  }
  Elements elements(table(), x);
  table().to_floats(1, 40, elements.data(), elements.stride, back.data(), 40);
  for (size_t j = 0; j < 40; ++j) EXPECT_TRUE(std::isnan(back(0, j))) << j;
}

TEST_P(RowsTest, Dot) {
  for (size_t n : {0, 1, 2, 3, 7, 8, 17, 63, 64, 65, 127, 129, 255, 511, 768, 1000, 4097}) {
    const Rows x = random_rows(1, n, 1, 1), y = random_rows(1, n, 1, 2);
    double truth = 0, size = 0;
    for (size_t i = 0; i < n; ++i) {
      truth += double(x(0, i)) * y(0, i);
      size += std::abs(double(x(0, i)) * y(0, i));
    }
    EXPECT_NEAR(table().dot(n, x.data(), y.data()), truth, 1e-6 * size) << n;
  }
}

FUNGI_FOR_EVERY_TABLE(RowsTest);

}  // namespace
}  // namespace fungi::kernel
