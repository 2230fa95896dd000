// SPDX-License-Identifier: Apache-2.0
// k-means: against scikit-learn from the same start, its own laws, and hostile input.
#include "fungi/search/kmeans.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "fungi/base/random.h"
#include "fungi/checkpoint/npy.h"

namespace fungi {
namespace {

Matrix<float> blobs(size_t rows, size_t cols, size_t count, uint64_t seed, double spread) {
  Matrix<float> m(rows, cols);
  const RandomStream centre(seed, "centres"), noise(seed, "noise");
  for (size_t i = 0; i < rows; ++i)
    for (size_t c = 0; c < cols; ++c)
      m(i, c) =
          float(5 * centre.normal((i % count) * cols + c) + spread * noise.normal(i * cols + c));
  return m;
}

TEST(KMeans, equals_scikit_learn_from_the_same_start) {
  Pool pool(2);
  const std::string folder = std::string(FUNGI_GOLDEN_DIR) + "/evaluate/";
  const NpyFile rows = NpyFile::open(folder + "kmeans_rows.npy"),
                start = NpyFile::open(folder + "kmeans_start.npy");
  const auto golden = nlohmann::json::parse(std::ifstream(folder + "golden.json"))["kmeans"];
  const KMeans result = kmeans(
      rows.view<float>(),
      {.clusters = start.rows(), .rows_per_cluster = 0, .initial = start.view<float>()}, pool);
  EXPECT_NEAR(result.inertia, golden["inertia"].get<double>(), 1e-5 * result.inertia);
  size_t same = 0;
  for (size_t i = 0; i < rows.rows(); ++i)
    same += result.assignment[i] == golden["labels"][i].get<uint32_t>();
  EXPECT_EQ(same, rows.rows());
}

TEST(KMeans, same_bytes_for_any_thread_count) {
  const Matrix<float> rows = blobs(3000, 19, 12, 1, 3);
  Pool one(1), two(2), three(3);
  const KMeans expected = kmeans(rows, {.clusters = 15, .restarts = 2}, one);
  for (Pool* pool : {&two, &three}) {
    const KMeans result = kmeans(rows, {.clusters = 15, .restarts = 2}, *pool);
    EXPECT_EQ(result.assignment, expected.assignment);
    EXPECT_EQ(result.inertia, expected.inertia);
    EXPECT_TRUE(std::equal(result.centres.data(), result.centres.data() + 15 * 19,
                           expected.centres.data()));
  }
}

TEST(KMeans, rows_go_to_the_nearest_centre_and_centres_are_means) {
  Pool pool(2);
  const Matrix<float> rows = blobs(900, 7, 9, 2, 2);
  const KMeans result = kmeans(rows, {.clusters = 9, .iterations = 200}, pool);
  EXPECT_LT(result.iterations, 200u);
  double inertia = 0;
  Matrix<double> mean(9, 7);
  std::vector<double> count(9, 0);
  for (size_t i = 0; i < 900; ++i) {
    double best = 1e300, own = 0;
    for (size_t j = 0; j < 9; ++j) {
      double sum = 0;
      for (size_t c = 0; c < 7; ++c)
        sum += std::pow(double(rows(i, c)) - double(result.centres(j, c)), 2);
      best = std::min(best, sum);
      if (j == result.assignment[i]) own = sum;
    }
    EXPECT_NEAR(own, best, 1e-4 * best + 1e-6);
    inertia += own;
    count[result.assignment[i]] += 1;
    for (size_t c = 0; c < 7; ++c) mean(result.assignment[i], c) += rows(i, c);
  }
  EXPECT_NEAR(result.inertia, inertia, 1e-9 * inertia);
  for (size_t j = 0; j < 9; ++j)
    for (size_t c = 0; c < 7; ++c) EXPECT_NEAR(result.centres(j, c), mean(j, c) / count[j], 1e-4);
}

TEST(KMeans, finds_clear_clusters_and_better_with_restarts) {
  Pool pool(2);
  const Matrix<float> rows = blobs(400, 6, 4, 3, 0.05);
  const KMeans once = kmeans(rows, {.clusters = 4}, pool),
               often = kmeans(rows, {.clusters = 4, .restarts = 8}, pool);
  EXPECT_LE(often.inertia, once.inertia);
  for (size_t i = 4; i < 400; ++i) EXPECT_EQ(often.assignment[i], often.assignment[i % 4]);
}

TEST(KMeans, reports_iterations_of_all_runs) {
  Pool pool(2);
  const Matrix<float> rows = blobs(400, 6, 4, 3, 0.05);
  std::vector<size_t> done;
  const auto count = [&](size_t d, size_t total) {
    done.push_back(d);
    EXPECT_EQ(total, 50u);
  };
  kmeans(rows, {.clusters = 4, .restarts = 2, .progress = count}, pool);
  EXPECT_LT(done.size(), 50u) << "clear clusters are found early";
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_EQ(std::count(done.begin(), done.end(), 25u), 1) << "the first run has ended";
  EXPECT_EQ(done.front(), 0u);
  EXPECT_EQ(done.back(), 50u);
}

TEST(KMeans, the_seed_draws_the_start_and_restarts_draw_others) {
  Pool pool(2);
  const Matrix<float> rows = blobs(300, 5, 12, 7, 0.3);  // more clusters than one start finds
  const auto run = [&](uint64_t seed, size_t restarts) {
    return kmeans(rows, {.clusters = 12, .restarts = restarts, .seed = seed}, pool);
  };
  size_t better = 0;
  std::set<double> inertias;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const KMeans once = run(seed, 1), often = run(seed, 8);
    EXPECT_LE(often.inertia, once.inertia) << seed;
    better += often.inertia < once.inertia;
    inertias.insert(once.inertia);
  }
  EXPECT_GT(better, 0u);
  EXPECT_GT(inertias.size(), 1u) << "other seeds, other centres";
}

TEST(KMeans, samples_large_sets_for_training) {
  Pool pool(2);
  const Matrix<float> rows = blobs(5000, 4, 3, 4, 0.5);
  const KMeans result = kmeans(rows, {.clusters = 3, .restarts = 5, .rows_per_cluster = 100}, pool);
  EXPECT_EQ(result.trained_rows, 300u);
  EXPECT_EQ(result.assignment.size(), 5000u);
  const KMeans all = kmeans(rows, {.clusters = 3, .restarts = 5, .rows_per_cluster = 0}, pool);
  EXPECT_EQ(all.trained_rows, 5000u);
  EXPECT_LT(result.inertia, 1.1 * all.inertia);
}

TEST(KMeans, empty_clusters_split_the_largest) {
  Pool pool(2);
  const Matrix<float> rows = blobs(200, 5, 2, 5, 1);
  Matrix<float> start(4, 5);
  for (size_t c = 0; c < 5; ++c) {
    start(0, c) = rows(0, c), start(1, c) = rows(1, c);
    start(2, c) = start(3, c) = 1e6f;  // nobody is near
  }
  const KMeans result = kmeans(rows, {.clusters = 4, .initial = start}, pool);
  EXPECT_EQ(std::set<uint32_t>(result.assignment.begin(), result.assignment.end()).size(), 4u);
}

// Written once more, plainly: Lloyd's iteration from given centres, where a centre without rows
// stays.
std::vector<std::vector<double>> plain(View<const float> rows, View<const float> start,
                                       Metric metric, size_t iterations) {
  std::vector<std::vector<double>> centres;
  for (size_t j = 0; j < start.rows; ++j)
    centres.emplace_back(start.row(j), start.row(j) + start.cols);
  const auto key = [&](const float* x, const std::vector<double>& y) {
    double product = 0, length = 0, square = 0;
    for (size_t c = 0; c < y.size(); ++c)
      product += x[c] * y[c], length += y[c] * y[c], square += (x[c] - y[c]) * (x[c] - y[c]);
    if (metric == Metric::euclidean) return square;
    return metric == Metric::cosine ? -product / std::sqrt(length) : -product;
  };
  for (size_t turn = 0; turn < iterations; ++turn) {
    std::vector<std::vector<double>> sum(centres.size(), std::vector<double>(rows.cols));
    std::vector<double> count(centres.size());
    for (size_t i = 0; i < rows.rows; ++i) {
      size_t best = 0;
      for (size_t j = 1; j < centres.size(); ++j)
        if (key(rows.row(i), centres[j]) < key(rows.row(i), centres[best])) best = j;
      count[best] += 1;
      for (size_t c = 0; c < rows.cols; ++c) sum[best][c] += rows(i, c);
    }
    for (size_t j = 0; j < centres.size(); ++j)
      for (size_t c = 0; c < rows.cols && count[j] > 0; ++c) centres[j][c] = sum[j][c] / count[j];
  }
  return centres;
}

TEST(KMeans, clusters_by_every_metric_from_given_centres) {
  Pool one(1), three(3);
  const Matrix<float> rows = blobs(300, 8, 5, 9, 4);
  const std::vector<uint32_t> order = TorchRandom(3).permutation(300);
  const Matrix<float> start = gather(rows, std::vector<size_t>(order.begin(), order.begin() + 12));
  for (const Metric metric : {Metric::euclidean, Metric::inner_product, Metric::cosine})
    for (const size_t iterations : {0u, 1u, 6u}) {
      SCOPED_TRACE(std::string(to_string(metric)) + " " + std::to_string(iterations));
      const KMeansOptions options{.clusters = 12,
                                  .iterations = iterations,
                                  .rows_per_cluster = 0,
                                  .initial = start,
                                  .metric = metric,
                                  .empty = EmptyClusters::keep};
      const KMeans found = kmeans(rows, options, one), again = kmeans(rows, options, three);
      const auto expected = plain(rows, start, metric, iterations);
      for (size_t j = 0; j < 12; ++j)
        for (size_t c = 0; c < 8; ++c) EXPECT_NEAR(found.centres(j, c), expected[j][c], 1e-5);
      EXPECT_TRUE(
          std::equal(found.centres.data(), found.centres.data() + 12 * 8, again.centres.data()));
      EXPECT_EQ(found.assignment, assign_to_centres(rows, found.centres, three, metric));
      EXPECT_EQ(found.assignment, again.assignment);
      const search::ExactKey key(metric, 8);
      double inertia = 0;
      for (size_t i = 0; i < 300; ++i)
        inertia += key(rows.row(i), found.centres.row(found.assignment[i]));
      EXPECT_NEAR(found.inertia, inertia, 1e-9 * std::fabs(inertia));
    }
}

TEST(KMeans, samples_by_every_metric) {
  Pool pool(2);
  const Matrix<float> rows = blobs(1000, 6, 4, 10, 3);
  for (const Metric metric : {Metric::inner_product, Metric::cosine}) {
    const KMeans found =
        kmeans(rows, {.clusters = 4, .rows_per_cluster = 50, .metric = metric}, pool);
    EXPECT_EQ(found.trained_rows, 200u);
    EXPECT_EQ(found.assignment, assign_to_centres(rows, found.centres, pool, metric));
    EXPECT_NE(found.assignment, assign_to_centres(rows, found.centres, pool));
  }
}

TEST(KMeans, an_empty_cluster_may_keep_its_centre) {
  Pool pool(1);
  Matrix<float> rows(3, 2), start(2, 2);
  rows(0, 0) = 1, rows(1, 0) = 0.5f, rows(2, 0) = 0.75f, rows(2, 1) = 0.25f;
  start(0, 0) = 0.5f, start(1, 0) = 1;
  KMeansOptions options{.clusters = 2,
                        .iterations = 4,
                        .initial = start,
                        .metric = Metric::inner_product,
                        .empty = EmptyClusters::keep};
  const KMeans kept = kmeans(rows, options, pool);
  EXPECT_EQ(kept.centres(0, 0), 0.5f) << "every row has the larger product with the longer centre";
  EXPECT_EQ(kept.centres(1, 0), 0.75f);
  options.empty = EmptyClusters::split;
  EXPECT_NE(kmeans(rows, options, pool).centres(0, 0), 0.5f);
}

// Fewer distinct rows than clusters: a split changes nothing, and the centres end on the rows.
TEST(KMeans, a_split_to_no_avail_is_undone) {
  Pool pool(2);
  Matrix<float> rows(30, 2), start(4, 2);
  for (size_t i = 0; i < 30; ++i) rows(i, 0) = float(i % 3) + 1, rows(i, 1) = 5 - 2 * float(i % 3);
  for (size_t j = 0; j < 4; ++j) std::copy_n(rows.row(j % 3), 2, start.row(j));
  for (const size_t iterations : {1u, 2u, 25u}) {
    const KMeans result =
        kmeans(rows, {.clusters = 4, .iterations = iterations, .initial = start}, pool);
    EXPECT_EQ(result.inertia, 0) << iterations;
    EXPECT_EQ(result.assignment, assign_to_centres(rows, result.centres, pool));
  }
}

TEST(KMeans, equal_distances_go_to_the_smaller_centre) {
  Pool pool(1);
  Matrix<float> rows(3, 1), centres(3, 1);
  rows(0, 0) = -1, rows(1, 0) = 0, rows(2, 0) = 4;
  centres(0, 0) = 1, centres(1, 0) = -1, centres(2, 0) = 1;
  const std::vector<uint32_t> nearest = assign_to_centres(rows, centres, pool);
  EXPECT_EQ(nearest, (std::vector<uint32_t>{1, 0, 0}));
}

TEST(KMeans, refuses_what_it_cannot_cluster) {
  Pool pool(2);
  Matrix<float> rows = blobs(10, 3, 2, 6, 1);
  EXPECT_THROW(kmeans(rows, {.clusters = 0}, pool), Error);
  EXPECT_THROW(kmeans(rows, {.clusters = 11}, pool), Error);
  EXPECT_NO_THROW(kmeans(rows, {.clusters = 10}, pool));
  EXPECT_THROW(kmeans(rows, {.clusters = 2, .initial = rows}, pool), Error);
  rows(4, 1) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(kmeans(rows, {.clusters = 2}, pool), Error);
}

}  // namespace
}  // namespace fungi
