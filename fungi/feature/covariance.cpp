// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/covariance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "fungi/base/cpu.h"
#include "fungi/base/error.h"

namespace fungi {
namespace {

constexpr size_t kBlockRows =
    2304;  // long enough that adding in f64 costs little, short enough for f32 sums
constexpr size_t kSplitRows = 256;  // on tiles, whose f32 sums run through all of k
constexpr size_t kTile = 256;       // columns of one packed operand
constexpr size_t kLine = 16;        // floats in a line of the cache
constexpr size_t kStrip = 64;       // columns transposed together
constexpr size_t kMirror = 64;      // rows and columns of the scatter mirrored together

// Two bf16 numbers that together hold 16 bits of x; both as floats.
std::pair<float, float> split(float x) {
  const auto round = [](float v) {
    uint32_t bits;
    std::memcpy(&bits, &v, 4);
    bits = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u;
    std::memcpy(&v, &bits, 4);
    return v;
  };
  const float high = round(x);
  return {high, round(x - high)};
}

// As kernel::pack, into the memory of an earlier block of the same size.
void pack_again(const kernel::Kernel& table, View<const float> w, kernel::PackedMatrix& packed) {
  if (packed.n == w.rows && packed.k == w.cols)
    table.pack(w.data, w.stride, false, packed.n, packed.k, packed.data.data());
  else
    packed = kernel::pack(table, w);
}

// to[c, i] = from[i, c] for `cols` columns. A whole line of each column is written at once: columns
// lie a power of two apart and would push each other out of the cache. Rows lie pages apart, where
// no hardware looks ahead.
void transpose_columns(View<const float> from, size_t first, size_t cols, Matrix<float>& to) {
  float tile[kStrip][kLine];
  for (size_t i = 0; i < from.rows; i += kLine) {
    const size_t rows = std::min(kLine, from.rows - i);
    for (size_t r = 0; r < rows; ++r) {
      const float* row = from.row(i + r) + first;
      if (i + r + kLine < from.rows)
        for (size_t c = 0; c < cols; c += kLine)
          __builtin_prefetch(from.row(i + r + kLine) + first + c);
      for (size_t c = 0; c < cols; ++c) tile[c][r] = row[c];
    }
    for (size_t c = 0; c < cols; ++c) std::copy_n(tile[c], rows, to.row(first + c) + i);
  }
}

// Subtracts the shift from a column; returns the sum of what it becomes. Eight sums at once, since
// each addition waits for the one before.
double shift_column(float* column, size_t rows, float shift) {
  double sum[8] = {};
  size_t i = 0;
  for (; i + 8 <= rows; i += 8)
    for (size_t l = 0; l < 8; ++l) {
      column[i + l] -= shift;
      sum[l] += column[i + l];
    }
  for (; i < rows; ++i) sum[i % 8] += column[i] -= shift;
  return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}

}  // namespace

Covariance::Covariance(size_t width, Products products)
    : width_(width), products_(products), sum_(width, 0.0) {
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

void Covariance::take_block(View<const float> block, Pool& pool) {
  if (columns_.rows() == 0) {  // not before: a fit on few wide rows never comes here
    columns_ = Matrix<float>(width_, kBlockRows);
    scatter_ = Matrix<double>(width_, width_);
  }
  transpose(block, pool);
  multiply(block.rows, pool);
  taken_ += block.rows;
}

// columns_[c, i] = block[i, c] − shift[c], and the sums of the columns.
void Covariance::transpose(View<const float> block, Pool& pool) {
  const bool first = shift_.empty();
  if (first) shift_.assign(width_, 0.0f);
  std::vector<size_t> bad(width_, block.rows);  // first row with NaN or infinity, per column
  pool.parallel_for(width_, kStrip, [&](size_t begin, size_t end, unsigned) {
    transpose_columns(block, begin, end - begin, columns_);
    for (size_t c = begin; c < end; ++c) {
      float* column = columns_.row(c);
      if (first) shift_[c] = float(shift_column(column, block.rows, 0.0f) / double(block.rows));
      const double sum = shift_column(column, block.rows, shift_[c]);
      sum_[c] += sum;
      if (!std::isfinite(sum))
        for (bad[c] = 0; bad[c] + 1 < block.rows && std::isfinite(block(bad[c], c));) ++bad[c];
    }
  });
  const size_t row = *std::min_element(bad.begin(), bad.end());
  if (row < block.rows)
    fail(fmt::format("expected finite numbers, found NaN or infinity in row {}", taken_ + row),
         "features", "remove the row or extract it again");
}

// x = high + low: the four products lie side by side along k, the smallest first.
void Covariance::split_operand(const kernel::Kernel& table, View<const float> plain, Operand& o) {
  const size_t n = plain.cols, k = 4 * n;
  o.stride = round_up(k, table.k_multiple);
  Matrix<float> left(plain.rows, o.stride), right(plain.rows, k);
  for (size_t i = 0; i < plain.rows; ++i)
    for (size_t j = 0; j < n; ++j) {
      const auto [high, low] = split(plain(i, j));
      left(i, j) = left(i, 2 * n + j) = low;
      left(i, n + j) = left(i, 3 * n + j) = high;
      right(i, j) = right(i, n + j) = low;
      right(i, 2 * n + j) = right(i, 3 * n + j) = high;
    }
  o.elements = Buffer(plain.rows * o.stride * table.element_size);
  table.to_elements(plain.rows, k, left.data(), left.stride(), o.elements.data(), o.stride);
  pack_again(table, right, o.packed);
}

void Covariance::multiply(size_t rows, Pool& pool) {
  const bool split_products = products_ == Products::split_bf16;
  const auto& table =
      kernel::kernel_for(best_isa(), split_products ? Precision::bf16 : Precision::f32);
  const size_t chunks = (width_ + kTile - 1) / kTile;
  const auto chunk_cols = [&](size_t c) { return std::min(kTile, width_ - c * kTile); };
  const size_t most = split_products ? kSplitRows : rows, parts = (rows + most - 1) / most;

  operands_.resize(chunks * parts);  // [chunk of columns][part of the rows]
  pool.parallel_for(chunks * parts, 1, [&](size_t task, size_t, unsigned) {
    const size_t c = task / parts, first = task % parts * most;
    const View<const float> plain(columns_.row(c * kTile) + first, chunk_cols(c),
                                  std::min(most, rows - first), columns_.stride());
    if (split_products)
      split_operand(table, plain, operands_[task]);
    else
      pack_again(table, plain, operands_[task].packed);
  });

  std::vector<Buffer> scratch(pool.threads());
  std::vector<Matrix<float>> tiles;
  for (unsigned w = 0; w < pool.threads(); ++w) tiles.emplace_back(kTile, kTile);
  pool.parallel_for(chunks * (chunks + 1) / 2, 1, [&](size_t task, size_t, unsigned worker) {
    size_t i = 0, j = task;  // task → tile (i, j) with j ≤ i
    while (j > i) j -= ++i;
    Matrix<float>& tile = tiles[worker];
    kernel::Epilogue epilogue;
    epilogue.out = tile.data();
    epilogue.out_stride = epilogue.residual_stride = tile.stride();
    for (size_t p = 0; p < parts; ++p) {
      const Operand &x = operands_[i * parts + p], &y = operands_[j * parts + p];
      const size_t bytes = table.gemm_scratch(chunk_cols(i), chunk_cols(j), y.packed.k);
      if (scratch[worker].bytes() < bytes) scratch[worker] = Buffer(bytes);
      epilogue.residual = p > 0 ? tile.data() : nullptr;
      if (split_products)
        table.gemm(chunk_cols(i), x.elements.data(), x.stride, y.packed, epilogue,
                   scratch[worker].data());
      else
        table.gemm(chunk_cols(i), columns_.row(i * kTile), columns_.stride(), y.packed, epilogue,
                   scratch[worker].data());
    }
    for (size_t r = 0; r < chunk_cols(i); ++r) {
      double* to = scatter_.row(i * kTile + r) + j * kTile;
      for (size_t c = 0; c < chunk_cols(j); ++c) to[c] += tile(r, c);
    }
  });
}

Moments Covariance::finish(Pool& pool) {
  if (waiting_ > 0) {
    const View<const float> rest = std::as_const(buffer_).view().slice(0, waiting_);
    waiting_ = 0;
    take_block(rest, pool);
  }
  if (taken_ == 0) fail("expected at least one row, found none", "features", "");
  Moments out{taken_, std::vector<double>(width_), std::move(scatter_)};
  std::vector<double> mean(width_);  // of the shifted columns
  for (size_t c = 0; c < width_; ++c) {
    mean[c] = sum_[c] / double(taken_);
    out.mean[c] = mean[c] + double(shift_[c]);
  }
  pool.parallel_for(width_, kMirror, [&](size_t begin, size_t end, unsigned) {
    for (size_t left = 0; left < end; left += kMirror)
      for (size_t i = begin; i < end; ++i)
        for (size_t j = left; j < std::min(left + kMirror, i + 1); ++j) {
          const double value = out.scatter(i, j) - double(taken_) * mean[i] * mean[j];
          if (!std::isfinite(value))
            fail("expected numbers whose squares fit f32, found larger ones", "features",
                 "scale the features down");
          out.scatter(i, j) = out.scatter(j, i) = value;
        }
  });
  *this = Covariance(width_, products_);
  return out;
}

}  // namespace fungi
