// SPDX-License-Identifier: Apache-2.0
// The promise of table.h, bit for bit: a row's result is the same whatever m is and wherever the
// row stands.
#include "tests/kernel/byte_tables.h"
#include "tests/kernel/support.h"

namespace fungi::kernel {
namespace {

using RowIdentityTest = TableTest;

struct Outputs {
  Rows pre, out;
  Elements elements;
  Outputs(const Kernel& table, size_t m, size_t n)
      : pre(m, n, n), out(m, n, n), elements(table, Rows(m, n, n)) {}
};

Outputs run(const Kernel& table, const Rows& x, size_t first, size_t m, const PackedMatrix& w,
            const Rows& bias, const Rows& residual) {
  Outputs o(table, m, w.n);
  Rows part(m, x.cols, x.cols);
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < x.cols; ++j) part(i, j) = x(first + i, j);
  Elements elements(table, part);
  Scratch scratch(table.gemm_scratch(m, w.n, w.k));
  Epilogue e;
  e.bias = bias.data();
  e.activation = Activation::gelu;
  e.residual = residual.data() + first * residual.stride;
  e.residual_stride = residual.stride;
  e.pre_activation = o.pre.data();
  e.pre_stride = o.pre.stride;
  e.out = o.out.data();
  e.out_stride = o.out.stride;
  e.element_out = o.elements.data();
  e.element_stride = o.elements.stride;
  table.gemm(m, elements.data(), elements.stride, w, e, scratch.data());
  return o;
}

TEST_P(RowIdentityTest, ColumnsOfAGemmWhereAsked) {
  constexpr size_t kColumns = 100, kRows = 33, k = 300;
  const Rows x = random_rows(kRows, k, 0, 1), w = random_rows(kColumns, k, 0, 2);
  Elements elements(table(), x);
  const auto product = [&](size_t first, size_t n) {
    Rows y(kRows, n, n);
    const PackedMatrix packed = pack(table(), {w.data() + first * w.stride, n, k, w.stride});
    Scratch scratch(table().gemm_scratch(kRows, n, k));
    Epilogue e;
    e.out = y.data();
    e.out_stride = y.stride;
    e.columns_alone = true;
    table().gemm(kRows, elements.data(), elements.stride, packed, e, scratch.data());
    return y;
  };
  const Rows whole = product(0, kColumns);
  for (size_t n : {1, 2, 31, 40, 70})
    for (size_t first : {size_t(0), size_t(1), size_t(17), kColumns - n}) {
      if (first + n > kColumns) continue;
      const Rows part = product(first, n);
      for (size_t i = 0; i < kRows; ++i)
        for (size_t j = 0; j < n; ++j)
          ASSERT_EQ(
              std::memcmp(&part.data()[i * n + j], &whole.data()[i * kColumns + first + j], 4), 0)
              << "column " << first + j << " of " << n;
    }
}

TEST_P(RowIdentityTest, Gemm) {
  constexpr size_t kRows = 197;
  for (auto [n, k] : {std::pair<size_t, size_t>{96, 200}, {130, 600}, {33, 17}, {70, 1300}}) {
    const Rows x = random_rows(kRows, k, 0, 1), w = random_rows(n, k, 0, 2);
    const Rows bias = random_rows(1, n, 0, 3), residual = random_rows(kRows, n, 0, 4);
    const PackedMatrix packed = pack(table(), {w.data(), n, k, w.stride});
    Outputs whole = run(table(), x, 0, kRows, packed, bias, residual);
    for (size_t m : {1, 2, 3, 5, 16, 17, 40, 196})
      for (size_t first : {size_t(0), size_t(1), size_t(13), kRows - m}) {
        if (first + m > kRows) continue;
        Outputs part = run(table(), x, first, m, packed, bias, residual);
        for (size_t i = 0; i < m; ++i) {
          const size_t bytes = n * sizeof(float);
          ASSERT_EQ(std::memcmp(&part.pre(i, 0), &whole.pre(first + i, 0), bytes), 0) << m;
          ASSERT_EQ(std::memcmp(&part.out(i, 0), &whole.out(first + i, 0), bytes), 0) << m;
          ASSERT_EQ(std::memcmp(part.elements.at(i, 0), whole.elements.at(first + i, 0),
                                n * table().element_size),
                    0)
              << m;
        }
      }
  }
}

TEST_P(RowIdentityTest, AttentionQueries) {
  constexpr size_t kQueries = 75, kTokens = 70, kHeads = 2, kDim = 40, kWidth = kHeads * kDim;
  const Rows q = random_rows(kQueries, kWidth, 0, 1), kv = random_rows(kTokens, 2 * kWidth, 0, 2);
  Elements queries(table(), q), keys(table(), kv);
  auto attend = [&](size_t first, size_t count) {
    Rows out(count, kWidth, kWidth);
    Attention a;
    a.queries = count;
    a.tokens = kTokens;
    a.heads = kHeads;
    a.head_dim = kDim;
    a.scale = 0.3f;
    a.q = queries.at(first, 0);
    a.k = keys.at(0, 0);
    a.v = keys.at(0, kWidth);
    a.q_stride = queries.stride;
    a.k_stride = a.v_stride = keys.stride;
    a.out = out.data();
    a.out_stride = out.stride;
    Scratch scratch(table().attention_scratch(kTokens, kDim));
    table().attention(a, scratch.data());
    return out;
  };
  const Rows whole = attend(0, kQueries);
  for (size_t count : {1, 2, 15, 33})
    for (size_t first : {size_t(0), size_t(3), kQueries - count}) {
      const Rows part = attend(first, count);
      ASSERT_EQ(
          std::memcmp(part.data(), whole.data() + first * kWidth, count * kWidth * sizeof(float)),
          0)
          << count << " from " << first;
    }
}

std::vector<const Kernel*> with_byte_tables() {
  std::vector<const Kernel*> list = tables();
  for (const Kernel* table : byte_tables()) list.push_back(table);
  return list;
}

INSTANTIATE_TEST_SUITE_P(Tables, RowIdentityTest, testing::ValuesIn(with_byte_tables()),
                         table_name);

}  // namespace
}  // namespace fungi::kernel
