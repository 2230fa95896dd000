// SPDX-License-Identifier: Apache-2.0
#include "fungi/pca/eigen_chase.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>

#include "fungi/pca/eigen_band.h"

namespace fungi {
namespace {

// The band's lower triangle and the blocks below it: (r, c) lies at r kStride + c + kReach, so that
// blocks are matrices of stride kStride.
constexpr size_t kReach = 2 * kBand;
constexpr size_t kStride = kReach + kBandPadding;

constexpr size_t kTogether = 8;  // sweeps that follow each other through the same part of the band
constexpr size_t kSmall = 512;   // below this, waiting for each other costs more than it saves
constexpr size_t kGroup = 32;    // sweeps applied together on the way back: their rows stay in L1

}  // namespace

struct Chase::Sweep {
  size_t column;
  size_t step = 0, begin = 0, length = 0;  // the rows of the next reflection; none: at its end
  double tau = 0;
  double v[kBand] = {};  // zero from `length` on
};

Chase::Chase(Matrix<double>& a, const EigenKernel& kernel, Pool& pool)
    : reflections_(a),
      n_(a.rows()),
      kernel_(kernel),
      tau_(n_, (n_ + kBand - 1) / kBand),
      diagonal_(n_),
      off_diagonal_(n_) {
  std::vector<double> memory(n_ * (kStride + 1) + kReach + kBandPadding, 0.0);
  double* band = memory.data() + kReach;
  for (size_t c = 0; c < n_; ++c)
    for (size_t r = c; r < std::min(n_, c + kBand + 1); ++r) band[r * kStride + c] = a(c, r);

  // Groups of sweeps follow each other, one thread each: a group waits for the one before it, which
  // was taken before it and never waits for it.
  const size_t sweeps = n_ > 2 ? n_ - 2 : 0, groups = (sweeps + kTogether - 1) / kTogether;
  std::vector<std::atomic<size_t>> done(groups + 1);  // steps of the last sweep before each group
  done[0] = SIZE_MAX;
  const auto run_group = [&](size_t group) {
    const size_t first = group * kTogether, count = std::min(kTogether, sweeps - first);
    Sweep sweep[kTogether];
    for (size_t g = 0; g < count; ++g) sweep[g].column = first + g;
    // Two steps behind the sweep before, a sweep finds what it would find alone.
    const size_t steps = (n_ - first) / kBand + 1;
    for (size_t time = 0; time < steps + 2 * (count - 1); ++time) {
      while (done[group].load(std::memory_order_acquire) < time + 2) std::this_thread::yield();
      for (size_t g = 0; g < count && 2 * g <= time; ++g) advance(sweep[g], band);
      if (time >= 2 * (count - 1))
        done[group + 1].store(time - 2 * (count - 1) + 1, std::memory_order_release);
    }
    done[group + 1].store(SIZE_MAX, std::memory_order_release);
  };
  pool.parallel_for(groups, n_ < kSmall ? groups : 1, [&](size_t begin, size_t end, unsigned) {
    for (size_t group = begin; group < end; ++group) run_group(group);
  });
  for (size_t i = 0; i < n_; ++i) {
    diagonal_[i] = band[i * kStride + i];
    if (i + 1 < n_) off_diagonal_[i] = band[(i + 1) * kStride + i];
  }
}

// One reflection from both sides, and the block below it up to the sweep's next reflection.
void Chase::advance(Sweep& sweep, double* band) {
  const size_t s = sweep.column;
  const auto at = [&](size_t r, size_t c) { return band + r * kStride + c; };
  alignas(64) double x[kBand], left[kBand], u[kBand] = {};
  if (sweep.step == 0) {
    sweep.begin = s + 1;
    sweep.length = std::min(kBand, n_ - sweep.begin);
    for (size_t r = 0; r < sweep.length; ++r) x[r] = *at(sweep.begin + r, s);
    sweep.tau = reflection(x, sweep.length, sweep.v, *at(sweep.begin, s));
  }
  if (sweep.length == 0) return;
  std::copy_n(sweep.v, sweep.length, reflections_.row(s) + sweep.begin);
  tau_(s, sweep.step) = sweep.tau;
  kernel_.reflect_both(sweep.length, sweep.tau, sweep.v, at(sweep.begin, sweep.begin), kStride);

  const size_t next = sweep.begin + sweep.length, rows = std::min(kBand, n_ - next);
  double tau = 0;
  if (rows > 0) {
    // The block C below: C ← C H, then its first column is reflected, and H' C follows at once.
    double* block = at(next, sweep.begin);
    kernel_.multiply_band(rows, block, kStride, sweep.v, left);
    for (size_t r = 0; r < rows; ++r) {
      left[r] *= sweep.tau;
      x[r] = block[r * kStride] - left[r];  // v[0] is 1
    }
    double beta;
    tau = reflection(x, rows, u, beta);
    kernel_.reflect_left(rows, block, kStride, left, sweep.v, tau, u, kernel_.dot(rows, u, left));
    block[0] = beta;
    for (size_t r = 1; r < rows; ++r) block[r * kStride] = 0;
  }
  std::copy_n(u, kBand, sweep.v);
  ++sweep.step, sweep.begin = next, sweep.length = rows, sweep.tau = tau;
}

// The last sweep first. Within a group of sweeps a step may come before the later steps of later
// sweeps: they have no row in common. Sweeps go in pairs.
void Chase::transform_back(double* z) const {
  const size_t sweeps = n_ > 2 ? n_ - 2 : 0;
  for (size_t end = sweeps; end > 0;) {
    const size_t begin = end > kGroup ? end - kGroup : 0;
    for (size_t step = 0; begin + 1 + step * kBand < n_; ++step)
      for (size_t s = end; s > begin;) {
        const bool alone = s == begin + 1;
        s -= alone ? 1 : 2;
        const size_t row = s + 1 + step * kBand;
        if (row >= n_) continue;
        const size_t length = std::min(kBand, n_ - row);
        const double *u = reflections_.row(s) + row, *v = reflections_.row(s + 1) + row + 1;
        for (size_t i = kBand; i < 2 * kBand; i += 8)  // for the next step, from other pages
          __builtin_prefetch(u + i), __builtin_prefetch(v + i);
        if (alone)
          kernel_.reflect_columns(length - 1, 0.0, u, length, tau_(s, step), u,
                                  z + row * kernel_.columns);
        else
          kernel_.reflect_columns(std::min(kBand, n_ - row - 1), tau_(s + 1, step), v, length,
                                  tau_(s, step), u, z + row * kernel_.columns);
      }
    end = begin;
  }
}

}  // namespace fungi
