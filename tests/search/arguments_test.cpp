// SPDX-License-Identifier: Apache-2.0
// What callers of the search get wrong: temporaries, rows that are not there, shapes that differ.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "fungi/search/index.h"
#include "fungi/search/kmeans.h"
#include "fungi/search/knn.h"
#include "fungi/search/metric.h"
#include "tests/support/errors.h"

namespace fungi {
namespace {

Matrix<float> counted(size_t rows, size_t cols) {
  Matrix<float> m(rows, cols);
  for (size_t i = 0; i < rows * cols; ++i) m.data()[i] = float(i);
  return m;
}

TEST(Index, KeepsAMatrixThatIsGivenAway) {
  Pool pool(1);
  const Matrix<float> query = counted(1, 8);
  for (const IndexKind kind : {IndexKind::exact, IndexKind::ivf, IndexKind::hnsw}) {
    Matrix<float> rows = counted(50, 8);
    const float* data = rows.data();
    Index index = Index::build(std::move(rows), {.kind = kind}, pool);
    if (kind == IndexKind::exact) {
      EXPECT_TRUE(rows.empty());
      EXPECT_EQ(index.row(0).data, data) << "without a copy";
    }
    const Index moved = std::move(index);
    const Matrix<float> other(50, 8);  // where a temporary's memory would be
    EXPECT_EQ(moved.search(query, 1, pool).value(0, 0), 0.0);
    EXPECT_EQ(moved.row(49).data[7], 399.0f);
  }
  const Matrix<float> kept = counted(50, 8);
  EXPECT_EQ(Index::build(kept, {}, pool).row(0).data, kept.data()) << "borrowed";
  EXPECT_ERROR("", Index::build(Matrix<float>(0, 8), {}, pool));
}

TEST(Index, RecallIsOfRowsThatThereAre) {
  Pool pool(1);
  const Matrix<float> rows = counted(20, 4), fewer = counted(19, 4);
  const Index index = Index::build(rows, {}, pool);
  EXPECT_EQ(recall_of_rows(index, rows, {19}, 3, pool), 1.0);
  EXPECT_ERROR("asked for row 500000000 of 20", recall_of_rows(index, rows, {500000000}, 3, pool));
  EXPECT_ERROR("expected the 20 rows of the index, found 19",
               recall_of_rows(index, fewer, {1}, 3, pool));
  const Neighbours one = index.search(fewer.view().slice(0, 1), 2, pool),
                   two = index.search(fewer.view().slice(0, 2), 2, pool);
  EXPECT_ERROR("expected 2 x 2 neighbours", recall(one, two));
}

TEST(Search, RefusesBlocksOfNoRowsAndCentresThatDoNotFit) {
  Pool pool(1);
  const Matrix<float> rows = counted(20, 4), narrow = counted(2, 3), none(0, 4);
  EXPECT_ERROR("at least one row", knn(rows, rows, 1, pool, {.query_block = 0}));
  EXPECT_ERROR("at least one row", knn(rows, rows, 1, pool, {.database_block = 0}));
  EXPECT_ERROR("width 4", assign_to_centres(rows, narrow, pool));
  EXPECT_ERROR("found a 0 x 4 matrix", assign_to_centres(rows, none, pool));
}

TEST(Search, RowsAreCountedBy32Bits) {
  const float one = 1;
  const size_t most = std::numeric_limits<uint32_t>::max();
  const View<const float> query(&one, 1, 1), fits(&one, most, 1), more(&one, most + 1, 1);
  EXPECT_NO_THROW(search::check_search(fits, query, 1, most));
  EXPECT_ERROR("at most 2^32 - 1 rows, found 4294967296",
               search::check_search(more, query, 1, most));
}

}  // namespace
}  // namespace fungi
