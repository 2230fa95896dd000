// SPDX-License-Identifier: Apache-2.0
#include "fungi/pca/eigen_band.h"

#include <algorithm>
#include <cmath>

namespace fungi {
namespace {

// Rows per task, whatever the threads. Blocks begin at multiples of it, so that a block's own
// square on the diagonal is always whole; below it nothing is kept.
constexpr size_t kRows = 64;

}  // namespace

double reflection(const double* x, size_t length, double* v, double& beta) {
  double scale = 0;
  for (size_t i = 1; i < length; ++i) scale = std::max(scale, std::fabs(x[i]));
  const double head = x[0];
  v[0] = 1;
  if (scale == 0) {
    beta = head;
    std::fill_n(v + 1, length - 1, 0.0);
    return 0;
  }
  double squares[4] = {};  // of the rest, scaled against underflow
  for (size_t i = 1; i < length; ++i) squares[i % 4] += x[i] / scale * (x[i] / scale);
  const double rest = (squares[0] + squares[1]) + (squares[2] + squares[3]);
  const double norm = std::hypot(head, scale * std::sqrt(rest));
  beta = head > 0 ? -norm : norm;
  const double inverse = 1 / (head - beta);
  for (size_t i = 1; i < length; ++i) v[i] = x[i] * inverse;
  return (beta - head) / beta;
}

BandReduction::BandReduction(Matrix<double>& a, const EigenKernel& kernel, Pool& pool)
    : a_(a), n_(a.rows()), kernel_(kernel), pool_(pool) {
  for (size_t i = 0; i < n_; ++i)  // whole squares on the diagonal
    for (size_t j = i / kRows * kRows; j < i; ++j) a_(i, j) = a_(j, i);
  if (n_ > kBand + 1) {
    left_ = Matrix<double>(n_, 2 * kBand);
    right_ = Matrix<double>(2 * kBand, n_);
  }
  for (size_t from = kBand; from + 1 < n_; from += kBand)
    panels_.push_back({from, Matrix<double>(kBand, n_ - from), Matrix<double>(kBand, kBand)});
  for (size_t p = 0; p < panels_.size(); ++p) {
    if (p == 0) reduce_rows(panels_[0]);
    multiply(panels_[p]);
    update(panels_[p], p + 1 < panels_.size() ? &panels_[p + 1] : nullptr);
  }
  left_ = {};
  right_ = {};
}

// Runs body(begin, rows) for the blocks of the rows [from, n).
template <class Body>
void BandReduction::for_blocks(size_t from, Body body) {
  const size_t first = from / kRows;
  pool_.parallel_for((n_ + kRows - 1) / kRows - first, 1, [&](size_t block, size_t, unsigned) {
    const size_t begin = std::max(from, (first + block) * kRows);
    body(begin, std::min(n_, (first + block + 1) * kRows) - begin);
  });
}

// The panel's rows right of the band ← those rows times reflections, found on the way.
void BandReduction::reduce_rows(Panel& panel) {
  const size_t from = panel.from, length = n_ - from, count = std::min(kBand, length - 1);
  Matrix<double>&v = panel.v, &t = panel.t;
  double along[kBand], mixed[kBand + 1] = {};
  for (size_t s = 0; s < kBand; ++s) {
    double* row = a_.row(from - kBand + s) + from;
    const size_t before = std::min(s, count);
    // row ← row (I − Vᵀ T V) by the reflections so far
    for (size_t u = 0; u < before; ++u) along[u] = kernel_.dot(length - u, row + u, v.row(u) + u);
    for (size_t u = 0; u < before; ++u) {
      mixed[u] = 0;
      for (size_t x = 0; x <= u; ++x) mixed[u] -= along[x] * t(x, u);
    }
    mixed[before] = 0;
    for (size_t u = 0; u < before; u += 2)
      kernel_.add_two(length - u, mixed[u], v.row(u) + u, mixed[u + 1],
                      v.row(std::min(u + 1, kBand - 1)) + u, row + u);
    if (s >= count) continue;

    const double tau = reflection(row + s, length - s, v.row(s) + s, row[s]);
    // T's column: −τ T (V v), then τ on the diagonal.
    for (size_t u = 0; u < s; ++u) along[u] = kernel_.dot(length - s, v.row(u) + s, v.row(s) + s);
    for (size_t u = 0; u < s; ++u) {
      double sum = 0;
      for (size_t x = u; x < s; ++x) sum += t(u, x) * along[x];
      t(u, s) = -tau * sum;
    }
    t(s, s) = tau;
  }
}

// Wᵀ = Y − ½ Vᵀ (Tᵀ V Y) with Y = A Vᵀ T, into left_ and right_ beside V.
void BandReduction::multiply(const Panel& panel) {
  const size_t from = panel.from, stride = a_.stride(), wide = left_.stride();
  for_blocks(from, [&](size_t begin, size_t rows) {
    for (size_t s = 0; s < kBand; ++s) {
      const double* v = panel.v.row(s) + (begin - from);
      std::copy_n(v, rows, right_.row(kBand + s) + begin);
      for (size_t i = 0; i < rows; ++i) left_(begin + i, s) = v[i];
    }
  });
  for_blocks(from, [&](size_t begin, size_t rows) {
    double product[kRows * kBand] = {};  // −A Vᵀ: the block's rows, and its columns above them
    kernel_.subtract_product(rows, kBand, n_ - begin, a_.row(begin) + begin, stride,
                             left_.row(begin), wide, product, kBand);
    kernel_.subtract_transposed(rows, kBand, begin - from, a_.row(from) + begin, stride,
                                left_.row(from), wide, product, kBand);
    for (size_t i = 0; i < rows; ++i) std::fill_n(left_.row(begin + i) + kBand, kBand, 0.0);
    kernel_.subtract_product(rows, kBand, kBand, product, kBand, panel.t.data(), kBand,
                             left_.row(begin) + kBand, wide);
  });
  double square[kBand * kBand] = {}, half[kBand * kBand] = {};  // −V Y; ½ Tᵀ V Y
  kernel_.subtract_product(kBand, kBand, n_ - from, panel.v.data(), panel.v.stride(),
                           left_.row(from) + kBand, wide, square, kBand);
  for (double& x : square) x *= 0.5;
  kernel_.subtract_transposed(kBand, kBand, kBand, panel.t.data(), kBand, square, kBand, half,
                              kBand);
  for_blocks(from, [&](size_t begin, size_t rows) {
    kernel_.subtract_product(rows, kBand, kBand, left_.row(begin), wide, half, kBand,
                             left_.row(begin) + kBand, wide);
    for (size_t s = 0; s < kBand; ++s)
      for (size_t i = begin; i < begin + rows; ++i) right_(s, i) = left_(i, kBand + s);
  });
}

// A −= Vᵀ W + Wᵀ V on the upper triangle behind the panel. The rows of the next panel come first:
// they are reduced while the others are updated.
void BandReduction::update(const Panel& panel, Panel* next) {
  const size_t first = panel.from / kRows, blocks = (n_ + kRows - 1) / kRows - first;
  const size_t lead = next ? (next->from - 1) / kRows - first + 1 : 1;  // blocks of the first task
  pool_.parallel_for(blocks - lead + 1, 1, [&](size_t task, size_t, unsigned) {
    for (size_t block = task == 0 ? 0 : task + lead - 1; block < task + lead; ++block) {
      const size_t begin = std::max(panel.from, (first + block) * kRows);
      const size_t rows = std::min(n_, (first + block + 1) * kRows) - begin;
      kernel_.subtract_product(rows, n_ - begin, 2 * kBand, left_.row(begin), left_.stride(),
                               right_.data() + begin, right_.stride(), a_.row(begin) + begin,
                               a_.stride());
    }
    if (task == 0 && next) reduce_rows(*next);
  });
}

void BandReduction::transform_back(double* z) const {
  const size_t wide = kernel_.columns;
  Matrix<double> along(kBand, wide), mixed(kBand, wide);
  for (auto panel = panels_.rbegin(); panel != panels_.rend(); ++panel) {
    const size_t length = panel->v.cols();
    double* rows = z + panel->from * wide;
    std::fill_n(along.data(), kBand * wide, 0.0);
    std::fill_n(mixed.data(), kBand * wide, 0.0);
    kernel_.subtract_product(kBand, wide, length, panel->v.data(), length, rows, wide, along.data(),
                             wide);  // −V z
    kernel_.subtract_product(kBand, wide, kBand, panel->t.data(), kBand, along.data(), wide,
                             mixed.data(), wide);  // T V z
    kernel_.subtract_transposed(length, wide, kBand, panel->v.data(), length, mixed.data(), wide,
                                rows, wide);
  }
}

}  // namespace fungi
