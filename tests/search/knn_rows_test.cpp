// SPDX-License-Identifier: Apache-2.0
// Rows prepared once against the plain search, bit for bit: one query and many, several threads,
// and the data on which bounds fail.
#include "fungi/search/knn_rows.h"

#include <gtest/gtest.h>

#include <limits>

#include "fungi/base/random.h"
#include "tests/support/errors.h"

namespace fungi {
namespace {

constexpr Metric kMetrics[] = {Metric::euclidean, Metric::inner_product, Metric::cosine};

Matrix<float> drawn(size_t rows, size_t columns, uint64_t seed) {
  Matrix<float> m(rows, columns);
  const RandomStream random(seed, "rows");
  for (size_t i = 0; i < rows * columns; ++i) m.data()[i] = float(random.normal(i));
  return m;
}

KnnWork expect_same(View<const float> rows, View<const float> queries, size_t k, Metric metric) {
  KnnWork work;
  for (const unsigned threads : {1u, 3u}) {
    Pool pool(threads);
    const KnnRows prepared(rows, metric, pool);
    const Neighbours found = prepared.search(queries, k, pool, &work),
                     plain = knn(rows, queries, k, pool, {.metric = metric, .scan = ScanKind::f32});
    EXPECT_EQ(found.index.rows(), queries.rows);
    for (size_t i = 0; i < queries.rows * k; ++i) {
      EXPECT_EQ(found.index.data()[i], plain.index.data()[i]) << i;
      EXPECT_EQ(found.value.data()[i], plain.value.data()[i]) << i;
    }
  }
  return work;
}

TEST(KnnRows, OneQueryAndManyFindWhatKnnFinds) {
  const Matrix<float> rows = drawn(40'000, 24, 1), queries = drawn(1500, 24, 2);
  for (const Metric metric : kMetrics)
    for (const size_t count : {1u, 5u, 97u}) {
      SCOPED_TRACE(std::string(to_string(metric)) + " " + std::to_string(count));
      const KnnWork work = expect_same(rows, queries.view().slice(3, count), 9, metric);
      EXPECT_EQ(work.pairs, 40'000 * count);
      EXPECT_LT(double(work.exact), 0.1 * double(work.pairs)) << "codes decide about most rows";
    }
  expect_same(rows, queries, 3, Metric::euclidean);
}

TEST(KnnRows, TiesZerosAndRowsThatCodesCannotTellApart) {
  Matrix<float> rows = drawn(20'000, 8, 3), queries = drawn(30, 8, 4);
  for (size_t i = 0; i < rows.rows(); ++i)
    for (size_t c = 0; c < 8; ++c) {
      if (i % 5 == 0) rows(i, c) = float(c);  // copies, which come by number
      if (i % 7 == 0) rows(i, c) = 0;
      if (i % 11 == 0) rows(i, c) *= 1e20f;
      if (i % 13 == 0) rows(i, c) *= 1e-30f;
    }
  std::copy_n(rows.row(5), 8, queries.row(0));
  std::fill_n(queries.row(1), 8, 0.0f);
  for (const Metric metric : kMetrics) expect_same(rows, queries, 25, metric);
  // One column is far greater than the rest: bounds are too wide, and the plain search answers.
  for (size_t i = 0; i < rows.rows(); ++i) rows(i, 0) = 3000;
  expect_same(rows, queries, 5, Metric::cosine);
  // More neighbours than a range of the rows has.
  expect_same(drawn(9000, 3, 5), drawn(2, 3, 6), 8500, Metric::euclidean);
  expect_same(drawn(1, 3, 7), drawn(2, 3, 8), 1, Metric::euclidean);
  const size_t wide = (size_t{1} << 16) + 1;
  expect_same(drawn(3, wide, 9), drawn(1, wide, 10), 2, Metric::inner_product);
}

TEST(KnnRows, RefusesWhatKnnRefuses) {
  Pool pool(2);
  Matrix<float> rows = drawn(30, 4, 11);
  const KnnRows prepared(rows, Metric::euclidean, pool);
  EXPECT_THROW(prepared.search(rows, 31, pool), Error);
  EXPECT_THROW(prepared.search(rows, 0, pool), Error);
  EXPECT_THROW(prepared.search(drawn(1, 5, 1), 1, pool), Error);
  EXPECT_EQ(prepared.search(Matrix<float>(0, 4), 3, pool).index.rows(), 0u);
  Matrix<float> query = drawn(1, 4, 12);
  query(0, 2) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(prepared.search(query, 1, pool), Error);
  rows(17, 1) = std::numeric_limits<float>::infinity();
  EXPECT_ERROR("row 17", KnnRows(rows, Metric::euclidean, pool));
}

}  // namespace
}  // namespace fungi
