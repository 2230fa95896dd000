// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/retrieval.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fungi/base/error.h"
#include "fungi/comm/bytes.h"
#include "fungi/comm/comm.h"
#include "fungi/evaluate/positive_ranks.h"

namespace fungi {
namespace {

constexpr size_t kKeyBytes = size_t{64} << 20;  // of keys in memory at a time

void check_cuts(const std::vector<size_t>& precision_at) {
  for (size_t cut : precision_at)
    if (cut == 0)
      fail("expected precision at 1 or deeper, found 0", "precision_at", "use 1 or more");
}

// The scores of queries as they come, each kept in its own place, and their mean: that adds them up
// in the order of the queries, whatever the order in which they came.
class Scores {
 public:
  Scores(size_t database_rows, size_t queries, const RetrievalOptions& options)
      : cuts_(options.precision_at) {
    if (database_rows == 0)
      fail("expected rows to search in, found none", "database", "extract some images first");
    check_cuts(cuts_);
    score_.by_query.resize(queries);
  }

  void add(size_t query, const std::vector<size_t>& ranks) {
    if (!ranks.empty()) score_.by_query[query].emplace(score_ranks(ranks, cuts_));
  }

  // Every rank has scored some queries: all get all.
  void put_together(Comm& ranks) {
    ByteWriter own;
    for (size_t q = 0; q < score_.by_query.size(); ++q)
      if (const auto& one = score_.by_query[q])
        own.number(q), own.number(one->average_precision), own.numbers(one->precision);
    const std::vector<std::string> all = ranks.all_gather(own.take());
    for (const std::string& bytes : all)
      for (ByteReader in(bytes); !in.done();) {
        const size_t query = in.number<size_t>();
        const double average = in.number<double>();
        score_.by_query[query].emplace(QueryScore{average, in.numbers<double>()});
      }
  }

  RetrievalScore mean() && {
    score_.precision.assign(cuts_.size(), 0.0);
    for (const std::optional<QueryScore>& one : score_.by_query) {
      if (!one) continue;
      ++score_.queries;
      score_.map += one->average_precision;
      for (size_t c = 0; c < cuts_.size(); ++c) score_.precision[c] += one->precision[c];
    }
    if (score_.queries == 0)
      fail("expected at least one query with positives, found none", "ground truth", "");
    score_.left_out = score_.by_query.size() - score_.queries;
    score_.map /= double(score_.queries);
    for (double& p : score_.precision) p /= double(score_.queries);
    return std::move(score_);
  }

 private:
  const std::vector<size_t> cuts_;
  RetrievalScore score_;
};

RelevanceOf in_lists(const std::vector<Relevance>& relevance, size_t queries) {
  if (relevance.size() != queries)
    fail(fmt::format("expected ground truth for each of {} queries, found {}", queries,
                     relevance.size()),
         "ground truth", "");
  return [&relevance](size_t query) { return relevance[query]; };
}

}  // namespace

QueryScore score_ranks(const std::vector<size_t>& ranks, const std::vector<size_t>& precision_at) {
  if (ranks.empty()) fail("expected ranks of positives, found none", "ranks");
  QueryScore score;
  for (size_t j = 0; j < ranks.size(); ++j) {
    const double rank = double(ranks[j]);
    const double before = ranks[j] == 0 ? 1.0 : double(j) / rank;
    score.average_precision += (before + double(j + 1) / (rank + 1)) / (2.0 * double(ranks.size()));
  }
  check_cuts(precision_at);
  for (size_t cut : precision_at) {
    const size_t depth = std::min(ranks.back() + 1, cut);
    const auto within = std::upper_bound(ranks.begin(), ranks.end(), depth - 1) - ranks.begin();
    score.precision.push_back(double(within) / double(depth));
  }
  return score;
}

RetrievalScore evaluate_retrieval(View<const float> database, View<const float> queries,
                                  const RelevanceOf& relevance, const RetrievalOptions& options,
                                  Pool& pool) {
  Scores scores(database.rows, queries.rows, options);
  positive_ranks(database, queries, relevance, options.metric, pool,
                 [&](size_t query, const std::vector<size_t>& ranks) { scores.add(query, ranks); });
  return std::move(scores).mean();
}

RetrievalScore evaluate_retrieval(const DatabaseShare& database, const QueryRows& queries,
                                  const RelevanceOf& relevance, const RetrievalOptions& options,
                                  Pool& pool) {
  Scores scores(database.bounds.back(), queries.count, options);
  positive_ranks(database, queries, relevance, options.metric, pool,
                 [&](size_t query, const std::vector<size_t>& ranks) { scores.add(query, ranks); });
  scores.put_together(*database.ranks);
  return std::move(scores).mean();
}

RetrievalScore evaluate_retrieval(View<const float> database, View<const float> queries,
                                  const std::vector<Relevance>& relevance,
                                  const RetrievalOptions& options, Pool& pool) {
  return evaluate_retrieval(database, queries, in_lists(relevance, queries.rows), options, pool);
}

RetrievalScore evaluate_retrieval(size_t database_rows, size_t queries, const FillKeys& fill,
                                  const RelevanceOf& relevance, const RetrievalOptions& options,
                                  Pool& pool) {
  if (!fill || !relevance)
    fail("expected functions that fill the keys and tell the relevance, found none", "relevance");
  Scores scores(database_rows, queries, options);
  const size_t step = std::clamp<size_t>(kKeyBytes / (sizeof(double) * database_rows), 1, 512);
  for (size_t first = 0; first < queries; first += step) {
    Matrix<double> keys(std::min(step, queries - first), database_rows);
    fill(first, keys);
    pool.parallel_for(keys.rows(), 1, [&](size_t i, size_t, unsigned) {
      for (size_t j = 0; j < database_rows; ++j)
        if (!std::isfinite(keys(i, j))) fail_not_finite("queries", first + i);
      PositiveRanks counted(checked(relevance(first + i), database_rows, first + i),
                            [&](uint32_t row) { return keys(i, row); });
      for (size_t j = 0; j < database_rows; ++j)
        counted.count(counted.place({keys(i, j), uint32_t(j)}));
      scores.add(first + i, counted.ranks());
    });
  }
  return std::move(scores).mean();
}

RetrievalScore evaluate_retrieval(size_t database_rows, size_t queries, const FillKeys& fill,
                                  const std::vector<Relevance>& relevance,
                                  const RetrievalOptions& options, Pool& pool) {
  return evaluate_retrieval(database_rows, queries, fill, in_lists(relevance, queries), options,
                            pool);
}

}  // namespace fungi
