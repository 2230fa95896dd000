// SPDX-License-Identifier: Apache-2.0
// The assignment against all permutations, the overlap by hand.
#include "fungi/evaluate/clustering.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "fungi/base/random.h"
#include "fungi/evaluate/hungarian.h"

namespace fungi {
namespace {

double brute_force(const Matrix<double>& value) {
  const size_t rows = value.rows(), cols = value.cols(), larger = std::max(rows, cols);
  std::vector<size_t> order(larger);
  std::iota(order.begin(), order.end(), size_t{0});
  double best = -1e300;
  do {
    double sum = 0;
    for (size_t i = 0; i < rows; ++i)
      if (order[i] < cols) sum += value(i, order[i]);
    best = std::max(best, sum);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(Hungarian, equals_brute_force_on_rectangles) {
  const RandomStream random(1, "assignment");
  uint64_t next = 0;
  for (size_t rows = 1; rows <= 6; ++rows)
    for (size_t cols = 1; cols <= 6; ++cols)
      for (int kind = 0; kind < 6; ++kind) {
        Matrix<double> value(rows, cols);
        for (size_t i = 0; i < rows * cols; ++i)
          value.data()[i] = kind < 3 ? double(random.bits(next++) % 4)  // many equal values
                                     : random.normal(next++) * std::pow(10.0, kind - 3);
        const std::vector<size_t> match = best_assignment(value);
        ASSERT_EQ(match.size(), rows);
        double sum = 0;
        std::vector<bool> used(cols, false);
        size_t assigned = 0;
        for (size_t i = 0; i < rows; ++i) {
          if (match[i] == kUnassigned) continue;
          ASSERT_LT(match[i], cols);
          ASSERT_FALSE(used[match[i]]);
          used[match[i]] = true;
          sum += value(i, match[i]);
          ++assigned;
        }
        EXPECT_EQ(assigned, std::min(rows, cols));
        EXPECT_NEAR(sum, brute_force(value), 1e-9);
      }
}

TEST(Hungarian, larger_than_brute_force_can_check) {
  // A hidden permutation stands out.
  const size_t n = 200;
  Matrix<double> value(n, n);
  const RandomStream random(2, "assignment");
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) value(i, j) = random.uniform(i * n + j);
  for (size_t i = 0; i < n; ++i) value(i, (i * 77 + 5) % n) += 2;
  const std::vector<size_t> match = best_assignment(value);
  for (size_t i = 0; i < n; ++i) EXPECT_EQ(match[i], (i * 77 + 5) % n);
  value(3, 3) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(best_assignment(value), Error);
  EXPECT_TRUE(best_assignment(Matrix<double>()).empty());
}

TEST(Overlap, by_hand) {
  const std::vector<uint32_t> clusters{0, 0, 0, 1, 1, 2, 2, 2};
  const std::vector<int64_t> labels{5, 5, 9, 9, 9, 5, 5, 7};
  // 0→5 (2), 1→9 (2), 2→7 (1): 5 of 8. Matching 2→5 (2), 1→9 (2), 0→7 (0) gives 4.
  const Overlap overlap = cluster_overlap(clusters, 3, labels);
  EXPECT_EQ(overlap.accuracy, 5.0 / 8);
  EXPECT_EQ(overlap.label_of_cluster, (std::vector<int64_t>{5, 9, 7}));
  EXPECT_EQ(overlap.cluster_sizes, (std::vector<size_t>{3, 2, 3}));
  // More clusters than classes: the left-over cluster has no label.
  const Overlap more = cluster_overlap({0, 1, 2, 2}, 3, std::vector<int64_t>{0, 0, 1, 1});
  EXPECT_EQ(more.accuracy, 0.75);
  EXPECT_EQ(std::count(more.label_of_cluster.begin(), more.label_of_cluster.end(), -1), 1);
  EXPECT_THROW(cluster_overlap(clusters, 2, labels), Error);
  EXPECT_THROW(cluster_overlap({0}, 1, labels), Error);
}

TEST(Clustering, finds_separate_classes) {
  Pool pool(2);
  Matrix<float> rows(90, 6);
  std::vector<int64_t> labels;
  const RandomStream random(3, "clusters");
  for (size_t i = 0; i < 90; ++i) {
    labels.push_back(int64_t(i % 3) * 4);
    for (size_t c = 0; c < 6; ++c)
      rows(i, c) = float(10 * double(i % 3 == c) + 0.1 * random.normal(i * 6 + c));
  }
  const ClusteringScore score = evaluate_clustering(rows, labels, {.restarts = 5}, pool);
  EXPECT_EQ(score.overlap.accuracy, 1);
  EXPECT_EQ(score.kmeans.centres.rows(), 3u);
  labels[3] = -1;
  EXPECT_THROW(evaluate_clustering(rows, labels, {}, pool), Error);
}

}  // namespace
}  // namespace fungi
