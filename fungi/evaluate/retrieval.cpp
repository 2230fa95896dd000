// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/retrieval.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fungi/base/error.h"

namespace fungi {
namespace {

using search::Best;

constexpr size_t kKeyBytes = size_t{64} << 20;  // of keys in memory at a time
constexpr size_t kRowBlock = 32;  // rows of the database that meet the queries at once

enum Role : uint8_t { kOther, kPositive, kJunk };

std::vector<Role> roles_of(const Relevance& relevance, size_t rows, size_t query) {
  std::vector<Role> role(rows, kOther);
  const auto mark = [&](const std::vector<uint32_t>& which, Role as) {
    for (uint32_t row : which) {
      if (row >= rows)
        fail(fmt::format("expected rows below {}, query {} names row {}", rows, query, row),
             "ground truth", "use the ground truth of this database");
      if (role[row] != kOther && role[row] != as)
        fail(fmt::format("expected a row to be positive or junk, row {} of query {} is both", row,
                         query),
             "ground truth", "");
      role[row] = as;
    }
  };
  mark(relevance.positive, kPositive);
  mark(relevance.junk, kJunk);
  return role;
}

// The ranks of the positives among what is not junk: for each, how many such rows come before it.
std::vector<size_t> ranks_of(View<const double> keys, size_t query, const std::vector<Role>& role) {
  std::vector<Best> positives;
  std::vector<Best> others;
  for (size_t j = 0; j < keys.cols; ++j) {
    if (role[j] == kJunk) continue;
    const Best best{keys(query, j), uint32_t(j)};
    (role[j] == kPositive ? positives : others).push_back(best);
  }
  std::sort(positives.begin(), positives.end());
  std::vector<size_t> before(positives.size() + 1,
                             0);  // others between positive i−1 and positive i
  for (const Best& other : others)
    ++before[size_t(std::lower_bound(positives.begin(), positives.end(), other) -
                    positives.begin())];
  std::vector<size_t> ranks(positives.size());
  size_t ahead = 0;
  for (size_t i = 0; i < positives.size(); ++i) {
    ahead += before[i];
    ranks[i] = ahead + i;
  }
  return ranks;
}

void check_cuts(const std::vector<size_t>& precision_at) {
  for (size_t cut : precision_at)
    if (cut == 0)
      fail("expected precision at 1 or deeper, found 0", "precision_at", "use 1 or more");
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

QueryScore score_ranking(const std::vector<uint32_t>& ranking, const Relevance& relevance,
                         const std::vector<size_t>& precision_at) {
  const std::vector<Role> role = roles_of(relevance, ranking.size(), 0);
  std::vector<size_t> ranks;
  size_t rank = 0;
  for (uint32_t row : ranking) {
    FUNGI_ASSERT(row < role.size());
    if (role[row] == kPositive) ranks.push_back(rank);
    if (role[row] != kJunk) ++rank;
  }
  return score_ranks(ranks, precision_at);
}

RetrievalScore evaluate_retrieval(View<const float> database, View<const float> queries,
                                  const std::vector<Relevance>& relevance,
                                  const RetrievalOptions& options, Pool& pool) {
  search::check_search(database, queries, 1, database.rows);
  const search::ExactKey exact(options.metric, database.cols);
  const auto norms_of = [&](View<const float> rows, const char* what) {
    std::vector<double> norms(rows.rows);
    pool.parallel_for(rows.rows, 256, [&](size_t begin, size_t end, unsigned) {
      for (size_t j = begin; j < end; ++j) {
        norms[j] = exact.norm(rows.row(j));
        if (!std::isfinite(norms[j])) search::fail_not_finite(what, j);
      }
    });
    return norms;
  };
  const std::vector<double> norms = norms_of(database, "database");
  const std::vector<double> query_norms = norms_of(queries, "queries");
  // Some rows stay in the cache while all queries meet them: else each query would bring the whole
  // database from memory.
  const auto fill = [&](size_t first, View<double> keys) {
    pool.parallel_for(database.rows, kRowBlock, [&](size_t begin, size_t end, unsigned) {
      for (size_t i = 0; i < keys.rows; ++i)
        for (size_t j = begin; j < end; ++j)
          keys(i, j) =
              exact(queries.row(first + i), database.row(j), query_norms[first + i], norms[j]);
    });
  };
  return evaluate_retrieval(database.rows, queries.rows, fill, relevance, options, pool);
}

RetrievalScore evaluate_retrieval(size_t database_rows, size_t queries, const FillKeys& fill,
                                  const std::vector<Relevance>& relevance,
                                  const RetrievalOptions& options, Pool& pool) {
  if (relevance.size() != queries)
    fail(fmt::format("expected ground truth for each of {} queries, found {}", queries,
                     relevance.size()),
         "ground truth", "");
  if (database_rows == 0)
    fail("expected rows to search in, found none", "database", "extract some images first");
  check_cuts(options.precision_at);
  RetrievalScore out;
  out.by_query.resize(queries);
  const size_t step = std::clamp<size_t>(kKeyBytes / (sizeof(double) * database_rows), 1, 512);
  for (size_t first = 0; first < queries; first += step) {
    Matrix<double> keys(std::min(step, queries - first), database_rows);
    fill(first, keys);
    pool.parallel_for(keys.rows(), 1, [&](size_t i, size_t, unsigned) {
      const std::vector<Role> role = roles_of(relevance[first + i], database_rows, first + i);
      for (size_t j = 0; j < database_rows; ++j)
        if (!std::isfinite(keys(i, j))) search::fail_not_finite("queries", first + i);
      if (relevance[first + i].positive.empty()) return;
      out.by_query[first + i] = score_ranks(ranks_of(keys, i, role), options.precision_at);
    });
  }
  out.precision.assign(options.precision_at.size(), 0.0);
  for (const auto& score : out.by_query) {
    if (!score) continue;
    ++out.queries;
    out.map += score->average_precision;
    for (size_t c = 0; c < out.precision.size(); ++c) out.precision[c] += score->precision[c];
  }
  if (out.queries == 0)
    fail("expected at least one query with positives, found none", "ground truth", "");
  out.map /= double(out.queries);
  for (double& p : out.precision) p /= double(out.queries);
  return out;
}

}  // namespace fungi
