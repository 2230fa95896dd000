// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/positive_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "fungi/base/error.h"
#include "fungi/search/scan.h"

namespace fungi {
namespace {

using search::Best;
using search::Scan;

constexpr size_t kBlockBytes = size_t{64} << 20;  // of positives whose ranks are counted at once
constexpr size_t kBlockQueries = 4096, kBlockRows = 8192;

std::vector<uint32_t> ascending(std::vector<uint32_t> rows, size_t limit, size_t query) {
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  if (!rows.empty() && rows.back() >= limit)
    fail(fmt::format("expected rows below {}, query {} names row {}", limit, query, rows.back()),
         "ground truth", "use the ground truth of this database");
  return rows;
}

// The positives of one query, on the scale of the scan's bounds.
class Counter {
 public:
  Counter(PositiveRanks ranks, size_t query, const Scan& scan) : ranks_(std::move(ranks)) {
    for (const Best& positive : ranks_.positives()) {
      const Scan::KeyRange range = scan.range(query, positive.key);
      low_.push_back(range.low);
      high_.push_back(range.high);
    }
  }

  // The place of a row of these bounds among the positives; nothing where they leave it open.
  std::optional<size_t> place(float lower, float upper) const {
    size_t first = 0, left = high_.size();  // the first whose high end is not below `lower`
    while (left > 0) {
      const size_t half = left / 2;
      const bool before = high_[first + half] < lower;
      first += before ? left - half : 0;
      left = half;
    }
    if (first < low_.size() && !(low_[first] > upper)) return std::nullopt;
    return first;
  }

  PositiveRanks& ranks() { return ranks_; }
  const PositiveRanks& ranks() const { return ranks_; }

 private:
  PositiveRanks ranks_;
  std::vector<float> low_, high_;
};

// The ranks of some queries, while the database goes by.
class Block {
 public:
  Block(View<const float> database, View<const float> queries, size_t first_query, Metric metric,
        Pool& pool)
      : exact_(metric, database.cols),
        database_(database),
        queries_(queries),
        first_query_(first_query),
        pool_(pool) {
    // The f32 scan: positives may be many and anywhere, so that coarser bounds would leave too
    // much open.
    scan_ = Scan::make(ScanKind::f32, exact_, search::centre_of(database, metric), pool);
    scan_->load_queries(queries, first_query, pool);
  }

  void run(const std::vector<Relevance>& relevance, const std::vector<double>& norms,
           const TakeRanks& take) {
    set_positives(relevance, norms);
    for (size_t first = 0; first < database_.rows; first += kBlockRows) {
      scan_->load_rows(database_.slice(first, std::min(kBlockRows, database_.rows - first)), first,
                       pool_);
      count_rows(first);
    }
    pool_.parallel_for(queries_.rows, 1, [&](size_t i, size_t, unsigned) {
      take(first_query_ + i, counters_[i].ranks().ranks());
    });
  }

 private:
  void set_positives(const std::vector<Relevance>& relevance, const std::vector<double>& norms) {
    std::vector<std::optional<Counter>> made(queries_.rows);
    pool_.parallel_for(queries_.rows, 1, [&](size_t i, size_t, unsigned) {
      const auto key = [&](uint32_t row) {
        return exact_(queries_.row(i), database_.row(row), scan_->query_norm(i), norms[row]);
      };
      const Relevance rows = checked(relevance[i], database_.rows, first_query_ + i);
      made[i].emplace(PositiveRanks(rows, key), i, *scan_);
      const std::vector<Best>& positives = made[i]->ranks().positives();
      if (!positives.empty()) scan_->set_limit(i, positives.back().key);
    });
    for (auto& counter : made) counters_.push_back(std::move(*counter));
  }

  void count_rows(size_t first_row) {
    const size_t share = (queries_.rows + pool_.threads() - 1) / pool_.threads();
    const size_t step = std::clamp<size_t>(share, 1, scan_->query_rows());
    std::vector<std::vector<search::Hit>> hits(pool_.threads());
    for (auto& h : hits) h.resize(step * scan_->part_rows());
    pool_.parallel_for(queries_.rows, step, [&](size_t begin, size_t end, unsigned worker) {
      std::vector<uint32_t> counts(round_up(end - begin, search::kQueryGroups));
      for (size_t part = 0; part < scan_->parts(); ++part) {
        scan_->scan(begin, end - begin, part, worker, hits[worker].data(), counts.data());
        for (size_t i = begin; i < end; ++i) {
          const search::Hit* hit = hits[worker].data() + (i - begin) * scan_->part_rows();
          for (size_t h = 0; h < counts[i - begin]; ++h)
            count(i, first_row, part * scan_->part_rows() + hit[h].row, hit[h].lower);
        }
      }
    });
  }

  void count(size_t query, size_t first_row, size_t in_block, float lower) {
    Counter& counter = counters_[query];
    if (counter.ranks().positives().empty()) return;
    if (const auto place = counter.place(lower, scan_->upper(query, in_block, lower)))
      return counter.ranks().count(*place);
    const size_t row = first_row + in_block;
    const double key = exact_(queries_.row(query), database_.row(row), scan_->query_norm(query),
                              scan_->row_norm(in_block));
    counter.ranks().count(counter.ranks().place({key, uint32_t(row)}));
  }

  const search::ExactKey exact_;
  const View<const float> database_, queries_;
  const size_t first_query_;
  Pool& pool_;
  std::unique_ptr<Scan> scan_;
  std::vector<Counter> counters_;
};

}  // namespace

Relevance checked(const Relevance& relevance, size_t rows, size_t query) {
  Relevance out{ascending(relevance.positive, rows, query), ascending(relevance.junk, rows, query)};
  for (uint32_t row : out.junk)
    if (std::binary_search(out.positive.begin(), out.positive.end(), row))
      fail(fmt::format("expected a row to be positive or junk, row {} of query {} is both", row,
                       query),
           "ground truth", "");
  return out;
}

PositiveRanks::PositiveRanks(const Relevance& checked, const KeyOf& key) {
  for (uint32_t row : checked.positive) positives_.push_back({key(row), row});
  std::sort(positives_.begin(), positives_.end());
  before_.assign(positives_.size() + 1, -1);  // each positive is counted in its own place
  if (positives_.empty()) return;
  for (uint32_t row : checked.junk) --before_[place({key(row), row})];
}

size_t PositiveRanks::place(Best row) const {
  return size_t(std::lower_bound(positives_.begin(), positives_.end(), row) - positives_.begin());
}

std::vector<size_t> PositiveRanks::ranks() const {
  std::vector<size_t> ranks(positives_.size());
  int64_t ahead = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    ahead += before_[i];
    ranks[i] = size_t(ahead) + i;
  }
  return ranks;
}

void positive_ranks(View<const float> database, View<const float> queries,
                    const RelevanceOf& relevance, Metric metric, Pool& pool,
                    const TakeRanks& take) {
  if (!relevance || !take)
    fail("expected functions that tell the relevance and take the ranks, found none", "relevance");
  search::check_search(database, queries, 1, database.rows);
  const search::ExactKey exact(metric, database.cols);
  std::vector<double> norms(database.rows);
  pool.parallel_for(database.rows, 256, [&](size_t begin, size_t end, unsigned) {
    for (size_t j = begin; j < end; ++j) {
      norms[j] = exact.norm(database.row(j));
      if (!std::isfinite(norms[j])) fail_not_finite("database", j);
    }
  });
  constexpr size_t kMost = kBlockBytes / (sizeof(Best) + sizeof(int64_t) + 2 * sizeof(float));
  for (size_t first = 0, end = 0; first < queries.rows; first = end) {
    std::vector<Relevance> rows;
    for (size_t positives = 0; end < queries.rows && rows.size() < kBlockQueries; ++end) {
      Relevance next = relevance(end);
      positives += next.positive.size();
      if (positives > kMost && !rows.empty()) break;
      rows.push_back(std::move(next));
    }
    Block block(database, queries.slice(first, end - first), first, metric, pool);
    block.run(rows, norms, take);
  }
}

}  // namespace fungi
