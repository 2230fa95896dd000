// SPDX-License-Identifier: Apache-2.0
// Where the relevant rows of a query stand in the exact order (search::Best), without ordering the
// rest: every row is counted between two of them, and what may not count is taken away.
// Internal to this room.
#pragma once

#include <functional>
#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"
#include "fungi/evaluate/retrieval.h"
#include "fungi/search/metric.h"

namespace fungi {

class Comm;

// Rows of a query in ascending order, each once. Errors: a row not below `rows`, a row that is both
// positive and junk; `query` is its number there.
Relevance checked(const Relevance& relevance, size_t rows, size_t query);

// Counts the rows before each positive of one query.
class PositiveRanks {
 public:
  using KeyOf = std::function<double(uint32_t row)>;
  PositiveRanks(const Relevance& checked, const KeyOf& key);

  // The positives, nearest first.
  const std::vector<search::Best>& positives() const { return positives_; }
  // How many positives come before a row; a positive does not come before itself.
  size_t place(search::Best row) const;
  // For every row of the database once, in any order: its place. Those behind all may be left out.
  void count(size_t place) { ++before_[place]; }
  // Of what several counted, each its own rows, one begins as constructed and the others at zero.
  void begin_at_zero() { before_.assign(before_.size(), 0); }
  const std::vector<int64_t>& counts() const { return before_; }
  void add(const std::vector<int64_t>& others);
  // After that: zero-based, junk taken out, ascending.
  std::vector<size_t> ranks() const;

 private:
  std::vector<search::Best> positives_;
  std::vector<int64_t> before_;  // rows between positive i − 1 and positive i
};

// Gets the ranks of each query once; from any thread, but never two threads for one query.
using TakeRanks = std::function<void(size_t query, std::vector<size_t> ranks)>;

// The ranks of all queries (none for those without positives), through a scan that bounds every key
// and computes the few in f64 that its bounds leave open. A block of queries is given away before
// the next one's relevance is asked for, so that memory does not grow with the queries. Errors:
// those of checked(), NaN or infinity (naming the row).
void positive_ranks(View<const float> database, View<const float> queries,
                    const RelevanceOf& relevance, Metric metric, Pool& pool, const TakeRanks& take);

// A database of which this process holds a run of rows.
struct DatabaseShare {
  View<const float> rows;
  std::vector<size_t> bounds;  // first row of each rank's run, and one past the last
  Comm* ranks = nullptr;       // null: all rows are here
  size_t first() const;        // of `rows`
};
// Queries that come some at a time: rows first .. first + count, good until the next call.
struct QueryRows {
  size_t count = 0;
  std::function<View<const float>(size_t first, size_t count)> load;
};

// The same, collective: every rank asks for all queries and counts its own rows, and each query's
// ranks are taken by one of them. Ranks are those of one process.
void positive_ranks(const DatabaseShare& database, const QueryRows& queries,
                    const RelevanceOf& relevance, Metric metric, Pool& pool, const TakeRanks& take);

// evaluate_retrieval() of that, at every rank.
RetrievalScore evaluate_retrieval(const DatabaseShare& database, const QueryRows& queries,
                                  const RelevanceOf& relevance, const RetrievalOptions& options,
                                  Pool& pool);

}  // namespace fungi
