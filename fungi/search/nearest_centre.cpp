// SPDX-License-Identifier: Apache-2.0
#include "fungi/search/nearest_centre.h"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace fungi::search {
namespace {

// A scan that leaves more than this share of the pairs open is worse than the f32 one.
constexpr double kWorthwhile = 0.2;
constexpr double kMargin = 1 + 1e-9;  // covers the rounding of distances, their sums and squares

}  // namespace

// What one thread needs, kept from one handful of rows to the next.
struct NearestCentre::Scratch {
  explicit Scratch(const Scan& scan)
      : hits(scan.query_rows() * scan.part_rows()),
        counts(round_up(scan.query_rows(), kQueryGroups)),
        found(scan.query_rows()),
        best(scan.query_rows()) {}
  std::vector<Hit> hits;
  std::vector<uint32_t> counts;
  std::vector<std::vector<Hit>> found;  // numbers of centres
  std::vector<Best> best;
};

NearestCentre::NearestCentre(View<const float> rows, Metric metric, Pool& pool)
    : rows_(rows), exact_(metric, rows.cols), nearest_(rows.rows, 0), bound_(rows.rows, kInfinity) {
  load(resolve(ScanKind::automatic), pool);
}

void NearestCentre::load(ScanKind kind, Pool& pool) {
  kind_ = kind;
  scan_ = Scan::make(kind, exact_, centre_of(rows_, exact_.metric()), pool);
  scan_->load_queries(rows_, 0, pool);
}

const std::vector<uint32_t>& NearestCentre::assign(View<const float> centres, Pool& pool) {
  FUNGI_ASSERT(rows_.cols == centres.cols && centres.rows > 0);
  note_moves(centres);
  scan_->load_rows(centres, 0, pool);
  const size_t step = scan_->query_rows();
  std::vector<Scratch> scratch(pool.threads(), Scratch(*scan_));
  std::atomic<uint64_t> computed{0};
  pool.parallel_for(rows_.rows, step, [&](size_t begin, size_t end, unsigned worker) {
    computed += assign_some(centres, begin, end, worker, scratch[worker]);
  });
  if (kind_ != ScanKind::f32 &&
      double(computed) > double(rows_.rows) * (kWorthwhile * double(centres.rows) + 2))
    load(ScanKind::f32, pool);
  return nearest_;
}

void NearestCentre::note_moves(View<const float> centres) {
  moved_.assign(centres.rows, 0);
  if (centres_.rows() != centres.rows || exact_.metric() == Metric::cosine) {
    std::fill(bound_.begin(), bound_.end(), kInfinity);
    std::fill(nearest_.begin(), nearest_.end(), 0);
  } else {
    const ExactKey square(Metric::euclidean, centres.cols);
    for (size_t j = 0; j < centres.rows; ++j)
      moved_[j] = std::sqrt(square(centres_.row(j), centres.row(j)));
  }
  centres_ = copy_of(centres);
}

// What the key of the row's nearest centre is at most, now that its old one has moved.
double NearestCentre::widen_bound(size_t row) {
  double& bound = bound_[row];
  const uint32_t old = nearest_[row];
  if (exact_.metric() == Metric::euclidean) {
    bound = (bound + moved_[old]) * kMargin;
    return bound * bound * kMargin;
  }
  const double rounding = double(exact_.width() + 8) * 0x1p-51;
  bound += scan_->query_norm(row) *
           (moved_[old] * kMargin + rounding * (scan_->row_norm(old) + moved_[old]));
  return bound;
}

uint64_t NearestCentre::assign_some(View<const float> centres, size_t begin, size_t end,
                                    unsigned worker, Scratch& scratch) {
  const size_t count = end - begin, part_rows = scan_->part_rows();
  uint64_t computed = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t row = begin + i;
    scratch.found[i].clear();
    scratch.best[i] = {kInfinity, uint32_t(centres.rows)};
    scan_->forget_limit(row);
    scan_->set_limit(row, widen_bound(row));
  }
  for (size_t part = 0; part < scan_->parts(); ++part) {
    scan_->scan(begin, count, part, worker, scratch.hits.data(), scratch.counts.data());
    for (size_t i = 0; i < count; ++i) {
      std::vector<Hit>& found = scratch.found[i];
      const Hit* named = scratch.hits.data() + i * part_rows;
      for (uint32_t h = 0; h < scratch.counts[i]; ++h)
        found.push_back({uint32_t(part * part_rows) + named[h].row, named[h].lower});
      if (bound_[begin + i] < kInfinity) continue;
      computed += settle(centres, begin + i, found, scratch.best[i]);
      found.clear();
    }
  }
  for (size_t i = 0; i < count; ++i) {
    if (i + 1 < count && scratch.found[i + 1].size() > 1)
      prefetch(rows_.row(begin + i + 1), rows_.cols);
    if (scratch.found[i].size() == 1) continue;  // its own: nothing else is within the limit
    computed += settle(centres, begin + i, scratch.found[i], scratch.best[i]);
    nearest_[begin + i] = scratch.best[i].row;
    const double key = scratch.best[i].key;
    bound_[begin + i] = exact_.metric() == Metric::euclidean ? std::sqrt(key) : key;
  }
  return computed;
}

// Computes the keys of the hits, the most promising first, as far as they can matter.
uint64_t NearestCentre::settle(View<const float> centres, size_t row, const std::vector<Hit>& hits,
                               Best& best) {
  if (hits.empty()) return 0;
  const float* x = rows_.row(row);
  const double x_norm = scan_->query_norm(row);
  const auto nearer = [](const Hit& a, const Hit& b) { return a.lower < b.lower; };
  const size_t first = size_t(std::min_element(hits.begin(), hits.end(), nearer) - hits.begin());
  uint64_t computed = 0;
  for (size_t h = 0; h <= hits.size(); ++h) {  // the most promising one, then all but it
    if (h == first + 1) continue;
    const Hit& hit = hits[h == 0 ? first : h - 1];
    if (h > 0 && !scan_->may_hold(row, hit)) continue;
    ++computed;
    const float* y = centres.row(hit.row);
    const double y_norm = scan_->row_norm(hit.row);
    if (best.key < kInfinity && exact_.above(best.key, x, y, x_norm, y_norm)) continue;
    best = std::min(best, {exact_(x, y, x_norm, y_norm), hit.row});
    scan_->set_limit(row, best.key);
  }
  return computed;
}

}  // namespace fungi::search
