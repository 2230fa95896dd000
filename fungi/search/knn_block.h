// SPDX-License-Identifier: Apache-2.0
// The exact search of some queries in a database, or in a part of it: the running k best, and what
// waits for its exact key. Internal to this room.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <span>
#include <vector>

#include "fungi/search/knn.h"
#include "fungi/search/scan.h"

namespace fungi::search {

// A scan that leaves more than this share of the pairs open is worse than the f32 one.
inline constexpr double kWorthwhile = 0.04;
inline constexpr size_t kSettleGrain = 16;  // queries
inline constexpr size_t kAhead = 3;         // rows fetched before their turn: memory is far away
// Hits of a query that wait for their exact keys, beside eight times its neighbours.
inline constexpr size_t kMostWaiting = 512;

// The k best of a block of queries, growing while the database goes by.
struct Running {
  Running(size_t queries, size_t k_) : k(k_), heap(queries * k_), size(queries, 0) {}
  Selection of(size_t query) { return {heap.data() + query * k, k, size[query]}; }
  size_t k;
  std::vector<Best> heap;
  std::vector<size_t> size;
};

// Everything that does not change while one block of queries runs.
class Block {
 public:
  Block(View<const float> database, View<const float> queries, size_t first_query, size_t k,
        const KnnOptions& options)
      : exact_(options.metric, database.cols),
        database_(database),
        queries_(queries),
        first_query_(first_query),
        options_(options),
        running_(queries.rows, k),
        waiting_(queries.rows) {}

  void run_scan(Pool& pool, KnnWork& work) {
    ScanKind kind = resolve(options_.scan);
    const std::vector<float> centre = centre_of(database_, options_.metric);
    auto scan = Scan::make(kind, exact_, centre, pool);
    scan->load_queries(queries_, first_query_, pool);
    own_norms_.resize(database_.rows);
    row_norms_ = own_norms_.data();
    for (size_t first = 0; first < database_.rows; first += options_.database_block) {
      const size_t rows = std::min(options_.database_block, database_.rows - first);
      scan->load_rows(database_.slice(first, rows), first, pool);
      for (size_t j = 0; j < rows; ++j) own_norms_[first + j] = scan->row_norm(j);
      const uint64_t open = scan_rows(*scan, first, pool), pairs = uint64_t(rows) * queries_.rows;
      work.pairs += pairs;
      // The first block starts without limits; from the second on the share says how good the
      // bounds are.
      if (first > 0 && options_.scan == ScanKind::automatic && kind != ScanKind::f32 &&
          double(open) > kWorthwhile * double(pairs)) {
        settle_all(*scan, pool);
        kind = ScanKind::f32;
        scan = Scan::make(kind, exact_, centre, pool);
        scan->load_queries(queries_, first_query_, pool);
        for (size_t i = 0; i < queries_.rows; ++i) limit(*scan, i);
      }
    }
    settle_all(*scan, pool);
    work.exact += computed_;
  }

  // The same of rows that have been prepared: so many blocks from one that begins with row `first`,
  // whose norms are [database.rows]. False where bounds are too wide to be of use: nothing is found.
  bool run_prepared(const std::vector<float>& centre, std::span<const ScanRows> blocks, size_t first,
                    const double* norms, Pool& pool, KnnWork& work) {
    const auto scan = make_byte_scan(exact_, centre);
    scan->load_queries(queries_, first_query_, pool);
    row_norms_ = norms;
    for (size_t b = 0; b < blocks.size(); first += blocks[b++].count) {
      scan->use_rows(blocks[b]);
      const uint64_t open = scan_rows(*scan, first, pool),
                     pairs = uint64_t(blocks[b].count) * queries_.rows;
      work.pairs += pairs;
      if (b > 0 && double(open) > kWorthwhile * double(pairs)) return false;
    }
    settle_all(*scan, pool);
    work.exact += computed_;
    return true;
  }

  // The best of both.
  void join(Block& other) {
    for (size_t i = 0; i < queries_.rows; ++i) {
      for (size_t b = 0; b < other.running_.size[i]; ++b)
        running_.of(i).offer(other.running_.heap[i * other.running_.k + b]);
    }
  }

  // Every key exactly; parts of the database are independent and their k best are merged.
  void run_direct(Pool& pool, KnnWork& work) {
    const size_t part = 4096, parts = (database_.rows + part - 1) / part;
    std::vector<double> norms(queries_.rows);
    for (size_t i = 0; i < queries_.rows; ++i) {
      norms[i] = exact_.norm(queries_.row(i));
      if (!std::isfinite(norms[i])) fail_not_finite("queries", first_query_ + i);
    }
    std::vector<Running> found;  // a part has no more than its rows: k may be all of the database
    for (size_t p = 0; p < parts; ++p)
      found.emplace_back(queries_.rows, std::min({running_.k, part, database_.rows - p * part}));
    pool.parallel_for(parts, 1, [&](size_t p, size_t, unsigned) {
      const size_t end = std::min((p + 1) * part, database_.rows);
      for (size_t j = p * part; j < end; ++j) {
        const double known = options_.norms.rows ? options_.norms(j, 0) : 0;
        const double norm = known > 0 ? known : exact_.norm(database_.row(j));
        if (!std::isfinite(norm)) fail_not_finite("database", j);
        for (size_t i = 0; i < queries_.rows; ++i) {
          if (!wanted(i, j)) continue;
          const double key = exact_(queries_.row(i), database_.row(j), norms[i], norm);
          if (!std::isfinite(key)) fail_not_finite("database", j);
          found[p].of(i).offer({key, uint32_t(j)});
        }
      }
    });
    for (Running& r : found)
      for (size_t i = 0; i < queries_.rows; ++i)
        for (size_t b = 0; b < r.size[i]; ++b) running_.of(i).offer(r.heap[i * r.k + b]);
    work.pairs += uint64_t(database_.rows) * queries_.rows;
    work.exact += uint64_t(database_.rows) * queries_.rows;
  }

  void write(Neighbours& out) {
    for (size_t i = 0; i < queries_.rows; ++i) {
      running_.of(i).sort();
      for (size_t b = 0; b < running_.k; ++b) {
        const Best& best = running_.heap[i * running_.k + b];
        out.index(first_query_ + i, b) = best.row;
        out.value(first_query_ + i, b) = exact_.value(best.key);
      }
    }
  }

 private:
  bool wanted(size_t query, size_t row) const {
    return !options_.skip_same_row || row != first_query_ + query;
  }

  // Rows come to L2 while those before them are decided.
  void prefetch(const float* row) const {
    const char* at = reinterpret_cast<const char*>(row);
    for (size_t b = 0; b < std::min<size_t>(database_.cols * sizeof(float), 4096); b += 64)
      __builtin_prefetch(at + b, 0, 2);
  }

  void limit(Scan& scan, size_t query) {
    const Selection selection = running_.of(query);
    if (selection.full()) scan.set_limit(query, selection.worst().key);
  }

  // A hit anywhere in the database, with both ends of its bound.
  struct Candidate {
    uint32_t row;
    float lower, upper;
  };

  // Hits of one query, waiting for their exact keys while their bounds narrow the search.
  struct Waiting {
    std::vector<Candidate> hits;
    size_t patience = 0;  // how many may wait before they are looked through
  };

  // Returns how many pairs the scan left open.
  uint64_t scan_rows(Scan& scan, size_t first, Pool& pool) {
    const size_t step = scan.query_rows();
    std::vector<std::vector<Hit>> hits(pool.threads());
    for (auto& h : hits) h.resize(step * scan.part_rows());
    std::atomic<uint64_t> open{0};
    pool.parallel_for(queries_.rows, step, [&](size_t begin, size_t end, unsigned worker) {
      std::vector<uint32_t> counts(round_up(end - begin, kQueryGroups));
      uint64_t named = 0;
      for (size_t part = 0; part < scan.parts(); ++part) {
        scan.scan(begin, end - begin, part, worker, hits[worker].data(), counts.data());
        for (size_t i = begin; i < end; ++i) {
          named += counts[i - begin];
          take(scan, i, first, part * scan.part_rows(),
               hits[worker].data() + (i - begin) * scan.part_rows(), counts[i - begin]);
        }
      }
      open += named;
    });
    return open;
  }

  void take(Scan& scan, size_t query, size_t first, size_t part_row, const Hit* hits,
            size_t count) {
    if (count == 0) return;
    Waiting& waiting = waiting_[query];
    std::vector<Candidate>& all = waiting.hits;
    all.resize(all.size() + count);
    Candidate* next = all.data() + all.size() - count;
    for (size_t h = 0; h < count; ++h) {
      const size_t in_block = part_row + hits[h].row;
      *next = {uint32_t(first + in_block), hits[h].lower,
               scan.upper(query, in_block, hits[h].lower)};
      next += wanted(query, first + in_block);
    }
    all.resize(size_t(next - all.data()));
    if (waiting.hits.size() > waiting.patience) look_through(scan, query, waiting);
  }

  // k rows are certainly no further than the k-th smallest upper bound: what lies behind it need
  // not wait. Bounds too wide for that leave the decision to the exact keys.
  void look_through(Scan& scan, size_t query, Waiting& waiting) {
    std::vector<Candidate>& hits = waiting.hits;
    const size_t k = running_.k;
    if (hits.size() >= k) {
      const auto surer = [](const Candidate& a, const Candidate& b) { return a.upper < b.upper; };
      std::nth_element(hits.begin(), hits.begin() + ptrdiff_t(k - 1), hits.end(), surer);
      scan.set_limit_above(query, hits[k - 1].upper);
      std::erase_if(hits, [&](const Candidate& c) { return !may_hold(scan, query, c); });
    }
    waiting.patience = std::max(2 * k, 2 * hits.size());
    if (hits.size() > kMostWaiting + 8 * k) settle(scan, query);
  }

  static bool may_hold(const Scan& scan, size_t query, const Candidate& c) {
    return scan.may_hold(query, {c.row, c.lower});
  }

  void settle_all(Scan& scan, Pool& pool) {
    pool.parallel_for(queries_.rows, kSettleGrain, [&](size_t begin, size_t end, unsigned) {
      for (size_t i = begin; i < end; ++i) settle(scan, i);
    });
  }

  // Computes the exact keys of what waits, most promising first, skipping what the limit has
  // overtaken.
  void settle(Scan& scan, size_t query) {
    std::vector<Candidate>& hits = waiting_[query].hits;
    Selection selection = running_.of(query);
    const auto nearer = [](const Candidate& a, const Candidate& b) { return a.lower < b.lower; };
    const size_t count = hits.size(), sorted = std::min(count, running_.k);
    if (count > sorted)
      std::nth_element(hits.begin(), hits.begin() + ptrdiff_t(sorted), hits.end(), nearer);
    const float* x = queries_.row(query);
    const double x_norm = scan.query_norm(query);
    uint64_t computed = 0;
    for (size_t h = 0; h < count; ++h) {
      if (h + kAhead < count && may_hold(scan, query, hits[h + kAhead]))
        prefetch(database_.row(hits[h + kAhead].row));
      if (!may_hold(scan, query, hits[h])) continue;
      const float* y = database_.row(hits[h].row);
      const double y_norm = row_norms_[hits[h].row];
      ++computed;
      if (selection.full() && exact_.above(selection.worst().key, x, y, x_norm, y_norm)) continue;
      selection.offer({exact_(x, y, x_norm, y_norm), hits[h].row});
      limit(scan, query);
    }
    hits.clear();
    computed_ += computed;
  }

  const ExactKey exact_;
  const View<const float> database_, queries_;
  const size_t first_query_;
  const KnnOptions& options_;
  Running running_;
  std::vector<Waiting> waiting_;       // of every query
  std::vector<double> own_norms_;
  const double* row_norms_ = nullptr;  // of every row scanned so far
  std::atomic<uint64_t> computed_{0};  // exact keys
};

}  // namespace fungi::search
