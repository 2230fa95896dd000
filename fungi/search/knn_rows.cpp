// SPDX-License-Identifier: Apache-2.0
#include "fungi/search/knn_rows.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <span>

#include "fungi/search/knn_block.h"

namespace fungi {
namespace {

constexpr size_t kBlockRows = 8192;
// Queries whose candidates are kept at once, by every thread.
constexpr size_t kQueries = 1024;

}  // namespace

size_t KnnRows::bytes_of_row(size_t columns) {
  return round_up(columns, search::kCodeMultiple) + 2 * sizeof(double) + 4 * sizeof(float) +
         sizeof(int32_t);
}

KnnRows::KnnRows(View<const float> rows, Metric metric, Pool& pool)
    : rows_(rows), metric_(metric), centre_(search::centre_of(rows, metric)) {
  if (rows.cols > search::kWidestCodes) return;  // sums of so many codes would not fit
  const search::ExactKey exact(metric, rows.cols);
  const auto scan = search::make_byte_scan(exact, centre_);
  for (size_t first = 0; first < rows.rows; first += kBlockRows) {
    scan->load_rows(rows.slice(first, std::min(kBlockRows, rows.rows - first)), first, pool);
    blocks_.push_back(scan->take_rows());
    norms_.insert(norms_.end(), blocks_.back().norms.begin(), blocks_.back().norms.end());
  }
}

Neighbours KnnRows::search(View<const float> queries, size_t k, Pool& pool, KnnWork* work) const {
  const KnnOptions options{.metric = metric_};
  if (blocks_.empty()) return knn(rows_, queries, k, pool, options, work);
  search::check_search(rows_, queries, k, rows_.rows);
  Neighbours out{Matrix<uint32_t>(queries.rows, k), Matrix<double>(queries.rows, k)};
  KnnWork total;
  for (size_t first = 0; first < queries.rows; first += kQueries) {
    const View<const float> some = queries.slice(first, std::min(kQueries, queries.rows - first));
    // A thread takes a range of the rows, and keeps the k best of it.
    const size_t ranges = std::min<size_t>(pool.threads(), blocks_.size());
    std::deque<search::Block> found;
    std::vector<KnnWork> done(ranges);
    for (size_t r = 0; r < ranges; ++r) found.emplace_back(rows_, some, first, k, options);
    std::atomic<bool> narrow = true;
    pool.parallel_for(ranges, 1, [&](size_t r, size_t, unsigned) {
      Pool alone(1);
      const size_t begin = r * blocks_.size() / ranges, end = (r + 1) * blocks_.size() / ranges;
      if (!found[r].run_prepared(centre_, std::span(blocks_).subspan(begin, end - begin),
                                 begin * kBlockRows, norms_.data(), alone, done[r]))
        narrow = false;
    });
    if (!narrow) return knn(rows_, queries, k, pool, options, work);
    for (size_t r = 1; r < ranges; ++r) found[0].join(found[r]);
    found[0].write(out);
    for (const KnnWork& one : done) total.pairs += one.pairs, total.exact += one.exact;
  }
  if (work) *work = total;
  return out;
}

}  // namespace fungi
