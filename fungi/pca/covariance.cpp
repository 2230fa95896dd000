// SPDX-License-Identifier: Apache-2.0
#include "fungi/pca/covariance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "fungi/base/cpu.h"
#include "fungi/base/error.h"
#include "fungi/comm/bytes.h"
#include "fungi/comm/comm.h"
#include "fungi/kernel/bfloat16.h"
#include "fungi/kernel/kernel.h"

namespace fungi {
namespace {

// Rows of a block: long enough that adding in f64 costs little, short enough for f32 sums.
constexpr size_t kBlockRows = 2304;
constexpr size_t kSplitRows = 256;  // on tiles, whose f32 sums run through all of k
constexpr size_t kTile = 192;       // columns of a tile of the scatter: whole panels
constexpr size_t kDepth = 256;      // rows of two panels that L1 and L2 hold
constexpr size_t kMirror = 64;      // rows and columns of the scatter mirrored together

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

// Tiles are numbered along the rows of the lower triangle.
std::pair<size_t, size_t> tile_of(size_t task) {
  size_t i = 0, j = task;
  while (j > i) j -= ++i;
  return {i, j};
}

}  // namespace

Covariance::Covariance(size_t width, Products products)
    : width_(width),
      products_(products),
      kernel_(&covariance_kernel(best_isa())),
      sum_(width, 0.0) {
  if (width == 0) fail("expected at least one column, found none", "features", "");
  if (products_ == Products::automatic)
    products_ = best_isa() == Isa::amx ? Products::split_bf16 : Products::f32;
}

void Covariance::add(View<const float> rows, Pool& pool) {
  if (rows.cols != width_)
    fail(fmt::format("expected rows of width {}, found {}", width_, rows.cols), "features",
         "use the same model and features for all rows");
  size_t next = 0;
  while (next < rows.rows) {
    if (waiting_ == 0 && rows.rows - next >= kBlockRows) {
      take_block(rows.slice(next, kBlockRows), pool);
      next += kBlockRows;
      continue;
    }
    if (buffer_.rows() == 0) buffer_ = Matrix<float>(kBlockRows, width_);
    const size_t count = std::min(kBlockRows - waiting_, rows.rows - next);
    for (size_t i = 0; i < count; ++i)
      std::copy_n(rows.row(next + i), width_, buffer_.row(waiting_ + i));
    waiting_ += count;
    next += count;
    if (waiting_ == kBlockRows) {
      waiting_ = 0;
      take_block(buffer_, pool);
    }
  }
}

size_t Covariance::tiles() const { return (width_ + kTile - 1) / kTile; }
size_t Covariance::tile_columns(size_t tile) const {
  return std::min(kTile, width_ - tile * kTile);
}
float* Covariance::panel(size_t p) {
  return reinterpret_cast<float*>(panels_.data()) + p * kBlockRows * kernel_->columns;
}

void Covariance::take_block(View<const float> block, Pool& pool) {
  FUNGI_ASSERT(kTile % kernel_->columns == 0);
  if (scatter_.rows() == 0) {  // not before: a fit on few wide rows never comes here
    panels_ = Buffer(round_up(width_, kernel_->columns) * kBlockRows * sizeof(float));
    scatter_ = Matrix<double>(width_, width_);
    shift_.assign(width_, 0.0f);
    const std::vector<double> sums = take_panels(block, pool);
    for (size_t c = 0; c < width_; ++c) shift_[c] = float(sums[c] / double(block.rows));
  }
  const std::vector<double> sums = take_panels(block, pool);
  for (size_t c = 0; c < width_; ++c) sum_[c] += sums[c];
  products_ == Products::split_bf16 ? multiply_split(block.rows, pool) : multiply(block.rows, pool);
  taken_ += block.rows;
}

// panels_ = block − shift; returns the sums of the columns.
std::vector<double> Covariance::take_panels(View<const float> block, Pool& pool) {
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
  if (row < block.rows) fail_not_finite("features", taken_ + row);
  return sums;
}

// scatter_ += product(i, j, tile, worker) for every tile [kTile, kTile] of columns with j ≤ i.
template <class Product>
void Covariance::add_tiles(Pool& pool, Product product) {
  std::vector<Matrix<float>> sums;
  for (unsigned w = 0; w < pool.threads(); ++w) sums.emplace_back(kTile, kTile);
  pool.parallel_for(tiles() * (tiles() + 1) / 2, 1, [&](size_t task, size_t, unsigned worker) {
    if (!is_own(task)) return;
    const auto [i, j] = tile_of(task);
    Matrix<float>& tile = sums[worker];
    product(i, j, tile, worker);
    for (size_t r = 0; r < tile_columns(i); ++r) {
      double* to = scatter_.row(i * kTile + r) + j * kTile;
      const size_t cols = i == j ? r + 1 : tile_columns(j);
      for (size_t c = 0; c < cols; c += 8)  // rows lie pages apart
        __builtin_prefetch(to + 4 * scatter_.stride() + c, 1);
      for (size_t c = 0; c < cols; ++c) to[c] += tile(r, c);
    }
  });
}

void Covariance::multiply(size_t rows, Pool& pool) {
  const size_t wide = kernel_->columns, per_tile = kTile / wide;
  const auto panels_of = [&](size_t tile) { return (tile_columns(tile) + wide - 1) / wide; };
  add_tiles(pool, [&](size_t i, size_t j, Matrix<float>& tile, unsigned) {
    std::fill_n(tile.data(), kTile * kTile, 0.0f);
    for (size_t k = 0; k < rows; k += kDepth)
      for (size_t q = 0; q < panels_of(j); ++q)
        for (size_t p = i == j ? q : 0; p < panels_of(i); ++p)
          kernel_->add_products(std::min(kDepth, rows - k), panel(i * per_tile + p) + k * wide,
                                panel(j * per_tile + q) + k * wide, &tile(p * wide, q * wide),
                                kTile);
  });
}

void Covariance::multiply_split(size_t rows, Pool& pool) {
  const auto& table = kernel::kernel_for(best_isa(), Precision::bf16);
  const size_t wide = kernel_->columns, parts = (rows + kSplitRows - 1) / kSplitRows;
  std::vector<std::optional<SplitOperand>> operands(tiles() * parts);  // [tile][part of the rows]
  pool.parallel_for(operands.size(), 1, [&](size_t task, size_t, unsigned) {
    const size_t tile = task / parts, first = task % parts * kSplitRows;
    Matrix<float> columns(tile_columns(tile), std::min(kSplitRows, rows - first));
    for (size_t c = 0; c < columns.rows(); ++c) {
      const size_t column = tile * kTile + c;
      const float* from = panel(column / wide) + first * wide + column % wide;
      for (size_t r = 0; r < columns.cols(); ++r) columns(c, r) = from[r * wide];
    }
    operands[task].emplace(table, columns);
  });
  std::vector<Buffer> scratch(pool.threads());
  add_tiles(pool, [&](size_t i, size_t j, Matrix<float>& tile, unsigned worker) {
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

bool Covariance::is_own(size_t task) const {
  return !ranks_ || task % ranks_->size() == ranks_->rank();
}

// Every rank gets the tiles of the others.
void Covariance::put_together() {
  if (!ranks_ || ranks_->alone()) return;
  const size_t count = tiles() * (tiles() + 1) / 2;
  const auto rows_of = [&](size_t task, const auto& use) {
    const auto [i, j] = tile_of(task);
    for (size_t r = 0; r < tile_columns(i); ++r)
      use(scatter_.row(i * kTile + r) + j * kTile, tile_columns(j));
  };
  ByteWriter own;
  for (size_t task = ranks_->rank(); task < count; task += ranks_->size())
    rows_of(task, [&](const double* row, size_t cols) { own.numbers(std::vector(row, row + cols)); });
  const std::vector<std::string> all = ranks_->all_gather(own.take());
  for (size_t rank = 0; rank < all.size(); ++rank) {
    ByteReader in(all[rank]);
    for (size_t task = rank; task < count; task += all.size())
      rows_of(task, [&](double* row, size_t) {
        const auto numbers = in.numbers<double>();
        std::copy(numbers.begin(), numbers.end(), row);
      });
  }
}

Moments Covariance::finish(Pool& pool) {
  if (waiting_ > 0) {
    const View<const float> rest = std::as_const(buffer_).view().slice(0, waiting_);
    waiting_ = 0;
    take_block(rest, pool);
  }
  if (taken_ == 0) fail("expected at least one row, found none", "features", "");
  put_together();
  Moments out{taken_, std::vector<double>(width_), std::move(scatter_)};
  std::vector<double> mean(width_);  // of the shifted columns
  for (size_t c = 0; c < width_; ++c) {
    mean[c] = sum_[c] / double(taken_);
    out.mean[c] = mean[c] + double(shift_[c]);
  }
  const double rows = double(taken_);
  Comm* const ranks = ranks_;
  *this = Covariance(width_, products_);  // before anything can fail: scatter_ is gone
  ranks_ = ranks;
  pool.parallel_for(width_, kMirror, [&](size_t begin, size_t end, unsigned) {
    for (size_t left = 0; left < end; left += kMirror)
      for (size_t i = begin; i < end; ++i)
        for (size_t j = left; j < std::min(left + kMirror, i + 1); ++j) {
          const double value = out.scatter(i, j) - rows * mean[i] * mean[j];
          if (!std::isfinite(value))
            fail("expected numbers whose squares fit f32, found larger ones", "features",
                 "scale the features down");
          out.scatter(i, j) = out.scatter(j, i) = value;
        }
  });
  return out;
}

}  // namespace fungi
