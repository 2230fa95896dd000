// SPDX-License-Identifier: Apache-2.0
// The assignment against all permutations, the overlap by hand, CKA against numpy.
#include "fungi/evaluate/clustering.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "fungi/base/random.h"
#include "fungi/evaluate/cka.h"
#include "fungi/evaluate/hungarian.h"
#include "tests/evaluate/golden.h"
#include "tests/support/folder.h"
#include "tests/support/made_store.h"

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

TEST(Cka, equals_numpy) {
  Pool pool(2);
  const Matrix<float> a = golden_matrix("cka_a"), b = golden_matrix("cka_b"),
                      c = golden_matrix("cka_c");
  const auto golden = golden_json("cka");
  const std::vector<View<const float>> blocks{a, b, c};
  const Matrix<double> found = linear_cka(blocks, pool);
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < 3; ++j) EXPECT_NEAR(found(i, j), golden[i][j].get<double>(), 1e-6);
  // In parts, the same bytes.
  CkaStream stream({a.cols(), b.cols(), c.cols()});
  for (size_t first = 0; first < 70; first += 30) {
    const size_t count = std::min<size_t>(30, 70 - first);
    stream.add(
        {a.view().slice(first, count), b.view().slice(first, count), c.view().slice(first, count)},
        pool);
  }
  const Matrix<double> parts = stream.finish(pool);
  EXPECT_TRUE(std::equal(found.data(), found.data() + 9, parts.data()));
}

// Blocks of a store are compared as every other evaluation has them: each row of length 1.
TEST(Cka, of_a_store_is_that_of_its_unit_rows) {
  Pool pool(2);
  const test::TemporaryFolder folder;
  const std::vector<std::string> names{"embedding", "kl", "dino"};
  const size_t widths[] = {3, 7, 4}, n = 40;
  const RandomStream random(6, "cka");
  std::vector<test::MadeRow> rows(n);
  std::vector<Matrix<float>> raw, unit;
  for (size_t b = 0; b < 3; ++b) {
    raw.emplace_back(n, widths[b]), unit.emplace_back(n, widths[b]);
    for (size_t i = 0; i < n; ++i) {
      double square = 0;
      for (size_t c = 0; c < widths[b]; ++c) {  // what they share, what they do not, any length
        const double value =
            random.normal(i) * double(c + 1) + random.normal(1000 * (b + 1) + 10 * i + c);
        raw[b](i, c) = float(double(1 + i % 4) * value);
        square += double(raw[b](i, c)) * double(raw[b](i, c));
      }
      for (size_t c = 0; c < widths[b]; ++c)
        unit[b](i, c) = float(raw[b](i, c) / std::sqrt(square));
      rows[i].id = std::to_string(i);
      rows[i].blocks.emplace_back(raw[b].row(i), raw[b].row(i) + widths[b]);
    }
  }
  test::write_made_store(folder / "store", rows, {}, names);
  const Store store = Store::open(folder / "store");
  const Matrix<double> found = linear_cka(store, names, pool),
                       expected = linear_cka({unit[0], unit[1], unit[2]}, pool),
                       as_stored = linear_cka({raw[0], raw[1], raw[2]}, pool),
                       turned = linear_cka(store, {"dino", "embedding"}, pool);
  for (size_t i = 0; i < 9; ++i) EXPECT_NEAR(found.data()[i], expected.data()[i], 1e-6) << i;
  for (const auto& [a, b] : {std::pair(0, 1), {0, 2}, {1, 2}})
    EXPECT_GT(std::abs(as_stored(size_t(a), size_t(b)) - expected(size_t(a), size_t(b))), 1e-3);
  EXPECT_NEAR(turned(0, 1), expected(0, 2), 1e-6);
}

TEST(Cka, does_not_see_turns_and_scales) {
  Pool pool(1);
  const Matrix<float> a = golden_matrix("cka_a");
  Matrix<float> turned(a.rows(), a.cols());
  for (size_t i = 0; i < a.rows(); ++i)
    for (size_t c = 0; c < a.cols(); ++c) turned(i, c) = -3 * a(i, a.cols() - 1 - c) + 7;
  EXPECT_NEAR(linear_cka({a, turned}, pool)(0, 1), 1, 1e-6);
}

TEST(Cka, refuses_bad_input) {
  Pool pool(1);
  const Matrix<float> a = golden_matrix("cka_a"), same_everywhere(70, 3);
  EXPECT_THROW(linear_cka({}, pool), Error);
  EXPECT_THROW(linear_cka({a, a.view().slice(0, 10)}, pool), Error);
  EXPECT_THROW(linear_cka({a.view().slice(0, 1)}, pool), Error);
  EXPECT_THROW(linear_cka({a, same_everywhere}, pool), Error);
}

}  // namespace
}  // namespace fungi
