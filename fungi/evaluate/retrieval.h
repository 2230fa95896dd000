// SPDX-License-Identifier: Apache-2.0
// Retrieval: ranks the database for each query and scores where the relevant rows stand (SPEC 5.5,
// the rules of the revisited Oxford and Paris sets; any list of queries and relevant rows works as
// well).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"
#include "fungi/search/metric.h"

namespace fungi {

// Of one query: rows of the database that count as right, and rows that are taken out of the
// ranking.
struct Relevance {
  std::vector<uint32_t> positive, junk;
};

// That of every query, asked for when its turn comes, from any thread: rows that many queries share
// (those of a class) need not be written down for each of them.
using RelevanceOf = std::function<Relevance(size_t query)>;

struct QueryScore {
  double average_precision = 0;
  std::vector<double> precision;  // one per RetrievalOptions::precision_at
};

struct RetrievalScore {
  double map = 0;                                   // mean over the queries that have positives
  std::vector<double> precision;                    // mean precision at each cut
  size_t queries = 0, left_out = 0;                 // with positives, and without
  std::vector<std::optional<QueryScore>> by_query;  // nothing for a query without positives
};

struct RetrievalOptions {
  Metric metric =
      Metric::inner_product;  // the protocol's plain dot product; larger first, ties by smaller row
  std::vector<size_t> precision_at = {1, 5, 10};
};

// The score of one query from the zero-based ranks of its positives, junk already taken out,
// ascending: each positive j at rank r gives (j/r, or 1 at the top) and (j+1)/(r+1), averaged.
// Error on a cut of 0 and where there are no ranks.
QueryScore score_ranks(const std::vector<size_t>& ranks, const std::vector<size_t>& precision_at);

// Ranks of the positives in the exact order (search::ExactKey). Queries are ranked and scored some
// at a time, and only their scores are kept. Errors: widths, counts, rows out of range, a row both
// positive and junk, no query with positives, NaN or infinity (naming the row).
RetrievalScore evaluate_retrieval(View<const float> database, View<const float> queries,
                                  const RelevanceOf& relevance, const RetrievalOptions& options,
                                  Pool& pool);
RetrievalScore evaluate_retrieval(View<const float> database, View<const float> queries,
                                  const std::vector<Relevance>& relevance,
                                  const RetrievalOptions& options, Pool& pool);

// The same for keys that something else computes, e.g. whole gradients: fill(first, keys) writes
// those of queries first .. first + keys.rows to every row of the database, smaller = nearer. A key
// that is not finite is an Error, and so is a database without rows.
using FillKeys = std::function<void(size_t first, View<double> keys)>;
RetrievalScore evaluate_retrieval(size_t database_rows, size_t queries, const FillKeys& fill,
                                  const RelevanceOf& relevance, const RetrievalOptions& options,
                                  Pool& pool);
RetrievalScore evaluate_retrieval(size_t database_rows, size_t queries, const FillKeys& fill,
                                  const std::vector<Relevance>& relevance,
                                  const RetrievalOptions& options, Pool& pool);

}  // namespace fungi
