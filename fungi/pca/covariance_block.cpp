// SPDX-License-Identifier: Apache-2.0
#include "fungi/pca/covariance_block.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "fungi/base/cpu.h"
#include "fungi/base/error.h"
#include "fungi/kernel/bfloat16.h"
#include "fungi/kernel/kernel.h"
#include "fungi/pca/covariance_kernel.h"

namespace fungi {
namespace {

constexpr size_t kSplitRows = 256;  // on tiles, whose f32 sums run through all of k
constexpr size_t kDepth = 256;      // rows of two panels that L1 and L2 hold

// Two bf16 numbers that together hold 16 bits of x; both as floats.
std::pair<float, float> split(float x) {
  const float high = rounded_to_bfloat16(x);
  return {high, rounded_to_bfloat16(x - high)};
}

// Columns of a few rows as both operands of a product of bf16.
struct SplitOperand {
  Buffer elements;  // as rows of x
  size_t stride;
  kernel::PackedMatrix packed;  // as W

  // x = high + low: the four products lie side by side along k, the smallest first.
  SplitOperand(const kernel::Kernel& table, const Matrix<float>& columns) {
    const size_t cols = columns.rows(), n = columns.cols(), k = 4 * n;
    stride = round_up(k, table.k_multiple);
    Matrix<float> left(cols, stride), right(cols, k);
    for (size_t i = 0; i < cols; ++i)
      for (size_t j = 0; j < n; ++j) {
        const auto [high, low] = split(columns(i, j));
        left(i, j) = left(i, 2 * n + j) = low;
        left(i, n + j) = left(i, 3 * n + j) = high;
        right(i, j) = right(i, n + j) = low;
        right(i, 2 * n + j) = right(i, 3 * n + j) = high;
      }
    elements = Buffer(cols * stride * table.element_size);
    table.to_elements(cols, k, left.data(), left.stride(), elements.data(), stride);
    packed = kernel::pack(table, right);
  }
};

}  // namespace

std::pair<size_t, size_t> BlockProducts::tile_of(size_t task) {
  size_t i = 0, j = task;
  while (j > i) j -= ++i;
  return {i, j};
}

BlockProducts::BlockProducts(size_t width, Products products)
    : width_(width), products_(products), kernel_(&covariance_kernel(best_isa())) {
  if (width == 0) fail("expected at least one column, found none", "features", "");
  if (products_ == Products::automatic)
    products_ = best_isa() == Isa::amx ? Products::split_bf16 : Products::f32;
}

size_t BlockProducts::tiles() const {
  const size_t across = (width_ + kTile - 1) / kTile;
  return across * (across + 1) / 2;
}
size_t BlockProducts::tile_columns(size_t tile) const {
  return std::min(kTile, width_ - tile * kTile);
}
float* BlockProducts::panel(size_t p) {
  return reinterpret_cast<float*>(panels_.data()) + p * kRows * kernel_->columns;
}

std::vector<double> BlockProducts::take(View<const float> block, size_t first_row, Pool& pool) {
  FUNGI_ASSERT(kTile % kernel_->columns == 0 && block.rows <= kRows);
  if (panels_.bytes() == 0)  // not before: a fit on few wide rows never comes here
    panels_ = Buffer(round_up(width_, kernel_->columns) * kRows * sizeof(float));
  if (shift_.empty()) {
    shift_.assign(width_, 0.0f);
    const std::vector<double> sums = take_panels(block, first_row, pool);
    for (size_t c = 0; c < width_; ++c) shift_[c] = float(sums[c] / double(block.rows));
  }
  rows_ = block.rows;
  return take_panels(block, first_row, pool);
}

// panels_ = block − shift; returns the sums of the columns.
std::vector<double> BlockProducts::take_panels(View<const float> block, size_t first_row,
                                               Pool& pool) {
  const size_t wide = kernel_->columns, panels = (width_ + wide - 1) / wide;
  std::vector<double> sums(panels * wide, 0.0);
  std::vector<size_t> bad(panels, block.rows);  // first row with NaN or infinity, per panel
  pool.parallel_for(panels, 1, [&](size_t p, size_t, unsigned) {
    const size_t first = p * wide, cols = std::min(wide, width_ - first);
    kernel_->take_panel(block.rows, cols, block.data + first, block.stride, shift_.data() + first,
                        panel(p), sums.data() + first);
    for (size_t c = first; c < first + cols; ++c)
      if (!std::isfinite(sums[c])) {
        size_t row = 0;
        while (row + 1 < block.rows && std::isfinite(block(row, c))) ++row;
        bad[p] = std::min(bad[p], row);
      }
  });
  const size_t row = *std::min_element(bad.begin(), bad.end());
  if (row < block.rows) fail_not_finite("features", first_row + row);
  return sums;
}

void BlockProducts::each_tile(Pool& pool, const UseTile& use) {
  products_ == Products::split_bf16 ? multiply_split(pool, use) : multiply(pool, use);
}

// use(i, j, product(i, j)) for every tile.
template <class Product>
void BlockProducts::each_product(Pool& pool, const UseTile& use, Product product) {
  std::vector<Matrix<float>> room;
  for (unsigned w = 0; w < pool.threads(); ++w) room.emplace_back(kTile, kTile);
  pool.parallel_for(tiles(), 1, [&](size_t task, size_t, unsigned worker) {
    const auto [i, j] = tile_of(task);
    product(i, j, room[worker], worker);
    use(i, j, room[worker]);
  });
}

void BlockProducts::multiply(Pool& pool, const UseTile& use) {
  const size_t wide = kernel_->columns, per_tile = kTile / wide;
  const auto panels_of = [&](size_t tile) { return (tile_columns(tile) + wide - 1) / wide; };
  each_product(pool, use, [&](size_t i, size_t j, Matrix<float>& tile, unsigned) {
    std::fill_n(tile.data(), kTile * kTile, 0.0f);
    for (size_t k = 0; k < rows_; k += kDepth)
      for (size_t q = 0; q < panels_of(j); ++q)
        for (size_t p = i == j ? q : 0; p < panels_of(i); ++p)
          kernel_->add_products(std::min(kDepth, rows_ - k), panel(i * per_tile + p) + k * wide,
                                panel(j * per_tile + q) + k * wide, &tile(p * wide, q * wide),
                                kTile);
  });
}

void BlockProducts::multiply_split(Pool& pool, const UseTile& use) {
  const auto& table = kernel::kernel_for(best_isa(), Precision::bf16);
  const size_t wide = kernel_->columns, across = (width_ + kTile - 1) / kTile;
  const size_t parts = (rows_ + kSplitRows - 1) / kSplitRows;
  std::vector<std::optional<SplitOperand>> operands(across * parts);  // [tile][part of the rows]
  pool.parallel_for(operands.size(), 1, [&](size_t task, size_t, unsigned) {
    const size_t tile = task / parts, first = task % parts * kSplitRows;
    Matrix<float> columns(tile_columns(tile), std::min(kSplitRows, rows_ - first));
    for (size_t c = 0; c < columns.rows(); ++c) {
      const size_t column = tile * kTile + c;
      const float* from = panel(column / wide) + first * wide + column % wide;
      for (size_t r = 0; r < columns.cols(); ++r) columns(c, r) = from[r * wide];
    }
    operands[task].emplace(table, columns);
  });
  std::vector<Buffer> scratch(pool.threads());
  each_product(pool, use, [&](size_t i, size_t j, Matrix<float>& tile, unsigned worker) {
    kernel::Epilogue epilogue;
    epilogue.out = tile.data();
    epilogue.out_stride = epilogue.residual_stride = tile.stride();
    for (size_t p = 0; p < parts; ++p) {
      const SplitOperand &x = *operands[i * parts + p], &y = *operands[j * parts + p];
      const size_t bytes = table.gemm_scratch(tile_columns(i), tile_columns(j), y.packed.k);
      if (scratch[worker].bytes() < bytes) scratch[worker] = Buffer(bytes);
      epilogue.residual = p > 0 ? tile.data() : nullptr;
      table.gemm(tile_columns(i), x.elements.data(), x.stride, y.packed, epilogue,
                 scratch[worker].data());
    }
  });
}

}  // namespace fungi
