// SPDX-License-Identifier: Apache-2.0
// Ranks through bounds against a plain sort of sums in long double, on kind and hostile rows.
#include "fungi/evaluate/positive_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "fungi/base/random.h"
#include "tests/support/errors.h"
#include "tests/support/ranking.h"
#include "tests/support/true_key.h"

namespace fungi {
namespace {

// Whole numbers: products are exact in any order, and many rows have equal keys.
Matrix<float> small_numbers(size_t rows, size_t cols, uint64_t seed, double scale = 1) {
  Matrix<float> m(rows, cols);
  const RandomStream random(seed, "positive ranks test");
  for (size_t i = 0; i < rows; ++i)
    for (size_t c = 0; c < cols; ++c)
      m(i, c) = float(scale * std::round(2 * random.normal(i * cols + c)));
  return m;
}

Matrix<float> gaussian(size_t rows, size_t cols, uint64_t seed) {
  Matrix<float> m(rows, cols);
  const RandomStream random(seed, "positive ranks test");
  for (size_t i = 0; i < rows * cols; ++i) m.data()[i] = float(random.normal(i));
  return m;
}

std::vector<size_t> sorted_ranks(Metric metric, View<const float> database, const float* query,
                                 const Relevance& relevance) {
  std::vector<std::pair<double, uint32_t>> order;
  for (uint32_t j = 0; j < database.rows; ++j)
    order.emplace_back(double(test::true_key(metric, database.cols, query, database.row(j))), j);
  std::sort(order.begin(), order.end());
  std::vector<uint32_t> ranking;
  for (const auto& [key, row] : order) ranking.push_back(row);
  return test::ranks_in(ranking, relevance);
}

// Some rows of each query, more than once here and there; every seventh query has none.
std::vector<Relevance> some_rows(size_t queries, size_t rows) {
  std::vector<Relevance> out(queries);
  for (size_t q = 0; q < queries; ++q) {
    for (size_t i = 0; q % 7 != 3 && i < 1 + q % 40; ++i)
      out[q].positive.push_back(uint32_t((q * 31 + i * i * 17) % rows / 2 * 2));
    for (size_t i = 0; i < q % 5; ++i)
      out[q].junk.push_back(uint32_t((q * 13 + i * 101) % (rows - 1) / 2 * 2 + 1));
  }
  return out;
}

std::vector<std::vector<size_t>> all_ranks(View<const float> database, View<const float> queries,
                                           const std::vector<Relevance>& relevance, Metric metric,
                                           Pool& pool) {
  std::vector<std::vector<size_t>> out(queries.rows);
  positive_ranks(
      database, queries, [&](size_t query) { return relevance[query]; }, metric, pool,
      [&](size_t query, std::vector<size_t> ranks) { out[query] = std::move(ranks); });
  return out;
}

void expect_sorted(View<const float> database, View<const float> queries,
                   std::initializer_list<Metric> metrics) {
  const std::vector<Relevance> relevance = some_rows(queries.rows, database.rows);
  Pool one(1), three(3);
  for (Metric metric : metrics) {
    const auto ranks = all_ranks(database, queries, relevance, metric, three);
    EXPECT_EQ(ranks, all_ranks(database, queries, relevance, metric, one));
    for (size_t q = 0; q < queries.rows; ++q)
      EXPECT_EQ(ranks[q], sorted_ranks(metric, database, queries.row(q), relevance[q]))
          << to_string(metric) << " query " << q;
  }
}

constexpr auto kAll = {Metric::euclidean, Metric::inner_product, Metric::cosine};

TEST(PositiveRanks, equal_those_of_a_sort) {
  expect_sorted(gaussian(9000, 37, 1), gaussian(101, 37, 2), kAll);  // more than a block of rows
}

TEST(PositiveRanks, equal_keys_stand_in_the_order_of_rows) {
  expect_sorted(small_numbers(700, 4, 3), small_numbers(60, 4, 4),
                {Metric::euclidean, Metric::inner_product});
  Matrix<float> copies(300, 8);
  for (size_t i = 0; i < copies.rows(); ++i)
    for (size_t c = 0; c < 8; ++c) copies(i, c) = float(i / 100 * c);
  expect_sorted(copies, copies.view().slice(90, 30), kAll);
}

TEST(PositiveRanks, far_from_the_origin_and_at_the_ends_of_the_range) {
  Matrix<float> far = gaussian(400, 16, 5);
  for (size_t i = 0; i < far.rows(); ++i)
    for (size_t c = 0; c < 16; ++c) far(i, c) = far(i, c) * 1e-3f + 100;
  expect_sorted(far, far.view().slice(0, 30), {Metric::euclidean, Metric::inner_product});
  expect_sorted(small_numbers(300, 5, 6, 0x1p60), small_numbers(20, 5, 7, 0x1p60),
                {Metric::euclidean, Metric::inner_product});
  expect_sorted(small_numbers(300, 5, 6, 0x1p-70), small_numbers(20, 5, 7, 0x1p-70),
                {Metric::euclidean, Metric::inner_product});
}

// Where most rows are relevant, what all queries together need is quadratic.
TEST(PositiveRanks, a_block_of_queries_is_given_away_before_the_next_begins) {
  constexpr size_t kRows = 2000, kQueries = 1600;
  const Matrix<float> rows = gaussian(kRows, 2, 10);
  const View<const float> queries = rows.view().slice(0, kQueries);
  Pool pool(2);
  std::atomic<size_t> asked = 0, taken = 0, most = 0;
  const auto three_quarters = [&](size_t query) {
    most = std::max<size_t>(most, ++asked - taken);
    Relevance out;
    for (size_t i = 0; i < kRows; ++i)
      if (i % 4 != query % 4) out.positive.push_back(uint32_t(i));
    return out;
  };
  std::vector<std::vector<size_t>> ranks(kQueries);
  positive_ranks(rows, queries, three_quarters, Metric::euclidean, pool,
                 [&](size_t query, std::vector<size_t> given) {
                   ++taken;
                   ranks[query] = std::move(given);
                 });
  EXPECT_EQ(taken, kQueries);
  EXPECT_LT(most, kQueries) << "64 MB of positives at a time";
  for (const size_t query : {size_t{0}, most - 2, most - 1, kQueries - 1})
    EXPECT_EQ(ranks[query],
              sorted_ranks(Metric::euclidean, rows, rows.row(query), three_quarters(query)))
        << query;
}

TEST(PositiveRanks, name_the_row_of_nan) {
  Pool pool(2);
  Matrix<float> rows = gaussian(50, 4, 8);
  rows(33, 2) = std::numeric_limits<float>::quiet_NaN();
  const Matrix<float> whole = gaussian(50, 4, 9);
  const std::vector<Relevance> some = some_rows(50, 50);
  EXPECT_ERROR("row 33", all_ranks(rows, whole, some, Metric::cosine, pool));
  EXPECT_ERROR("row 33", all_ranks(whole, rows, some, Metric::cosine, pool));
}

// Behind the first block of queries, too.
TEST(PositiveRanks, name_the_query_whose_rows_are_wrong) {
  Pool pool(2);
  const Matrix<float> rows = gaussian(10, 2, 11), queries = gaussian(4100, 2, 12);
  std::vector<Relevance> relevance(4100);
  relevance[4098].positive = {3, 10};
  EXPECT_ERROR("expected rows below 10, query 4098 names row 10",
               all_ranks(rows, queries, relevance, Metric::euclidean, pool));
  relevance[4098] = {{3, 5}, {5}};
  EXPECT_ERROR("row 5 of query 4098 is both",
               all_ranks(rows, queries, relevance, Metric::euclidean, pool));
}

}  // namespace
}  // namespace fungi
