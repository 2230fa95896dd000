// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/covariance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "fungi/base/cpu.h"
#include "fungi/base/error.h"
#include "fungi/kernel/kernel.h"

namespace fungi {
namespace {

constexpr size_t kBlockRows =
    2048;  // long enough that adding in f64 costs little, short enough for f32 sums
constexpr size_t kTile = 256;  // columns of one packed operand

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

// One operand of the products of a block: rows of [columns, k] elements, and the same packed.
struct Operand {
  Buffer elements;
  kernel::PackedMatrix packed;
};

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
  pool.parallel_for(width_, 16, [&](size_t begin, size_t end, unsigned) {
    for (size_t i = 0; i < block.rows; ++i)
      for (size_t c = begin; c < end; ++c) columns_(c, i) = block(i, c);
    for (size_t c = begin; c < end; ++c) {
      float* column = columns_.row(c);
      if (first) {
        double sum = 0;
        for (size_t i = 0; i < block.rows; ++i) sum += column[i];
        shift_[c] = float(sum / double(block.rows));
      }
      double sum = 0;
      for (size_t i = 0; i < block.rows; ++i) {
        column[i] -= shift_[c];
        sum += column[i];
      }
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

void Covariance::multiply(size_t rows, Pool& pool) {
  const bool split_products = products_ == Products::split_bf16;
  const auto& table =
      kernel::kernel_for(best_isa(), split_products ? Precision::bf16 : Precision::f32);
  const size_t k = split_products ? 4 * rows : rows, stride = round_up(k, table.k_multiple);
  const size_t chunks = (width_ + kTile - 1) / kTile;
  const auto chunk_cols = [&](size_t c) { return std::min(kTile, width_ - c * kTile); };

  std::vector<Operand> operands(chunks);
  pool.parallel_for(chunks, 1, [&](size_t c, size_t, unsigned) {
    const size_t cols = chunk_cols(c);
    const View<const float> plain(columns_.row(c * kTile), cols, rows, columns_.stride());
    Operand& o = operands[c];
    if (!split_products) {
      o.packed = kernel::pack(table, plain);
      return;
    }
    // x = high + low: the sum of all four products, laid side by side along k.
    Matrix<float> left(cols, stride), right(cols, k);
    for (size_t i = 0; i < cols; ++i)
      for (size_t j = 0; j < rows; ++j) {
        const auto [high, low] = split(plain(i, j));
        left(i, j) = left(i, 2 * rows + j) = high;
        left(i, rows + j) = left(i, 3 * rows + j) = low;
        right(i, j) = right(i, rows + j) = high;
        right(i, 2 * rows + j) = right(i, 3 * rows + j) = low;
      }
    o.elements = Buffer(cols * stride * table.element_size);
    table.to_elements(cols, k, left.data(), left.stride(), o.elements.data(), stride);
    o.packed = kernel::pack(table, right);
  });

  std::vector<Buffer> scratch(pool.threads());
  std::vector<Matrix<float>> tiles;
  for (unsigned w = 0; w < pool.threads(); ++w) tiles.emplace_back(kTile, kTile);
  pool.parallel_for(chunks * (chunks + 1) / 2, 1, [&](size_t task, size_t, unsigned worker) {
    size_t i = 0, j = task;  // task → tile (i, j) with j ≤ i
    while (j > i) j -= ++i;
    Matrix<float>& tile = tiles[worker];
    const size_t bytes = table.gemm_scratch(chunk_cols(i), chunk_cols(j), k);
    if (scratch[worker].bytes() < bytes) scratch[worker] = Buffer(bytes);
    kernel::Epilogue epilogue;
    epilogue.out = tile.data();
    epilogue.out_stride = tile.stride();
    const void* left = split_products ? static_cast<const void*>(operands[i].elements.data())
                                      : columns_.row(i * kTile);
    table.gemm(chunk_cols(i), left, split_products ? stride : columns_.stride(), operands[j].packed,
               epilogue, scratch[worker].data());
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
  for (size_t i = 0; i < width_; ++i)
    for (size_t j = 0; j <= i; ++j) {
      const double value = out.scatter(i, j) - double(taken_) * mean[i] * mean[j];
      if (!std::isfinite(value))
        fail("expected numbers whose squares fit f32, found larger ones", "features",
             "scale the features down");
      out.scatter(i, j) = out.scatter(j, i) = value;
    }
  *this = Covariance(width_, products_);
  return out;
}

}  // namespace fungi
