// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/retrieval.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fungi/base/error.h"
#include "fungi/evaluate/positive_ranks.h"

namespace fungi {
namespace {

constexpr size_t kKeyBytes = size_t{64} << 20;  // of keys in memory at a time

void check_cuts(const std::vector<size_t>& precision_at) {
  for (size_t cut : precision_at)
    if (cut == 0)
      fail("expected precision at 1 or deeper, found 0", "precision_at", "use 1 or more");
}

// What both ways of ranking refuse at once.
void check(size_t database_rows, size_t queries, const std::vector<Relevance>& relevance,
           const RetrievalOptions& options) {
  if (relevance.size() != queries)
    fail(fmt::format("expected ground truth for each of {} queries, found {}", queries,
                     relevance.size()),
         "ground truth", "");
  if (database_rows == 0)
    fail("expected rows to search in, found none", "database", "extract some images first");
  check_cuts(options.precision_at);
  const auto none = [](const Relevance& r) { return r.positive.empty(); };
  if (std::all_of(relevance.begin(), relevance.end(), none))
    fail("expected at least one query with positives, found none", "ground truth", "");
}

RetrievalScore score_all(const std::vector<std::vector<size_t>>& ranks,
                         const RetrievalOptions& options) {
  RetrievalScore out;
  out.by_query.resize(ranks.size());
  out.precision.assign(options.precision_at.size(), 0.0);
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].empty()) continue;
    const QueryScore& score = out.by_query[i].emplace(score_ranks(ranks[i], options.precision_at));
    ++out.queries;
    out.map += score.average_precision;
    for (size_t c = 0; c < out.precision.size(); ++c) out.precision[c] += score.precision[c];
  }
  out.map /= double(out.queries);
  for (double& p : out.precision) p /= double(out.queries);
  return out;
}

}  // namespace

QueryScore score_ranks(const std::vector<size_t>& ranks, const std::vector<size_t>& precision_at) {
  FUNGI_ASSERT(!ranks.empty());
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
                                  const std::vector<Relevance>& relevance,
                                  const RetrievalOptions& options, Pool& pool) {
  check(database.rows, queries.rows, relevance, options);
  return score_all(positive_ranks(database, queries, relevance, options.metric, pool), options);
}

RetrievalScore evaluate_retrieval(size_t database_rows, size_t queries, const FillKeys& fill,
                                  const std::vector<Relevance>& relevance,
                                  const RetrievalOptions& options, Pool& pool) {
  check(database_rows, queries, relevance, options);
  std::vector<std::vector<size_t>> ranks(queries);
  const size_t step = std::clamp<size_t>(kKeyBytes / (sizeof(double) * database_rows), 1, 512);
  for (size_t first = 0; first < queries; first += step) {
    Matrix<double> keys(std::min(step, queries - first), database_rows);
    fill(first, keys);
    pool.parallel_for(keys.rows(), 1, [&](size_t i, size_t, unsigned) {
      for (size_t j = 0; j < database_rows; ++j)
        if (!std::isfinite(keys(i, j))) fail_not_finite("queries", first + i);
      PositiveRanks counted(checked(relevance[first + i], database_rows, first + i),
                            [&](uint32_t row) { return keys(i, row); });
      for (size_t j = 0; j < database_rows; ++j)
        counted.count(counted.place({keys(i, j), uint32_t(j)}));
      ranks[first + i] = counted.ranks();
    });
  }
  return score_all(ranks, options);
}

}  // namespace fungi
