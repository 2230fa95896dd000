// SPDX-License-Identifier: Apache-2.0
#include "fungi/pca/covariance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "fungi/base/error.h"

namespace fungi {
namespace {

constexpr size_t kMirror = 64;  // rows and columns of the scatter mirrored together

}  // namespace

Covariance::Covariance(size_t width, Products products)
    : width_(width), kind_(products), products_(width, products), sum_(width, 0.0) {}

void Covariance::add(View<const float> rows, Pool& pool) {
  if (rows.cols != width_)
    fail(fmt::format("expected rows of width {}, found {}", width_, rows.cols), "features",
         "use the same model and features for all rows");
  size_t next = 0;
  while (next < rows.rows) {
    if (waiting_ == 0 && rows.rows - next >= BlockProducts::kRows) {
      take_block(rows.slice(next, BlockProducts::kRows), pool);
      next += BlockProducts::kRows;
      continue;
    }
    if (buffer_.rows() == 0) buffer_ = Matrix<float>(BlockProducts::kRows, width_);
    const size_t count = std::min(BlockProducts::kRows - waiting_, rows.rows - next);
    for (size_t i = 0; i < count; ++i)
      std::copy_n(rows.row(next + i), width_, buffer_.row(waiting_ + i));
    waiting_ += count;
    next += count;
    if (waiting_ == BlockProducts::kRows) {
      waiting_ = 0;
      take_block(buffer_, pool);
    }
  }
}

void Covariance::take_block(View<const float> block, Pool& pool) {
  constexpr size_t kTile = BlockProducts::kTile;
  const std::vector<double> sums = products_.take(block, taken_, pool);
  for (size_t c = 0; c < width_; ++c) sum_[c] += sums[c];
  if (scatter_.rows() == 0) scatter_ = Matrix<double>(width_, width_);
  products_.each_tile(pool, [&](size_t i, size_t j, const Matrix<float>& tile) {
    for (size_t r = 0; r < products_.tile_columns(i); ++r) {
      double* to = scatter_.row(i * kTile + r) + j * kTile;
      const size_t cols = i == j ? r + 1 : products_.tile_columns(j);
      for (size_t c = 0; c < cols; c += 8)  // rows lie pages apart
        __builtin_prefetch(to + 4 * scatter_.stride() + c, 1);
      for (size_t c = 0; c < cols; ++c) to[c] += tile(r, c);
    }
  });
  taken_ += block.rows;
}

Moments Covariance::finish(Pool& pool) {
  if (waiting_ > 0) {
    const View<const float> rest = std::as_const(buffer_).view().slice(0, waiting_);
    waiting_ = 0;
    take_block(rest, pool);
  }
  if (taken_ == 0) fail("expected at least one row, found none", "features", "");
  Covariance whole = std::move(*this);
  *this = Covariance(width_, kind_);  // before anything can fail: the sums are gone
  return moments_of(whole.taken_, whole.products_.shift(), whole.sum_, std::move(whole.scatter_),
                    pool);
}

Moments moments_of(size_t rows, const std::vector<float>& shift, const std::vector<double>& sum,
                   Matrix<double> scatter, Pool& pool) {
  const size_t width = shift.size();
  Moments out{rows, std::vector<double>(width), std::move(scatter)};
  std::vector<double> mean(width);  // of the shifted columns
  for (size_t c = 0; c < width; ++c) {
    mean[c] = sum[c] / double(rows);
    out.mean[c] = mean[c] + double(shift[c]);
  }
  pool.parallel_for(width, kMirror, [&](size_t begin, size_t end, unsigned) {
    for (size_t left = 0; left < end; left += kMirror)
      for (size_t i = begin; i < end; ++i)
        for (size_t j = left; j < std::min(left + kMirror, i + 1); ++j) {
          const double value = out.scatter(i, j) - double(rows) * mean[i] * mean[j];
          if (!std::isfinite(value))
            fail("expected numbers whose squares fit f32, found larger ones", "features",
                 "scale the features down");
          out.scatter(i, j) = out.scatter(j, i) = value;
        }
  });
  return out;
}

}  // namespace fungi
