// SPDX-License-Identifier: Apache-2.0
// The exact search against brute force in f64, for every scan, block size and thread count, on kind
// and hostile data.
#include "fungi/search/knn.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "fungi/base/random.h"
#include "fungi/search/scan.h"
#include "tests/support/true_key.h"

namespace fungi {
namespace {

using test::true_key;

Matrix<float> gaussian(size_t rows, size_t cols, uint64_t seed, double mean = 0, double scale = 1) {
  Matrix<float> m(rows, cols);
  const RandomStream random(seed, "knn test");
  for (size_t i = 0; i < rows; ++i)
    for (size_t c = 0; c < cols; ++c) m(i, c) = float(mean + scale * random.normal(i * cols + c));
  return m;
}

void expect_brute_force(View<const float> database, View<const float> queries, size_t k,
                        const Neighbours& found, Metric metric, bool skip_same = false) {
  ASSERT_EQ(found.index.rows(), queries.rows);
  ASSERT_EQ(found.index.cols(), k);
  for (size_t i = 0; i < queries.rows; ++i) {
    std::vector<std::pair<double, uint32_t>> all;
    for (size_t j = 0; j < database.rows; ++j)
      if (!skip_same || i != j)
        all.emplace_back(double(true_key(metric, database.cols, queries.row(i), database.row(j))),
                         uint32_t(j));
    std::sort(all.begin(), all.end());
    for (size_t b = 0; b < k; ++b) {
      // Where two true keys differ by less than f64 sums resolve, either row may stand here.
      const double got =
          double(true_key(metric, database.cols, queries.row(i), database.row(found.index(i, b))));
      EXPECT_NEAR(got, all[b].first, 1e-12 * std::fabs(all[b].first))
          << "query " << i << " rank " << b;
      const double value = metric == Metric::euclidean ? std::sqrt(got) : -got;
      EXPECT_NEAR(found.value(i, b), value, 1e-12 * std::fabs(value) + 1e-300);
    }
  }
}

bool same(const Neighbours& a, const Neighbours& b) {
  const size_t count = a.index.rows() * a.index.cols();
  return a.index.rows() == b.index.rows() && a.index.cols() == b.index.cols() &&
         std::equal(a.index.data(), a.index.data() + count, b.index.data()) &&
         std::equal(a.value.data(), a.value.data() + count, b.value.data());
}

const ScanKind kScans[] = {ScanKind::f32, ScanKind::bf16, ScanKind::bytes};
const char* to_string(ScanKind kind) {
  return kind == ScanKind::f32 ? "f32" : kind == ScanKind::bf16 ? "bf16" : "bytes";
}
const Metric kMetrics[] = {Metric::euclidean, Metric::inner_product, Metric::cosine};

TEST(Knn, equals_brute_force_for_every_scan_and_metric) {
  Pool pool(2);
  for (size_t d : {1u, 3u, 8u, 17u, 64u, 130u}) {
    const Matrix<float> database = gaussian(701, d, 1), queries = gaussian(37, d, 2);
    for (Metric metric : kMetrics)
      for (ScanKind scan : kScans) {
        SCOPED_TRACE(std::string(to_string(metric)) + " " + to_string(scan) + " d " +
                     std::to_string(d));
        const Neighbours found = knn(database, queries, 9, pool, {.metric = metric, .scan = scan});
        expect_brute_force(database, queries, 9, found, metric);
      }
  }
}

TEST(Knn, same_bytes_for_any_block_thread_count_and_scan) {
  Pool one(1), two(2), three(3);
  const Matrix<float> database = gaussian(1500, 48, 3), queries = gaussian(205, 48, 4);
  for (Metric metric : kMetrics) {
    const Neighbours expected = knn(database, queries, 20, one, {.metric = metric});
    for (ScanKind scan : kScans)
      for (size_t block : {64u, 1000u, 9999u})
        for (Pool* pool : {&one, &two, &three}) {
          const Neighbours found = knn(
              database, queries, 20, *pool,
              {.metric = metric, .scan = scan, .query_block = block / 2, .database_block = block});
          EXPECT_TRUE(same(found, expected)) << to_string(metric) << to_string(scan) << block;
        }
  }
}

TEST(Knn, few_queries_take_another_road_to_the_same_bytes) {
  Pool pool(2);
  const Matrix<float> database = gaussian(9000, 40, 5), queries = gaussian(5, 40, 6);
  for (Metric metric : kMetrics)
    EXPECT_TRUE(same(knn(database, queries, 7, pool, {.metric = metric}),
                     knn(database, queries, 7, pool, {.metric = metric, .scan = ScanKind::f32})));
}

TEST(Knn, equal_distances_go_to_the_smaller_row) {
  Pool pool(2);
  Matrix<float> database(600, 4), queries(20, 4);
  for (size_t i = 0; i < 600; ++i)  // a grid with every point repeated
    for (size_t c = 0; c < 4; ++c) database(i, c) = float((i / 3 >> (2 * c)) & 3);
  for (size_t i = 0; i < 20; ++i)
    for (size_t c = 0; c < 4; ++c) queries(i, c) = float((i + c) % 4);
  for (ScanKind scan : kScans) {
    const Neighbours found = knn(database, queries, 30, pool, {.scan = scan});
    for (size_t i = 0; i < 20; ++i)
      for (size_t b = 1; b < 30; ++b) {
        EXPECT_GE(found.value(i, b), found.value(i, b - 1));
        if (found.value(i, b) == found.value(i, b - 1)) {
          EXPECT_GT(found.index(i, b), found.index(i, b - 1));
        }
      }
    // The last tie is cut at the smallest rows: no unreported row has a smaller (distance, row).
    for (size_t i = 0; i < 20; ++i) {
      std::vector<bool> reported(600, false);
      for (size_t b = 0; b < 30; ++b) reported[found.index(i, b)] = true;
      for (size_t j = 0; j < 600; ++j) {
        const double key = double(true_key(Metric::euclidean, 4, queries.row(i), database.row(j)));
        const double worst = found.value(i, 29) * found.value(i, 29);
        if (!reported[j]) {
          EXPECT_TRUE(key > worst - 1e-9 && (key > worst + 1e-9 || j > found.index(i, 29)));
        }
      }
    }
  }
}

TEST(Knn, hostile_magnitudes) {
  Pool pool(2);
  struct Case {
    const char* name;
    double mean, scale;
  };
  for (const Case& c :
       {Case{"large offset", 1e4, 1.0}, Case{"huge", 0, 1e18}, Case{"tiny", 0, 1e-20},
        Case{"denormal", 0, 1e-40}, Case{"near overflow", 0, 5e37}})
    for (ScanKind scan : kScans)
      for (Metric metric : {Metric::euclidean, Metric::cosine}) {
        SCOPED_TRACE(std::string(c.name) + " " + to_string(scan) + " " + to_string(metric));
        const Matrix<float> database = gaussian(300, 24, 7, c.mean, c.scale);
        const Matrix<float> queries = gaussian(13, 24, 8, c.mean, c.scale);
        const Neighbours found = knn(database, queries, 5, pool, {.metric = metric, .scan = scan});
        if (std::string(c.name) != "large offset" || metric == Metric::euclidean)
          expect_brute_force(database, queries, 5, found, metric);
      }
}

TEST(Knn, mixed_magnitudes_zero_rows_and_outliers) {
  Pool pool(2);
  Matrix<float> database = gaussian(400, 32, 9), queries = gaussian(30, 32, 10);
  for (size_t i = 0; i < 400; ++i) {
    const float scale = i % 7 == 0 ? 1e-30f : i % 11 == 0 ? 1e20f : i % 13 == 0 ? 0.0f : 1.0f;
    for (size_t c = 0; c < 32; ++c) database(i, c) *= scale;
    database(i, i % 32) *= 1000.0f;  // one dominating number spoils the codes of its row
  }
  for (size_t c = 0; c < 32; ++c)
    queries(0, c) = 0, queries(1, c) *= 1e-25f, queries(2, c) *= 1e25f;
  for (Metric metric : kMetrics) {
    const Neighbours f32 =
        knn(database, queries, 12, pool, {.metric = metric, .scan = ScanKind::f32});
    expect_brute_force(database, queries, 12, f32, metric);
    for (ScanKind scan : kScans)
      EXPECT_TRUE(same(f32, knn(database, queries, 12, pool, {.metric = metric, .scan = scan})));
  }
}

TEST(Knn, codes_at_their_limits) {
  Pool pool(2);
  Matrix<float> database = gaussian(500, 96, 20), queries = gaussian(29, 96, 21);
  for (Matrix<float>* m : {&database, &queries})  // every code is ±127, many rows all of one sign
    for (size_t i = 0; i < m->rows(); ++i)
      for (size_t c = 0; c < 96; ++c)
        (*m)(i, c) = i % 3 == 0 ? 1.0f + float(i) * 1e-3f : (*m)(i, c) < 0 ? -1.0f : 1.0f;
  for (Metric metric : kMetrics)
    for (ScanKind scan : kScans) {
      SCOPED_TRACE(std::string(to_string(metric)) + " " + to_string(scan));
      const Neighbours found = knn(database, queries, 8, pool, {.metric = metric, .scan = scan});
      expect_brute_force(database, queries, 8, found, metric);
    }
}

TEST(Knn, rows_too_wide_for_sums_of_bytes) {
  Pool pool(2);
  const size_t width = search::kWidestCodes + 1;
  Matrix<float> database(20, width), queries(13, width);
  for (size_t i = 0; i < 20; ++i) std::fill_n(database.row(i), width, 1.0f + float(i));
  for (size_t i = 0; i < 13; ++i) std::fill_n(queries.row(i), width, 1.0f + float(i));
  const Neighbours found =
      knn(database, queries, 1, pool, {.metric = Metric::inner_product, .scan = ScanKind::bytes});
  for (size_t i = 0; i < 13; ++i) EXPECT_EQ(found.index(i, 0), 19u);
}

TEST(Knn, identical_rows_and_no_pruning_at_all) {
  Pool pool(2);
  Matrix<float> database(500, 16), queries(20, 16);
  for (size_t i = 0; i < 500; ++i)
    for (size_t c = 0; c < 16; ++c) database(i, c) = 0.1f * float(c);
  for (ScanKind scan : kScans) {
    const Neighbours found = knn(database, queries, 6, pool, {.scan = scan, .database_block = 100});
    for (size_t i = 0; i < 20; ++i)
      for (size_t b = 0; b < 6; ++b) EXPECT_EQ(found.index(i, b), b);
  }
}

TEST(Knn, a_scan_that_cannot_exclude_gives_way_to_a_finer_one) {
  Pool pool(2);
  // One column dwarfs the others and is the same for all: bytes resolve nothing else. Cosine does
  // not centre it away.
  Matrix<float> database = gaussian(3000, 32, 11), queries = gaussian(64, 32, 12);
  for (size_t i = 0; i < 3000; ++i) database(i, 0) = 300;
  for (size_t i = 0; i < 64; ++i) queries(i, 0) = 300;
  KnnWork switching, stubborn;
  const KnnOptions options{.metric = Metric::cosine, .database_block = 500};
  KnnOptions bytes = options;
  bytes.scan = ScanKind::bytes;
  const Neighbours a = knn(database, queries, 5, pool, options, &switching);
  const Neighbours b = knn(database, queries, 5, pool, bytes, &stubborn);
  EXPECT_TRUE(same(a, b));
  EXPECT_LE(switching.exact, stubborn.exact);
  EXPECT_GT(stubborn.exact, stubborn.pairs / 10);
}

TEST(Knn, the_scan_excludes_nearly_everything_on_ordinary_data) {
  Pool pool(2);
  const Matrix<float> database = gaussian(8000, 256, 13), queries = gaussian(60, 256, 14);
  for (ScanKind scan : kScans) {
    KnnWork work;
    knn(database, queries, 10, pool, {.scan = scan}, &work);
    EXPECT_EQ(work.pairs, 8000u * 60u);
    EXPECT_LT(double(work.exact), 0.05 * double(work.pairs)) << to_string(scan);
  }
}

TEST(Knn, a_row_can_be_kept_from_finding_itself) {
  Pool pool(2);
  const Matrix<float> rows = gaussian(300, 20, 15);
  for (ScanKind scan : kScans) {
    const Neighbours found =
        knn(rows, rows, 4, pool, {.scan = scan, .skip_same_row = true, .query_block = 120});
    expect_brute_force(rows, rows, 4, found, Metric::euclidean, true);
  }
  const Neighbours all =
      knn(rows.view().slice(0, 5), rows.view().slice(0, 5), 4, pool, {.skip_same_row = true});
  EXPECT_NE(all.index(0, 0), 0u);
  EXPECT_THROW(
      knn(rows.view().slice(0, 5), rows.view().slice(0, 5), 5, pool, {.skip_same_row = true}),
      Error);
}

TEST(Knn, strided_views) {
  Pool pool(2);
  Matrix<float> wide = gaussian(200, 50, 16), queries = gaussian(14, 50, 17);
  const View<const float> a(wide.data() + 3, 200, 33, 50), b(queries.data() + 3, 14, 33, 50);
  for (ScanKind scan : kScans)
    expect_brute_force(a, b, 3, knn(a, b, 3, pool, {.scan = scan}), Metric::euclidean);
}

TEST(Knn, refuses_what_it_cannot_answer) {
  Pool pool(2);
  const Matrix<float> database = gaussian(30, 8, 18), queries = gaussian(20, 8, 19);
  EXPECT_THROW(knn(database, queries, 0, pool), Error);
  EXPECT_THROW(knn(database, queries, 31, pool), Error);
  EXPECT_NO_THROW(knn(database, queries, 30, pool));
  EXPECT_THROW(knn(database, gaussian(2, 9, 1), 1, pool), Error);
  EXPECT_THROW(knn(Matrix<float>(), queries, 1, pool), Error);
  EXPECT_EQ(knn(database, Matrix<float>(0, 8), 3, pool).index.rows(), 0u);
  for (float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    for (size_t count : {3u, 20u}) {
      Matrix<float> broken = database.copy();
      broken(17, 5) = bad;
      try {
        knn(broken, queries.view().slice(0, count), 2, pool);
        FAIL() << "accepted " << bad;
      } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("row 17"), std::string::npos) << e.what();
        EXPECT_EQ(e.place(), "database");
      }
      Matrix<float> broken_queries = queries.copy();
      broken_queries(2, 0) = bad;
      EXPECT_THROW(knn(database, broken_queries.view().slice(0, count), 2, pool), Error);
    }
}

// One query that asks for the whole database: memory grows with the rows, not with their square.
TEST(Knn, many_neighbours_of_few_queries_take_little_memory) {
  const auto peak = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;  // kilobytes
  };
  Pool pool(2);
  const size_t n = 500000;
  Matrix<float> rows(n, 1), query(1, 1);
  for (size_t i = 0; i < n; ++i) rows(i, 0) = float((i * 7919) % n);
  const auto before = peak();
  const Neighbours found = knn(rows, query, n, pool);
  EXPECT_LT(peak() - before, 200 * 1024) << "kilobytes more";
  for (size_t b = 0; b < n; ++b) ASSERT_EQ(found.value(0, b), double(b));
}

}  // namespace
}  // namespace fungi
