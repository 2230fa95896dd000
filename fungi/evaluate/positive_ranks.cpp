// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/positive_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "fungi/base/error.h"
#include "fungi/comm/bytes.h"
#include "fungi/comm/comm.h"
#include "fungi/search/scan.h"

namespace fungi {
namespace {

using search::Best;
using search::Scan;

constexpr size_t kBlockBytes = size_t{64} << 20;  // of positives whose ranks are counted at once
constexpr size_t kBlockQueries = 4096, kBlockRows = 8192;
constexpr Comm::Tag kCounts = 6;

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
  Block(const DatabaseShare& database, View<const float> queries, size_t first_query, Metric metric,
        Pool& pool)
      : exact_(metric, queries.cols),
        share_(database),
        database_(database.rows),
        queries_(queries),
        first_query_(first_query),
        pool_(pool) {
    // The f32 scan: positives may be many and anywhere, so that coarser bounds would leave too
    // much open.
    std::vector<float> centre;
    if (database_.rows > 0) centre = search::centre_of(database_, metric);
    scan_ = Scan::make(ScanKind::f32, exact_, std::move(centre), pool);
    scan_->load_queries(queries, first_query, pool);
  }

  void run(std::vector<Relevance> relevance, const std::vector<double>& norms,
           const TakeRanks& take) {
    set_positives(std::move(relevance), norms);
    for (size_t first = 0; first < database_.rows; first += kBlockRows) {
      scan_->load_rows(database_.slice(first, std::min(kBlockRows, database_.rows - first)), first,
                       pool_);
      count_rows(first);
    }
    const auto [begin, end] = add_counts();
    pool_.parallel_for(end - begin, 1, [&](size_t i, size_t, unsigned) {
      take(first_query_ + begin + i, counters_[begin + i].ranks().ranks());
    });
  }

 private:
  void set_positives(std::vector<Relevance> relevance, const std::vector<double>& norms) {
    const size_t first = share_.first(), last = first + database_.rows;
    std::vector<std::vector<double>> own(queries_.rows);  // keys of relevant rows that are here
    pool_.parallel_for(queries_.rows, 1, [&](size_t i, size_t, unsigned) {
      relevance[i] = checked(relevance[i], share_.bounds.back(), first_query_ + i);
      for (const std::vector<uint32_t>* rows : {&relevance[i].positive, &relevance[i].junk})
        for (const uint32_t row : between(*rows, first, last))
          own[i].push_back(exact_(queries_.row(i), database_.row(row - first),
                                  scan_->query_norm(i), norms[row - first]));
    });
    if (share_.ranks) own = keys_of_all(relevance, own);
    std::vector<std::optional<Counter>> made(queries_.rows);
    pool_.parallel_for(queries_.rows, 1, [&](size_t i, size_t, unsigned) {
      // As they were asked for: positives, then junk, each in the order of the rows.
      size_t next = 0;
      made[i].emplace(PositiveRanks(relevance[i], [&](uint32_t) { return own[i][next++]; }), i,
                      *scan_);
      if (share_.ranks && !share_.ranks->first()) made[i]->ranks().begin_at_zero();
      const std::vector<Best>& positives = made[i]->ranks().positives();
      if (!positives.empty()) scan_->set_limit(i, positives.back().key);
    });
    for (auto& counter : made) counters_.push_back(std::move(*counter));
  }

  static std::span<const uint32_t> between(const std::vector<uint32_t>& rows, size_t first,
                                           size_t last) {
    const auto from = std::lower_bound(rows.begin(), rows.end(), first);
    return {from, std::lower_bound(from, rows.end(), last)};
  }

  // Of every rank's rows; all ranks get all.
  std::vector<std::vector<double>> keys_of_all(const std::vector<Relevance>& relevance,
                                               const std::vector<std::vector<double>>& own) const {
    std::vector<double> mine;
    for (const std::vector<double>& keys : own) mine.insert(mine.end(), keys.begin(), keys.end());
    ByteWriter out;
    out.numbers(mine);
    std::vector<std::vector<double>> theirs;
    for (const std::string& bytes : share_.ranks->all_gather(out.take()))
      theirs.push_back(ByteReader(bytes).numbers<double>());
    std::vector<size_t> taken(theirs.size());
    std::vector<std::vector<double>> all(own.size());
    for (size_t i = 0; i < all.size(); ++i) {
      const Relevance& rows = relevance[i];
      all[i].resize(rows.positive.size() + rows.junk.size());
      size_t positive = 0, junk = rows.positive.size();
      for (size_t r = 0; r < theirs.size(); ++r) {
        const auto copy = [&](const std::vector<uint32_t>& of, size_t& to) {
          const size_t count = between(of, share_.bounds[r], share_.bounds[r + 1]).size();
          std::copy_n(theirs[r].begin() + ptrdiff_t(taken[r]), count, all[i].begin() + ptrdiff_t(to));
          taken[r] += count, to += count;
        };
        copy(rows.positive, positive);
        copy(rows.junk, junk);
      }
    }
    return all;
  }

  // The queries whose counts are whole here: a share of them, with what other ranks counted.
  std::pair<size_t, size_t> add_counts() {
    if (!share_.ranks) return {0, queries_.rows};
    Comm& comm = *share_.ranks;
    const auto bound = [&](size_t rank) { return queries_.rows * rank / comm.size(); };
    for (size_t r = 0; r < comm.size(); ++r) {
      ByteWriter out;
      for (size_t i = bound(r); i < bound(r + 1); ++i) out.numbers(counters_[i].ranks().counts());
      if (r != comm.rank()) comm.send(r, kCounts, out.take());
    }
    const size_t begin = bound(comm.rank()), end = bound(comm.rank() + 1);
    for (size_t r = 0; r < comm.size(); ++r) {
      if (r == comm.rank()) continue;
      const std::string bytes = comm.receive(r, kCounts);
      ByteReader in(bytes);
      for (size_t i = begin; i < end; ++i) counters_[i].ranks().add(in.numbers<int64_t>());
    }
    return {begin, end};
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
    counter.ranks().count(counter.ranks().place({key, uint32_t(share_.first() + row)}));
  }

  const search::ExactKey exact_;
  const DatabaseShare& share_;
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

void PositiveRanks::add(const std::vector<int64_t>& others) {
  FUNGI_ASSERT(others.size() == before_.size());
  for (size_t i = 0; i < others.size(); ++i) before_[i] += others[i];
}

size_t DatabaseShare::first() const { return bounds[ranks ? ranks->rank() : 0]; }

void positive_ranks(View<const float> database, View<const float> queries,
                    const RelevanceOf& relevance, Metric metric, Pool& pool,
                    const TakeRanks& take) {
  search::check_search(database, queries, 1, database.rows);
  const auto rows = [&](size_t first, size_t count) { return queries.slice(first, count); };
  positive_ranks({database, {0, database.rows}}, {queries.rows, rows}, relevance, metric, pool,
                 take);
}

void positive_ranks(const DatabaseShare& database, const QueryRows& queries,
                    const RelevanceOf& relevance, Metric metric, Pool& pool,
                    const TakeRanks& take) {
  if (!relevance || !take)
    fail("expected functions that tell the relevance and take the ranks, found none", "relevance");
  const search::ExactKey exact(metric, database.rows.cols);
  std::vector<double> norms(database.rows.rows);
  pool.parallel_for(norms.size(), 256, [&](size_t begin, size_t end, unsigned) {
    for (size_t j = begin; j < end; ++j) {
      norms[j] = exact.norm(database.rows.row(j));
      if (!std::isfinite(norms[j])) fail_not_finite("database", database.first() + j);
    }
  });
  constexpr size_t kMost = kBlockBytes / (sizeof(Best) + sizeof(int64_t) + 2 * sizeof(float));
  for (size_t first = 0, end = 0; first < queries.count; first = end) {
    std::vector<Relevance> rows;
    for (size_t positives = 0; end < queries.count && rows.size() < kBlockQueries; ++end) {
      Relevance next = relevance(end);
      positives += next.positive.size();
      if (positives > kMost && !rows.empty()) break;
      rows.push_back(std::move(next));
    }
    Block block(database, queries.load(first, end - first), first, metric, pool);
    block.run(std::move(rows), norms, take);
  }
}

}  // namespace fungi
