// SPDX-License-Identifier: Apache-2.0
// Centres that move: every row must stand at the exactly nearest one, each time.
#include "fungi/search/nearest_centre.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fungi/base/random.h"

namespace fungi::search {
namespace {

Matrix<float> gaussian(size_t rows, size_t cols, uint64_t seed, float scale) {
  Matrix<float> m(rows, cols);
  const RandomStream random(seed, "nearest centre test");
  for (size_t i = 0; i < rows; ++i)
    for (size_t c = 0; c < cols; ++c) m(i, c) = scale * float(random.normal(i * cols + c));
  return m;
}

uint32_t brute_force(View<const float> centres, const float* row,
                     Metric metric = Metric::euclidean) {
  const ExactKey exact(metric, centres.cols);
  Best best{exact(row, centres.row(0)), 0};
  for (size_t j = 1; j < centres.rows; ++j)
    best = std::min(best, {exact(row, centres.row(j)), uint32_t(j)});
  return best.row;
}

TEST(NearestCentre, exact_while_centres_move_a_little_a_lot_or_not_at_all) {
  Pool one(1), three(3);
  for (const Metric metric : {Metric::euclidean, Metric::inner_product, Metric::cosine})
    for (const size_t k : {1u, 2u, 17u, 300u}) {  // 300: more than one part of the scan
      SCOPED_TRACE(std::string(to_string(metric)) + " " + std::to_string(k));
      const size_t d = 33;
      Matrix<float> rows = gaussian(1000, d, 1, 1), centres = gaussian(k, d, 2, 0.5f);
      for (size_t c = 0; c < d; ++c)
        rows(5, c) = 0, rows(6, c) *= 1e25f, rows(7, c) *= 1e-25f, rows(8, c) = centres(k - 1, c);
      NearestCentre by_one(rows, metric, one), by_three(rows, metric, three);
      for (size_t turn = 0; turn < 6; ++turn) {
        const std::vector<uint32_t> a = by_one.assign(centres, one);
        EXPECT_EQ(a, by_three.assign(centres, three));
        for (size_t i = 0; i < rows.rows(); ++i)
          ASSERT_EQ(a[i], brute_force(centres, rows.row(i), metric))
              << "turn " << turn << " row " << i;
        const float scales[] = {0.01f, 0.0f, 0.5f, 1e-6f, 30.0f, 0.0f};
        const Matrix<float> step = gaussian(k, d, 10 + turn, scales[turn]);
        for (size_t j = 0; j < k; ++j)
          for (size_t c = 0; c < d; ++c) centres(j, c) += step(j, c);
      }
    }
}

TEST(NearestCentre, ties_and_another_number_of_centres) {
  Pool pool(2);
  const Matrix<float> rows = gaussian(200, 8, 3, 1);
  NearestCentre nearest(rows, Metric::euclidean, pool);
  Matrix<float> centres(12, 8);  // each one three times
  for (size_t j = 0; j < 12; ++j)
    for (size_t c = 0; c < 8; ++c) centres(j, c) = float(j / 3) - 1.5f;
  for (int turn = 0; turn < 2; ++turn) {
    const std::vector<uint32_t>& found = nearest.assign(centres, pool);
    for (size_t i = 0; i < 200; ++i) EXPECT_EQ(found[i], brute_force(centres, rows.row(i)));
  }
  const std::vector<uint32_t>& found = nearest.assign(centres.view().slice(0, 5), pool);
  for (size_t i = 0; i < 200; ++i)
    EXPECT_EQ(found[i], brute_force(centres.view().slice(0, 5), rows.row(i)));
}

// One column dwarfs the others: bytes resolve nothing else, and the f32 scan takes over.
TEST(NearestCentre, rows_that_bytes_cannot_tell_apart) {
  Pool pool(2);
  Matrix<float> rows = gaussian(500, 16, 4, 1), centres = gaussian(40, 16, 5, 1);
  for (size_t i = 0; i < 500; ++i) rows(i, 0) = i % 2 ? 1e4f : -1e4f;
  for (size_t j = 0; j < 40; ++j) centres(j, 0) = 1e4f;
  NearestCentre nearest(rows, Metric::euclidean, pool);
  for (int turn = 0; turn < 3; ++turn) {
    const std::vector<uint32_t>& found = nearest.assign(centres, pool);
    for (size_t i = 0; i < 500; ++i) EXPECT_EQ(found[i], brute_force(centres, rows.row(i)));
    for (size_t j = 0; j < 40; ++j) centres(j, 3) += 0.1f;
  }
}

}  // namespace
}  // namespace fungi::search
