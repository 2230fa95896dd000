// SPDX-License-Identifier: Apache-2.0
// Products of int8 against whole numbers in plain loops, for every table: odd sizes, numbers at the
// ends of the range, rows that are empty or not finite, smoothing; and how close they come to the
// product itself.
#include "tests/kernel/byte_tables.h"
#include "tests/kernel/support.h"

namespace fungi::kernel {
namespace {

class ByteTest : public testing::TestWithParam<const Kernel*> {
 protected:
  const Kernel& table() const { return *GetParam(); }
};

// x ≈ scale · (q - zero), and w ≈ scale · q with a zero of 0.
struct WholeRow {
  std::vector<int> q;
  float scale = 0, zero = 0;
};

WholeRow whole_row(const float* x, size_t k, bool fused) {
  float low = 0, high = 0;
  for (size_t j = 0; j < k; ++j) low = std::min(low, x[j]), high = std::max(high, x[j]);
  const float range = high - low;
  WholeRow row{std::vector<int>(k, 0)};
  if (range < 1e-30f) return row;
  const float inverse = 253.0f / range;
  row.scale = range / 253.0f;
  row.zero = 1 + std::nearbyint(-low * inverse);
  constexpr float kWhole = 12582912.0f;
  for (size_t j = 0; j < k; ++j) {
    const float shifted = fused ? std::fma(x[j], inverse, kWhole + row.zero)
                                : float(x[j] * inverse) + (kWhole + row.zero);
    row.q[j] = int(shifted - kWhole);
  }
  return row;
}

WholeRow whole_weights(const float* w, size_t k) {
  float peak = 0;
  for (size_t j = 0; j < k; ++j) peak = std::max(peak, std::abs(w[j]));
  WholeRow row{std::vector<int>(k, 0), peak / 127.0f};
  const float inverse = row.scale > 1e-30f ? 1 / row.scale : 0;
  for (size_t j = 0; j < k; ++j)
    row.q[j] = std::clamp(int(std::nearbyint(w[j] * inverse)), -127, 127);
  return row;
}

struct Problem {
  Rows x, w;
  std::vector<float> smoothing;  // or none
};

Rows product(const Kernel& table, const Problem& p) {
  const size_t m = p.x.rows, n = p.w.rows, k = p.w.cols;
  Elements elements(table, p.x, 1);
  const PackedMatrix packed =
      p.smoothing.empty() ? pack(table, {p.w.data(), n, k, p.w.stride})
                          : pack_smoothed(table, {p.w.data(), n, k, p.w.stride}, p.smoothing);
  Scratch scratch(table.gemm_scratch(m, n, k));
  Rows y(m, n, n + 3);
  Epilogue e;
  e.out = y.data();
  e.out_stride = y.stride;
  table.gemm(m, elements.data(), elements.stride, packed, e, scratch.data());
  y.expect_margin_untouched();
  return y;
}

// Up to 2^24 whole numbers, and what is made of them, are exact in f32.
void check_whole(const Kernel& table, const Problem& p) {
  const size_t m = p.x.rows, n = p.w.rows, k = p.w.cols;
  SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k);
  const bool fused = std::string(table.name) != "generic-int8";
  const Rows y = product(table, p);
  std::vector<WholeRow> columns;
  for (size_t j = 0; j < n; ++j) {
    std::vector<float> w(k);
    for (size_t l = 0; l < k; ++l)
      w[l] = p.smoothing.empty() ? p.w(j, l) : p.w(j, l) * p.smoothing[l];
    columns.push_back(whole_weights(w.data(), k));
  }
  for (size_t i = 0; i < m; ++i) {
    std::vector<float> x(k);
    for (size_t l = 0; l < k; ++l)
      x[l] = p.smoothing.empty() ? p.x(i, l) : p.x(i, l) * (1 / p.smoothing[l]);
    const WholeRow row = whole_row(x.data(), k, fused);
    for (size_t j = 0; j < n; ++j) {
      int64_t sum = 0, weights = 0;
      for (size_t l = 0; l < k; ++l) {
        ASSERT_GE(row.q[l], 0);
        ASSERT_LE(row.q[l], 255);
        sum += int64_t(row.q[l]) * columns[j].q[l], weights += columns[j].q[l];
      }
      const double whole = double(sum) - double(row.zero) * double(weights);
      ASSERT_LT(std::abs(double(sum)), 1 << 24) << "choose smaller sizes";
      ASSERT_EQ(y(i, j), float(whole) * (columns[j].scale * row.scale)) << i << ", " << j;
    }
  }
}

TEST_P(ByteTest, OddSizes) {
  const size_t sizes[] = {1, 2, 3, 5, 7, 15, 16, 17, 31, 33, 63, 65};
  for (size_t m : sizes)
    for (size_t n : {1, 7, 17, 33, 65})
      check_whole(table(), {random_rows(m, 37, 3, unsigned(m + n), true),
                            random_rows(n, 37, 2, unsigned(m), true),
                            {}});
  for (size_t k : sizes)
    check_whole(table(), {random_rows(6, k, 3, 1, true), random_rows(18, k, 2, 2, true), {}});
}

TEST_P(ByteTest, SeveralBlocks) {
  for (auto [m, n, k] : {std::array<size_t, 3>{197, 65, 200}, {33, 130, 500}, {70, 40, 511}})
    check_whole(table(),
                {random_rows(m, k, 1, 7, true), random_rows(n, k, 0, unsigned(k), true), {}});
}

// Every number at an end of its range, so that sums of two products of bytes leave 16 bits.
TEST_P(ByteTest, SaturatingInputs) {
  const size_t k = 300;
  for (const float low : {0.0f, -1.0f, -8.0f}) {
    Rows x(9, k, k), w(35, k, k);
    for (size_t i = 0; i < x.rows; ++i)
      for (size_t j = 0; j < k; ++j) x(i, j) = (i + j) % 9 < i ? 8.0f : low;
    for (size_t i = 0; i < w.rows; ++i)
      for (size_t j = 0; j < k; ++j) w(i, j) = i % 3 == 0 || (i * j) % 5 > 2 ? 2.0f : -2.0f;
    check_whole(table(), {x, w, {}});
  }
}

TEST_P(ByteTest, Smoothing) {
  Problem p{random_rows(20, 100, 0, 3, true), random_rows(40, 100, 0, 4), {}};
  for (size_t j = 0; j < 100; ++j) {
    p.smoothing.push_back(j % 10 == 0 ? 32.0f : 0.5f);
    for (size_t i = 0; i < p.x.rows; ++i) p.x(i, j) *= p.smoothing[j];
  }
  check_whole(table(), p);
}

// Rounded to 8 bits both operands keep two digits; a long sum averages the errors.
TEST_P(ByteTest, IsCloseToTheProduct) {
  for (size_t k : {96, 768, 3072}) {
    const Problem p{random_rows(15, k, 0, 5, true), random_rows(34, k, 0, 6), {}};
    const Rows y = product(table(), p);
    std::vector<double> truth;
    for (size_t i = 0; i < y.rows; ++i)
      for (size_t j = 0; j < y.cols; ++j) {
        double sum = 0;
        for (size_t l = 0; l < k; ++l) sum += double(p.x(i, l)) * p.w(j, l);
        truth.push_back(sum);
      }
    EXPECT_GE(cosine(values(y), truth), 0.9998) << k;
  }
}

// What fc1 gives will be bytes again, so its GELU may be a little off, but the same in every table.
TEST_P(ByteTest, GeluIsGoodEnoughForBytes) {
  constexpr size_t n = 4001;
  Rows x(1, 1, 1), w(n, 1, 1);
  x(0, 0) = 1;
  for (size_t j = 0; j < n; ++j) w(j, 0) = 0;
  std::vector<float> bias(n);
  for (size_t j = 0; j < n; ++j) bias[j] = float(j) / 250 - 8;
  bias[0] = std::numeric_limits<float>::infinity(), bias[1] = std::nanf(""), bias[2] = 1e30f;
  bias[3] = -1e30f, bias[4] = -std::numeric_limits<float>::infinity();
  Elements elements(table(), x, 1);
  const PackedMatrix packed = pack(table(), {w.data(), n, 1, w.stride});
  Scratch scratch(table().gemm_scratch(1, n, 1));
  Rows y(1, n, n + 3);
  Epilogue e;
  e.bias = bias.data();
  e.activation = Activation::gelu;
  e.out = y.data();
  e.out_stride = y.stride;
  table().gemm(1, elements.data(), elements.stride, packed, e, scratch.data());
  EXPECT_EQ(y(0, 0), bias[0]);
  EXPECT_TRUE(std::isnan(y(0, 1)));
  EXPECT_EQ(y(0, 2), bias[2]);
  for (size_t j : {3, 4}) EXPECT_NEAR(y(0, j), 0, 3e-4);
  for (size_t j = 5; j < n; ++j) {
    const double v = bias[j], truth = v * 0.5 * std::erfc(-v / std::sqrt(2.0));
    ASSERT_NEAR(y(0, j), truth, 3e-4) << v;
  }
  EXPECT_EQ(y(0, 2000), 0);  // GELU(0)
}

TEST_P(ByteTest, RowsWithoutNumbers) {
  Problem p{random_rows(6, 50, 0, 3, true), random_rows(33, 50, 0, 4), {}};
  const Rows whole = product(table(), p);
  for (size_t j = 0; j < 50; ++j) p.x(1, j) = 0;
  p.x(2, 7) = std::numeric_limits<float>::quiet_NaN();
  p.x(3, 0) = std::numeric_limits<float>::infinity();
  p.x(4, 49) = -std::numeric_limits<float>::infinity();
  for (const bool smoothed : {false, true}) {
    if (smoothed) p.smoothing.assign(50, 1.0f);
    const Rows y = product(table(), p);
    for (size_t j = 0; j < y.cols; ++j) {
      EXPECT_EQ(y(0, j), whole(0, j));
      EXPECT_EQ(y(1, j), 0);
      for (size_t i : {2, 3, 4}) EXPECT_TRUE(std::isnan(y(i, j))) << i << ", " << j;
      EXPECT_EQ(y(5, j), whole(5, j));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, ByteTest, testing::ValuesIn(byte_tables()), table_name);

}  // namespace
}  // namespace fungi::kernel
