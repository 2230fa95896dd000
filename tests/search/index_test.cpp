// SPDX-License-Identifier: Apache-2.0
// Every kind of index: built, saved, opened, searched; what it reports is exact and ordered, and
// recall says the rest.
#include "fungi/search/index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "fungi/base/random.h"
#include "fungi/checkpoint/npy.h"
#include "fungi/search/knn.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

// Rows with structure, as features have: a graph and lists find neighbours in it.
Matrix<float> clustered(size_t rows, size_t cols, uint64_t seed) {
  Matrix<float> m(rows, cols);
  const RandomStream centre(7, "index centres"), noise(seed, "index noise");
  for (size_t i = 0; i < rows; ++i)
    for (size_t c = 0; c < cols; ++c)
      m(i, c) = float(centre.normal(noise.bits(1000000 + i) % 30 * cols + c) +
                      0.4 * noise.normal(i * cols + c));
  return m;
}

bool same(const Neighbours& a, const Neighbours& b) {
  const size_t count = a.index.rows() * a.index.cols();
  return std::equal(a.index.data(), a.index.data() + count, b.index.data()) &&
         std::equal(a.value.data(), a.value.data() + count, b.value.data());
}

double recall_against_exact(const Index& index, View<const float> rows, View<const float> queries,
                            size_t k, Pool& pool, const SearchOptions& options = {}) {
  return recall(index.search(queries, k, pool, options),
                knn(rows, queries, k, pool, {.metric = index.metric()}));
}

class IndexTest : public testing::Test {
 protected:
  const test::TemporaryFolder place_;
  const std::filesystem::path folder_ = place_ / "index";
};

TEST_F(IndexTest, every_kind_and_metric_survives_saving_and_finds_neighbours) {
  Pool one(1), two(2);
  const Matrix<float> rows = clustered(1500, 24, 1), queries = clustered(40, 24, 2);
  for (IndexKind kind : {IndexKind::exact, IndexKind::ivf, IndexKind::hnsw})
    for (Metric metric : {Metric::euclidean, Metric::inner_product, Metric::cosine}) {
      SCOPED_TRACE(std::string(to_string(kind)) + " " + to_string(metric));
      const Index built = Index::build(rows, {.kind = kind, .metric = metric}, two);
      built.save(folder_);
      const Index opened = Index::open(folder_);
      EXPECT_EQ(opened.kind(), kind);
      EXPECT_EQ(opened.metric(), metric);
      EXPECT_EQ(opened.rows(), 1500u);
      EXPECT_EQ(opened.width(), 24u);
      const Neighbours found = built.search(queries, 10, two),
                       again = opened.search(queries, 10, one);
      EXPECT_TRUE(same(found, again));
      const double share = recall_against_exact(opened, rows, queries, 10, two);
      if (kind == IndexKind::exact)
        EXPECT_EQ(share, 1);
      else
        EXPECT_GT(share, metric == Metric::inner_product ? 0.7 : 0.9);
      // Values are exact and ordered, whatever was missed.
      const Neighbours all = knn(rows, queries, 1500, two, {.metric = metric});
      for (size_t i = 0; i < 40; ++i)
        for (size_t b = 0; b < 10; ++b) {
          const auto at = std::find(all.index.row(i), all.index.row(i) + 1500, found.index(i, b)) -
                          all.index.row(i);
          ASSERT_LT(at, 1500);
          EXPECT_EQ(found.value(i, b), all.value(i, size_t(at)));
          if (b > 0) {
            EXPECT_TRUE(metric == Metric::euclidean ? found.value(i, b) >= found.value(i, b - 1)
                                                    : found.value(i, b) <= found.value(i, b - 1));
          }
        }
    }
}

TEST_F(IndexTest, building_twice_gives_the_same_files) {
  const Matrix<float> rows = clustered(600, 16, 3);
  for (IndexKind kind : {IndexKind::ivf, IndexKind::hnsw}) {
    for (unsigned threads : {1u, 3u}) {
      Pool pool(threads);
      Index::build(rows, {.kind = kind}, pool).save(folder_ / std::to_string(threads));
    }
    EXPECT_EQ(test::contents(folder_ / "1"), test::contents(folder_ / "3"));
    std::filesystem::remove_all(folder_);
  }
}

TEST_F(IndexTest, all_lists_or_much_effort_find_everything) {
  Pool pool(2);
  const Matrix<float> rows = clustered(700, 12, 4), queries = clustered(60, 12, 5);
  const Index ivf = Index::build(rows, {.kind = IndexKind::ivf, .lists = 50}, pool);
  EXPECT_EQ(recall_against_exact(ivf, rows, queries, 40, pool, {.probes = 50}), 1);
  EXPECT_LT(recall_against_exact(ivf, rows, queries, 40, pool, {.probes = 1}), 1);
  const Index hnsw = Index::build(rows, {.kind = IndexKind::hnsw}, pool);
  EXPECT_GT(recall_against_exact(hnsw, rows, queries, 9, pool, {.effort = 700}), 0.999);
}

TEST_F(IndexTest, a_graph_is_as_good_as_its_links_and_efforts) {
  Pool pool(2);
  Matrix<float> rows(1200, 16);  // without structure: the graph has a hard time
  const RandomStream random(8, "index efforts");
  for (size_t i = 0; i < 1200 * 16; ++i) rows.data()[i] = float(random.normal(i));
  const View<const float> queries = rows.view().slice(0, 60);
  const auto graph = [&](size_t links, size_t build_effort) {
    return Index::build(
        rows, {.kind = IndexKind::hnsw, .links = links, .build_effort = build_effort}, pool);
  };
  const auto found = [&](const Index& index, size_t effort) {
    return recall_against_exact(index, rows, queries, 10, pool, {.effort = effort});
  };
  const Index usual = graph(5, 100);
  EXPECT_LT(found(usual, 10) + 0.05, found(usual, 300));
  EXPECT_LT(found(graph(2, 100), 30) + 0.05, found(usual, 30)) << "fewer links";
  EXPECT_LT(found(graph(5, 5), 30) + 0.05, found(usual, 30)) << "less effort in building";
  usual.save(folder_);
  EXPECT_EQ(NpyFile::open(folder_ / "links.npy").cols(), 1 + 2 * 5u);
}

TEST_F(IndexTest, lists_shorter_than_k_are_followed_by_others) {
  Pool pool(2);
  const Matrix<float> rows = clustered(60, 8, 6), queries = clustered(5, 8, 7);
  const Index ivf = Index::build(rows, {.kind = IndexKind::ivf, .lists = 30}, pool);
  EXPECT_EQ(recall_against_exact(ivf, rows, queries, 60, pool, {.probes = 1}), 1);
}

TEST_F(IndexTest, building_reports_and_can_be_ended) {
  Pool pool(2);
  const Matrix<float> rows = clustered(1000, 8, 3);
  for (const IndexKind kind : {IndexKind::hnsw, IndexKind::ivf}) {
    std::vector<size_t> done;
    size_t most = 0;
    const auto count = [&](size_t d, size_t total) { done.push_back(d), most = total; };
    const Index index = Index::build(rows, {.kind = kind, .progress = count}, pool);
    EXPECT_EQ(index.rows(), 1000u);
    EXPECT_EQ(most, kind == IndexKind::hnsw ? 1000u : 25u);
    ASSERT_GT(done.size(), 1u);
    EXPECT_EQ(done.front(), 0u);
    EXPECT_EQ(done.back(), most);
    for (size_t i = 1; i < done.size(); ++i) EXPECT_LT(done[i - 1], done[i]);

    struct Enough {};
    size_t calls = 0;
    const auto end = [&](size_t, size_t) {
      if (++calls == 2) throw Enough();
    };
    EXPECT_THROW(Index::build(rows, {.kind = kind, .progress = end}, pool), Enough);
    EXPECT_EQ(calls, 2u);
  }
}

TEST_F(IndexTest, small_sets) {
  Pool pool(2);
  const Matrix<float> rows = clustered(3, 5, 8);
  for (IndexKind kind : {IndexKind::exact, IndexKind::ivf, IndexKind::hnsw}) {
    const Index index = Index::build(rows, {.kind = kind}, pool);
    index.save(folder_);
    EXPECT_TRUE(same(Index::open(folder_).search(rows, 3, pool), knn(rows, rows, 3, pool)));
  }
}

TEST_F(IndexTest, refuses_bad_input) {
  Pool pool(2);
  Matrix<float> rows = clustered(30, 5, 9);
  const Index index = Index::build(rows, {.kind = IndexKind::ivf}, pool);
  EXPECT_THROW(index.search(clustered(2, 6, 1), 1, pool), Error);
  EXPECT_THROW(index.search(rows, 31, pool), Error);
  EXPECT_THROW(index.search(rows, 0, pool), Error);
  EXPECT_THROW(Index::build(Matrix<float>(), {}, pool), Error);
  EXPECT_THROW(Index::open(folder_), Error);
  EXPECT_THROW(parse_index_kind("tree"), Error);
  EXPECT_EQ(parse_index_kind("hnsw"), IndexKind::hnsw);
  rows(7, 2) = std::numeric_limits<float>::infinity();
  for (IndexKind kind : {IndexKind::exact, IndexKind::ivf, IndexKind::hnsw}) {
    EXPECT_THROW(Index::build(rows, {.kind = kind}, pool), Error);
    const Index good = Index::build(rows.view().slice(0, 6), {.kind = kind}, pool);
    EXPECT_THROW(good.search(rows.view().slice(7, 1), 1, pool), Error);
  }
}

TEST_F(IndexTest, refuses_broken_folders) {
  Pool pool(1);
  const Matrix<float> rows = clustered(50, 5, 10);
  const auto rebuild = [&](IndexKind kind) {
    Index::build(rows, {.kind = kind}, pool).save(folder_);
  };
  const auto text = [&](const char* content) { std::ofstream(folder_ / "index.json") << content; };
  rebuild(IndexKind::exact);
  for (const char* content :
       {"", "[]", "{}", "{\"format\": \"fungi-index\", \"version\": 1, \"kind\": 3}",
        "{\"format\": \"fungi-index\", \"version\": 9, \"kind\": \"exact\", \"metric\": "
        "\"cosine\", \"rows\": 50, "
        "\"width\": 5}",
        "{\"format\": \"fungi-index\", \"version\": 1, \"kind\": \"exact\", \"metric\": "
        "\"cosine\", \"rows\": 51, "
        "\"width\": 5}"}) {
    text(content);
    EXPECT_THROW(Index::open(folder_), Error) << content;
  }
  // Links and offsets that lead out of the arrays.
  const auto overwrite = [&](const char* file, auto change) {
    const NpyFile old = NpyFile::open(folder_ / file);
    const std::vector<size_t> shape = old.shape();
    using T = decltype(change);
    std::vector<T> values(old.view<T>().data, old.view<T>().data + old.rows() * old.cols());
    std::fill(values.begin(), values.end(), change);
    write_npy(folder_ / file, npy_array(values.data(), shape));
  };
  rebuild(IndexKind::ivf);
  overwrite("offsets.npy", int64_t{77});
  EXPECT_THROW(Index::open(folder_), Error);
  rebuild(IndexKind::ivf);
  overwrite("numbers.npy", int32_t{-4});
  EXPECT_THROW(Index::open(folder_), Error);
  for (int32_t bad : {-1, 16, 1000000}) {
    rebuild(IndexKind::hnsw);
    overwrite("links.npy", bad);
    EXPECT_THROW(Index::open(folder_).search(rows, 3, pool), Error) << bad;
  }
  rebuild(IndexKind::hnsw);
  overwrite("entry.npy", int64_t{50});
  EXPECT_THROW(Index::open(folder_).search(rows, 3, pool), Error);
  rebuild(IndexKind::hnsw);
  std::filesystem::remove(folder_ / "links.npy");
  EXPECT_THROW(Index::open(folder_), Error);
}

TEST_F(IndexTest, refuses_damaged_vectors) {
  Pool pool(2);
  const Matrix<float> rows = clustered(40, 5, 11);
  for (const Metric metric : {Metric::euclidean, Metric::inner_product, Metric::cosine})
    for (const IndexKind kind : {IndexKind::exact, IndexKind::ivf, IndexKind::hnsw})
      for (const float bad :
           {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        Index::build(rows, {.kind = kind, .metric = metric}, pool).save(folder_);
        Matrix<float> vectors = NpyFile::open(folder_ / "vectors.npy").read();
        vectors(23, 1) = bad;
        write_npy(folder_ / "vectors.npy", npy_array(vectors));
        EXPECT_THROW(Index::open(folder_).search(rows, 40, pool, {.probes = 1000, .effort = 1000}),
                     Error)
            << to_string(kind) << " " << to_string(metric) << " " << bad;
      }
}

TEST(Recall, counts_shared_rows) {
  Neighbours a{Matrix<uint32_t>(2, 2), Matrix<double>(2, 2)},
      b{Matrix<uint32_t>(2, 2), Matrix<double>(2, 2)};
  a.index(0, 0) = 1, a.index(0, 1) = 2, a.index(1, 0) = 3, a.index(1, 1) = 4;
  b.index(0, 0) = 2, b.index(0, 1) = 1, b.index(1, 0) = 5, b.index(1, 1) = 4;
  a.value(1, 0) = 0.5, a.value(1, 1) = b.value(1, 0) = b.value(1, 1) = 0.25;
  EXPECT_DOUBLE_EQ(recall(a, b), 0.75);
}

TEST(Recall, takes_rows_as_near_as_the_last_for_it) {
  Neighbours exact{Matrix<uint32_t>(1, 2), Matrix<double>(1, 2)},
      found{Matrix<uint32_t>(1, 2), Matrix<double>(1, 2)};
  exact.index(0, 0) = 1, exact.index(0, 1) = 2, found.index(0, 0) = 1, found.index(0, 1) = 3;
  exact.value(0, 1) = found.value(0, 1) = 0.5;
  EXPECT_DOUBLE_EQ(recall(found, exact), 1);
  found.value(0, 1) = 0.75;
  EXPECT_DOUBLE_EQ(recall(found, exact), 0.5);
}

// The printed recall, counted by hand from full searches.
TEST(Recall, LeavesTheRowItselfOut) {
  Pool pool(2);
  const size_t n = 600, k = 7;
  Matrix<float> rows(n, 12);
  const RandomStream random(5, "recall");
  for (size_t i = 0; i < n; ++i)
    for (size_t c = 0; c < 12; ++c)
      rows(i, c) = float(random.normal((i % 20 == 1 ? i - 1 : i) * 12 + c));  // some copies
  const Index index = Index::build(rows, {.kind = IndexKind::ivf, .lists = 60}, pool);
  const SearchOptions poor{.probes = 1};
  std::vector<size_t> queries;
  for (size_t i = 0; i < n; i += 7) queries.push_back(i);
  size_t hits = 0;
  for (size_t q : queries) {
    const Neighbours found = index.search(rows.view().slice(q, 1), k + 1, pool, poor);
    std::vector<double> distance(n), others;
    for (size_t i = 0; i < n; ++i) {
      for (size_t c = 0; c < 12; ++c)
        distance[i] += (double(rows(i, c)) - rows(q, c)) * (double(rows(i, c)) - rows(q, c));
      if (i != q) others.push_back(distance[i]);
    }
    std::sort(others.begin(), others.end());
    size_t taken = 0;
    for (size_t b = 0; b <= k && taken < k; ++b) {
      if (found.index(0, b) == q) continue;
      ++taken;
      hits += distance[found.index(0, b)] <= others[k - 1];
    }
  }
  const double share = recall_of_rows(index, rows, queries, k, pool, poor);
  EXPECT_DOUBLE_EQ(share, double(hits) / double(queries.size() * k));
  EXPECT_LT(share, 0.95) << "one list of sixty must miss some";
  EXPECT_DOUBLE_EQ(recall_of_rows(index, rows, queries, k, pool, {.probes = 60}), 1);
}

}  // namespace
}  // namespace fungi
