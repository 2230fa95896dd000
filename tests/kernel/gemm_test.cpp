// SPDX-License-Identifier: Apache-2.0
// GEMM and its epilogue against the reference, for every table: odd sizes, strides, margins that
// must stay untouched, transposed packing, every combination of the epilogue.
#include "tests/kernel/reference.h"
#include "tests/kernel/support.h"

namespace fungi::kernel {
namespace {

using GemmTest = TableTest;

// x · wᵀ in double, and Σ|x w|, the scale of its rounding errors.
void truth_of(const Rows& x, const Rows& w, std::vector<double>& y, std::vector<double>& size) {
  y.assign(x.rows * w.rows, 0);
  size.assign(x.rows * w.rows, 0);
  for (size_t i = 0; i < x.rows; ++i)
    for (size_t j = 0; j < w.rows; ++j)
      for (size_t l = 0; l < x.cols; ++l) {
        const double product = double(x(i, l)) * w(j, l);
        y[i * w.rows + j] += product;
        size[i * w.rows + j] += std::abs(product);
      }
}

void check_product(const Kernel& table, size_t m, size_t n, size_t k) {
  SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k);
  const bool bf16 = table.precision == Precision::bf16;
  const Rows x = random_rows(m, k, 3, unsigned(m + n), bf16);
  const Rows w = random_rows(n, k, 2, unsigned(k), bf16);
  std::vector<double> truth, size;
  truth_of(x, w, truth, size);
  Elements elements(table, x, 1);
  const PackedMatrix packed = pack(table, {w.data(), n, k, w.stride});
  Scratch scratch(table.gemm_scratch(m, n, k));
  Rows y(m, n, n + 5);
  Epilogue e;
  e.out = y.data();
  e.out_stride = y.stride;
  table.gemm(m, elements.data(), elements.stride, packed, e, scratch.data());
  y.expect_margin_untouched();
  const double tolerance = 2 * kEpsilon * std::sqrt(double(k));
  for (size_t i = 0; i < m * n; ++i)
    ASSERT_NEAR(y(i / n, i % n), truth[i], tolerance * size[i]) << i / n << ", " << i % n;
  EXPECT_GE(cosine(values(y), truth), 1 - 1e-6);
}

TEST_P(GemmTest, OddSizes) {
  const size_t sizes[] = {1, 2, 3, 5, 7, 15, 16, 17, 31, 33, 63, 65};
  for (size_t m : sizes)
    for (size_t n : {1, 7, 17, 33, 65}) check_product(table(), m, n, 37);
  for (size_t k : sizes) check_product(table(), 6, 18, k);
}

TEST_P(GemmTest, SeveralBlocks) {
  check_product(table(), 197, 65, 200);
  check_product(table(), 33, 130, 1030);
  check_product(table(), 150, 470,
                1400);  // two groups of panels, slices of k, rows behind the lead
  check_product(table(), 150, 257, 300);
  check_product(table(), 2, 192, 1500);
  check_product(table(), 1, 256, 768);
}

TEST_P(GemmTest, NoRowsOrNoDepthIsNothingToDo) {
  for (auto [m, k] : {std::pair<size_t, size_t>{0, 8}, {4, 0}}) {
    const Rows x = random_rows(4, 8, 0, 1, bf16()), w = random_rows(64, 8, 0, 2, bf16());
    const PackedMatrix packed = pack(table(), {w.data(), 64, k, w.stride});
    Elements elements(table(), x);
    Scratch scratch(table().gemm_scratch(4, 64, 8));
    Rows y(4, 64, 64);
    Epilogue e;
    e.out = y.data();
    e.out_stride = y.stride;
    table().gemm(m, elements.data(), elements.stride, packed, e, scratch.data());
    for (size_t i = 0; i < 4 * y.stride; ++i) ASSERT_TRUE(std::isnan(y.data()[i])) << i;
  }
}

TEST_P(GemmTest, ScratchForManyRowsServesFewer) {
  for (size_t k : {0, 17, 300, 768, 1100, 3072})
    for (size_t m = 1, before = 0; m < 400; m += 3) {
      const size_t bytes = table().gemm_scratch(m, 100, k);
      ASSERT_GE(bytes, before) << m << " rows, k " << k;
      before = bytes;
    }
}

TEST_P(GemmTest, TransposedPackingIsTheSameMatrix) {
  for (auto [n, k] : {std::pair<size_t, size_t>{1, 1}, {35, 50}, {64, 33}, {17, 300}}) {
    const Rows w = random_rows(n, k, 3, 5, bf16());
    Rows turned(k, n, n + 1);
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < k; ++j) turned(j, i) = w(i, j);
    const PackedMatrix straight = pack(table(), {w.data(), n, k, w.stride});
    const PackedMatrix other = pack(table(), {turned.data(), k, n, turned.stride}, true);
    ASSERT_EQ(straight.n, other.n);
    ASSERT_EQ(straight.k, other.k);
    ASSERT_EQ(straight.data.bytes(), other.data.bytes());
    EXPECT_EQ(std::memcmp(straight.data.data(), other.data.data(), other.data.bytes()), 0);
  }
}

// Bits of `parts`: 1 bias, 2 pre_activation, 4 scale, 8 residual, 16 out, 32 element_out, 64
// residual is out.
void check_epilogue(const Kernel& table, Activation activation, unsigned parts, size_t m,
                    size_t n) {
  SCOPED_TRACE(testing::Message() << "activation " << int(activation) << " parts " << parts);
  const size_t k = 40;
  const bool bf16 = table.precision == Precision::bf16;
  const Rows x = random_rows(m, k, 0, 1, bf16), w = random_rows(n, k, 0, 2, bf16, 0.2f);
  const Rows bias = random_rows(1, n, 0, 3), scale = random_rows(1, n, 0, 4);
  Rows residual = random_rows(m, n, 3, 5);
  std::vector<double> truth, size;
  truth_of(x, w, truth, size);

  Elements elements(table, x);
  const PackedMatrix packed = pack(table, {w.data(), n, k, w.stride});
  Scratch scratch(table.gemm_scratch(m, n, k));
  Rows pre(m, n, n + 1), out(m, n, n + 2), blank(m, n, n);
  Elements element_out(table, blank, 1);
  Epilogue e;
  e.activation = activation;
  if (parts & 1) e.bias = bias.data();
  if (parts & 2) e.pre_activation = pre.data(), e.pre_stride = pre.stride;
  if (parts & 4) e.scale = scale.data();
  if (parts & 8) e.residual = residual.data(), e.residual_stride = residual.stride;
  if (parts & 16) e.out = out.data(), e.out_stride = out.stride;
  if (parts & 32) e.element_out = element_out.data(), e.element_stride = element_out.stride;
  const Rows before = residual;
  if (parts & 64) e.out = residual.data(), e.out_stride = residual.stride;
  table.gemm(m, elements.data(), elements.stride, packed, e, scratch.data());

  const Rows& written = parts & 64 ? residual : out;
  pre.expect_margin_untouched();
  written.expect_margin_untouched();
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j) {
      double y = truth[i * n + j];
      if (parts & 1) y += bias(0, j);
      const double tolerance = 1e-6 * (size[i * n + j] + 3);
      if (parts & 2) {
        ASSERT_NEAR(pre(i, j), y, tolerance);
      }
      y = reference::activation(activation, y);
      // activation_test.cpp, BehindAProduct
      const double rough = bf16 && activation != Activation::none ? 1e-5 + 1.5e-4 * std::abs(y) : 0;
      if (parts & 4) y *= scale(0, j);
      if (parts & 8) y += before(i, j);
      const double loose = (tolerance + rough) * (1 + std::abs(scale(0, j)));
      if (parts & 80) {
        ASSERT_NEAR(written(i, j), y, loose) << i << ", " << j;
      }
      if (parts & 32) {
        ASSERT_NEAR(element_out.value(i, j), y, loose + (bf16 ? std::abs(y) / 256 : 0));
      }
    }
  if (!(parts & 32)) return;
  for (size_t i = 0; i < m; ++i)  // the zeros that the next product counts on
    for (size_t j = n; j < round_up(n, table.k_multiple); ++j)
      ASSERT_EQ(element_out.value(i, j), 0) << i << ", " << j;
}

TEST_P(GemmTest, EpilogueInEveryCombination) {
  for (unsigned parts = 0; parts < 64; ++parts)
    if (parts & 48) check_epilogue(table(), Activation::gelu, parts, 19, 37);
  for (unsigned parts = 8; parts < 64; ++parts)
    if ((parts & 24) == 8) check_epilogue(table(), Activation::none, parts | 64, 5, 50);
}

TEST_P(GemmTest, EpilogueOfEveryActivation) {
  for (Activation f : {Activation::none, Activation::relu, Activation::gelu, Activation::gelu_tanh,
                       Activation::quick_gelu, Activation::silu})
    check_epilogue(table(), f, 63, 49, 70);
}

FUNGI_FOR_EVERY_TABLE(GemmTest);

}  // namespace
}  // namespace fungi::kernel
