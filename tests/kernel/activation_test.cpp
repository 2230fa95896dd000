// SPDX-License-Identifier: Apache-2.0
// Activations and their derivatives against the reference on a fine grid, at the ends of the range,
// and in odd widths.
#include "tests/kernel/reference.h"
#include "tests/kernel/support.h"

namespace fungi::kernel {
namespace {

using ActivationTest = TableTest;
const Activation kAll[] = {Activation::none,      Activation::relu,       Activation::gelu,
                           Activation::gelu_tanh, Activation::quick_gelu, Activation::silu};

TEST_P(ActivationTest, FineGrid) {
  constexpr size_t kPoints = 40001;
  Rows u(1, kPoints, kPoints), y(1, kPoints, kPoints), slope(1, kPoints, kPoints);
  Rows ones(1, kPoints, kPoints);
  for (size_t i = 0; i < kPoints; ++i) {
    u(0, i) = (float(i) - 20000) * 0.001f;
    ones(0, i) = 1;
  }
  for (Activation f : kAll) {
    SCOPED_TRACE(int(f));
    table().activate(f, 1, kPoints, u.data(), kPoints, y.data(), kPoints);
    table().activate_backward(f, 1, kPoints, u.data(), kPoints, ones.data(), kPoints, slope.data(),
                              kPoints);
    for (size_t i = 0; i < kPoints; ++i) {
      const double x = u(0, i);
      ASSERT_NEAR(y(0, i), reference::activation(f, x), 2e-7 * std::max(0.5, std::abs(x))) << x;
      ASSERT_NEAR(slope(0, i), reference::activation_slope(f, x), 5e-7) << x;
    }
  }
}

TEST_P(ActivationTest, NanStaysNan) {
  for (Activation f : kAll) {
    float x = std::numeric_limits<float>::quiet_NaN(), y = 0;
    table().activate(f, 1, 1, &x, 1, &y, 1);
    EXPECT_TRUE(std::isnan(y)) << int(f);
  }
}

// Behind a product of bf16 they may be rougher, for the result is rounded to bf16: by 2^-9 of
// itself. Here the product is zero and the bias the argument.
TEST_P(ActivationTest, BehindAProduct) {
  constexpr size_t kPoints = 40001;
  std::vector<float> x(kPoints), y(kPoints), zeros(kPoints, 0.0f);
  for (size_t i = 0; i < kPoints; ++i) x[i] = (float(i) - 20000) * 0.001f;
  x.front() = -1e30f, x.back() = 1e30f;
  const PackedMatrix packed = pack(table(), View<const float>{zeros.data(), kPoints, 1, 1});
  const std::vector<uint64_t> row(64, 0);
  Scratch scratch(table().gemm_scratch(1, kPoints, 1));
  const bool rough = table().precision == Precision::bf16;
  for (Activation f : kAll) {
    Epilogue e;
    e.bias = x.data(), e.activation = f, e.out = y.data(), e.out_stride = kPoints;
    table().gemm(1, row.data(), 64, packed, e, scratch.data());
    for (size_t i = 0; i < kPoints; ++i) {
      const double truth = reference::activation(f, double(x[i])), size = std::abs(truth);
      const double error = rough ? 1e-5 + 1.5e-4 * size : 1e-6 * std::max(1.0, size);
      ASSERT_NEAR(y[i], truth, error) << int(f) << " at " << x[i];
      if (x[i] > -3) {
        ASSERT_NEAR(y[i], truth, (rough ? 0x1p-10 : 1e-4) * size + 1e-12) << x[i];
      }
    }
  }
}

TEST_P(ActivationTest, OddWidthsAndStrides) {
  for (size_t d : {1, 2, 3, 7, 15, 17, 31, 33, 63, 65, 100}) {
    const Rows u = random_rows(3, d, 1, unsigned(d), false, 2), up = random_rows(3, d, 2, 5);
    for (Activation f : kAll) {
      Rows y(3, d, d + 3), d_u(3, d, d + 4);
      table().activate(f, 3, d, u.data(), u.stride, y.data(), y.stride);
      table().activate_backward(f, 3, d, u.data(), u.stride, up.data(), up.stride, d_u.data(),
                                d_u.stride);
      y.expect_margin_untouched();
      d_u.expect_margin_untouched();
      for (size_t i = 0; i < 3; ++i)
        for (size_t j = 0; j < d; ++j) {
          const double x = u(i, j);
          ASSERT_NEAR(y(i, j), reference::activation(f, x), 2e-6);
          ASSERT_NEAR(d_u(i, j), up(i, j) * reference::activation_slope(f, x), 4e-6);
        }
    }
  }
}

TEST_P(ActivationTest, FarOut) {
  const std::vector<float> points{-3e38f, -1e10f, -200, -104, -90, 90, 104, 200, 1e10f, 3e38f};
  const size_t n = points.size();
  std::vector<float> y(n), slope(n), ones(n, 1);
  for (Activation f : kAll) {
    if (f == Activation::none || f == Activation::relu) continue;
    table().activate(f, 1, n, points.data(), n, y.data(), n);
    table().activate_backward(f, 1, n, points.data(), n, ones.data(), n, slope.data(), n);
    for (size_t i = 0; i < n; ++i) {
      EXPECT_NEAR(y[i], points[i] > 0 ? points[i] : 0, 1e-6 * std::abs(points[i])) << int(f);
      if (std::abs(points[i]) < 1e11f) {
        EXPECT_NEAR(slope[i], points[i] > 0 ? 1 : 0, 1e-6) << int(f) << " at " << points[i];
      }
    }
  }
}

// The exponential behind all of them, through softmax: rows (0, x) give e^x / (1 + e^x), and for x
// far below zero e^x.
TEST_P(ActivationTest, ExponentialToTwoUlps) {
  for (float x = -87.0f; x < -17.5f; x += 0.0137f) {
    float row[2] = {0, x};
    table().softmax(1, 2, row, 2, nullptr);
    const double truth = std::exp(double(x));
    ASSERT_NEAR(row[1], truth, 2 * truth * 0x1p-23) << x;
  }
  float row[4] = {0, -88, -1e4f, -3e38f};
  table().softmax(1, 4, row, 4, nullptr);
  for (size_t i = 1; i < 4; ++i) EXPECT_EQ(row[i], 0);  // no subnormal numbers
}

FUNGI_FOR_EVERY_TABLE(ActivationTest);

}  // namespace
}  // namespace fungi::kernel
