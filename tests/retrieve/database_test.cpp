// SPDX-License-Identifier: Apache-2.0
// A store and its indices through one face, against Store::load() and a plain search in memory.
#include "fungi/retrieve/database.h"

#include <gtest/gtest.h>

#include "fungi/base/random.h"
#include "fungi/retrieve/feature_index.h"
#include "fungi/search/knn.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"
#include "tests/support/made_store.h"

namespace fungi {
namespace {

constexpr size_t kRows = 60, kWidth = 9;  // of "embedding" (5) and "kl" (4)
constexpr IndexKind kKinds[] = {IndexKind::exact, IndexKind::ivf, IndexKind::hnsw};

class DatabaseTest : public testing::Test {
 protected:
  DatabaseTest() {
    const RandomStream random(1, "database test");
    std::vector<test::MadeRow> rows;
    for (size_t i = 0; i < kRows; ++i) {
      std::vector<std::vector<float>> blocks{std::vector<float>(5), std::vector<float>(4)};
      for (size_t c = 0; c < kWidth; ++c)
        (c < 5 ? blocks[0][c] : blocks[1][c - 5]) = float(random.normal(i * kWidth + c));
      if (i % 20 == 19) blocks = rows.back().blocks;  // copies
      rows.push_back({"row " + std::to_string(i), i % 3 ? int64_t(i % 3 - 1) : -1, blocks});
    }
    test::write_made_store(folder_ / "store", rows, {"ant", "bee"}, {"embedding", "kl"});
  }

  std::unique_ptr<Database> open(const std::string& name, const DatabaseOptions& options = {}) {
    return open_database(folder_ / name, options, pool_);
  }
  void build(const std::string& name, const FeatureIndexOptions& options) {
    FeatureIndex::build(Store::open(folder_ / "store"), options, pool_).save(folder_ / name);
  }

  const test::TemporaryFolder folder_{test::place_in_memory()};
  Pool pool_{2};
};

void expect_same(const Neighbours& found, const Neighbours& expected) {
  ASSERT_EQ(found.index.rows(), expected.index.rows());
  ASSERT_EQ(found.index.cols(), expected.index.cols());
  for (size_t i = 0; i < found.index.rows() * found.index.cols(); ++i) {
    EXPECT_EQ(found.index.data()[i], expected.index.data()[i]) << i;
    EXPECT_EQ(found.value.data()[i], expected.value.data()[i]) << i;
  }
}

TEST_F(DatabaseTest, AStoreAndItsIndicesAreOne) {
  const Store store = Store::open(folder_ / "store");
  for (const Metric metric : {Metric::euclidean, Metric::inner_product, Metric::cosine}) {
    for (const IndexKind kind : kKinds)
      build(to_string(kind),
            {.features = "kl+embedding", .index = {.kind = kind, .metric = metric}});
    for (const std::string name : {"store", "held", "exact", "coded", "ivf", "hnsw"}) {
      SCOPED_TRACE(name + " " + to_string(metric));
      DatabaseOptions of_store{.features = "kl+embedding", .metric = metric};
      if (name == "held") of_store.memory = 1 << 20;
      const bool whole = name == "store" || name == "held";
      const auto database = whole             ? open("store", of_store)
                            : name == "coded" ? open("exact", {.memory = 1 << 20})
                                              : open(name);
      const FeatureSet set = store.load("kl+embedding");
      EXPECT_EQ(database->rows(), kRows);
      EXPECT_EQ(database->metric(), metric);
      EXPECT_EQ(database->reduction().features(), "kl+embedding");
      for (size_t i = 0; i < kRows; ++i) {
        EXPECT_EQ(database->id(i), set.ids[i]);
        EXPECT_EQ(database->label(i), set.labels[i]);
        EXPECT_EQ(database->class_name(i), set.labels[i] < 0 ? "" : set.classes[set.labels[i]]);
        EXPECT_EQ(database->find(set.ids[i]), i);
        const Matrix<float> vector = database->vector(i);
        ASSERT_EQ(vector.cols(), kWidth);
        EXPECT_TRUE(std::equal(vector.data(), vector.data() + kWidth, set.features.row(i)));
      }
      EXPECT_FALSE(database->find("row"));
      EXPECT_TRUE(database->knows_id()("row 7"));
      EXPECT_FALSE(database->knows_id()("row 60"));
      for (const size_t row : {kRows, SIZE_MAX}) {
        EXPECT_ERROR("of 60", database->id(row));
        EXPECT_ERROR("of 60", database->label(row));
        EXPECT_ERROR("of 60", database->class_name(row));
        EXPECT_ERROR("of 60", database->vector(row));
        EXPECT_ERROR("of 60", database->search_rows(std::vector{row}, 1, pool_));
      }
      SearchOptions thorough;
      if (name == "ivf") thorough.probes = kRows;
      if (name == "hnsw") thorough.effort = kRows;
      expect_same(
          database->search(set.features.view().slice(0, 20), 7, pool_, thorough),
          knn(set.features, set.features.view().slice(0, 20), 7, pool_, {.metric = metric}));
      EXPECT_ERROR("k = 61", database->search(set.features, 61, pool_));
    }
  }
}

TEST_F(DatabaseTest, VectorsOfAnIndexAreThoseBehindItsPca) {
  build("index", {.pca = 3});
  const auto database = open("index");
  const FeatureSet set = Store::open(folder_ / "store").load();
  const Matrix<float> expected = Pca::fit(set.features, 3, pool_).transform(set.features, pool_);
  for (size_t i = 0; i < kRows; ++i)
    EXPECT_TRUE(std::equal(expected.row(i), expected.row(i) + 3, database->vector(i).data()));
  EXPECT_EQ(database->find("row 59"), 59u);
}

// Row 19 is a copy of row 18, which comes before it; the inner product prefers longer rows; and a
// list of an index that is looked into may not hold the row at all.
TEST_F(DatabaseTest, TheRowAskedForComesFirst) {
  const std::vector<size_t> rows{19, 3, 59, 39, 3};
  for (const Metric metric : {Metric::euclidean, Metric::inner_product, Metric::cosine}) {
    build("exact", {.features = "embedding", .index = {.metric = metric}});
    const FeatureSet set = Store::open(folder_ / "store").load("embedding");
    for (const std::string name : {"store", "exact"}) {
      const auto database =
          name == "store" ? open(name, {.features = "embedding", .metric = metric}) : open(name);
      const Neighbours found = database->search_rows(rows, 5, pool_),
                       plain = knn(set.features, gather(set.features, rows), 5, pool_,
                                   {.metric = metric});
      for (size_t q = 0; q < rows.size(); ++q) {
        EXPECT_EQ(found.index(q, 0), rows[q]);
        std::vector<uint32_t> a(found.index.row(q), found.index.row(q) + 5),
            b(plain.index.row(q), plain.index.row(q) + 5);
        EXPECT_EQ(b[0] == rows[q], q == 1 || q == 4) << "a test of something";
        std::erase(a, rows[q]), std::erase(b, rows[q]);
        EXPECT_EQ(a, b) << "the others in their order";
      }
      EXPECT_EQ(database->search_rows(rows, 1, pool_).index(0, 0), 19u)
          << "in the place of its copy";
      EXPECT_EQ(database->search_rows({}, 1, pool_).index.rows(), 0u);
    }
  }
}

TEST_F(DatabaseTest, ARowThatWasMissedTakesTheLastPlace) {
  std::vector<test::MadeRow> rows;
  for (size_t i = 0; i < 9; ++i)
    rows.push_back({std::to_string(i), -1, {{float(i + 1), i % 2 ? 0.5f : 0.0f}}});
  test::write_made_store(folder_ / "made", rows, {});
  const Store store = Store::open(folder_ / "made");
  // Rows are made unit vectors: 0, 2, 4, ... are all (1, 0), and the first five are found.
  const Neighbours found = open("made")->search_rows(std::vector<size_t>{8}, 3, pool_);
  EXPECT_EQ(std::vector<uint32_t>(found.index.row(0), found.index.row(0) + 3),
            (std::vector<uint32_t>{8, 0, 2}));
  for (size_t b = 0; b < 3; ++b) EXPECT_EQ(found.value(0, b), 0);
}

TEST_F(DatabaseTest, SettingsOfAnotherKindAreRefused) {
  for (const IndexKind kind : kKinds) build(to_string(kind), {.index = {.kind = kind}});
  const SearchOptions effort{.effort = 20}, probes{.probes = 20};
  EXPECT_NO_THROW(open("hnsw")->check(effort));
  EXPECT_NO_THROW(open("ivf")->check(probes));
  for (const std::string name : {"exact", "ivf", "hnsw"}) EXPECT_NO_THROW(open(name)->check({}));
  EXPECT_ERROR("`effort` is a setting of hnsw indices, found one of kind ivf",
               open("ivf")->check(effort));
  EXPECT_ERROR("`probes` is a setting of ivf indices", open("hnsw")->check(probes));
  EXPECT_ERROR("`probes` is a setting of ivf indices", open("exact")->check(probes));
  EXPECT_ERROR("`effort` and `probes` have nothing to set", open("store")->check(effort));
  EXPECT_ERROR("`effort` and `probes` have nothing to set", open("store")->check(probes));
  EXPECT_ERROR("`effort` and `probes` have nothing to set",
               open("store")->search_rows(std::vector<size_t>{1}, 1, pool_, probes));
  // They reach the index: one list holds less than all do.
  const Matrix<float> query = open("ivf")->vector(4);
  const Neighbours few = open("ivf")->search(query, 30, pool_, {.probes = 1}),
                   all = open("ivf")->search(query, 30, pool_, {.probes = 1000});
  EXPECT_GT(few.value(0, 29), all.value(0, 29));
}

TEST_F(DatabaseTest, OpensNothingElse) {
  build("index", {.features = "kl", .index = {.metric = Metric::cosine}});
  EXPECT_NO_THROW(open("index", {.features = "kl", .metric = Metric::cosine}));
  EXPECT_ERROR("built of kl, not of embedding", open("index", {.features = "embedding"}));
  EXPECT_ERROR("built for cosine, not for euclidean", open("index", {.metric = Metric::euclidean}));
  EXPECT_ERROR("other", open("store", {.features = "other"}));
  EXPECT_EQ(open("store")->reduction().features(), "embedding+kl");
  EXPECT_EQ(open("store")->metric(), Metric::euclidean);
  EXPECT_THROW(open("nowhere"), Error);
  std::filesystem::create_directories(folder_ / "empty");
  EXPECT_THROW(open("empty"), Error);
}

// An index whose model has moved; its rows are pictures of the demo.
TEST_F(DatabaseTest, ReopensWhatMadeTheRows) {
  const std::string golden = FUNGI_GOLDEN_DIR;
  const auto database = open_database(golden + "/retrieve/hnsw", {}, pool_);
  EXPECT_ERROR("model.safetensors", database->reopen(pool_));
  Reopened reopened =
      database->reopen(pool_, {.model = golden + "/backbone/timm_vit/model.safetensors"});
  const Reduction& reduction = database->reduction();
  const std::string id = "coat/00025.png";
  const Matrix<float> query =
      reduction.apply(reopened.rows({FUNGI_SOURCE_DIR "/demo/images/test/" + id},
                                    reduction.blocks(), database->knows_id()),
                      pool_);
  const Neighbours found = database->search(query, 2, pool_, {.effort = 60});
  EXPECT_EQ(database->id(found.index(0, 0)), id);
  EXPECT_NEAR(found.value(0, 0), 1, 1e-5);
  EXPECT_LT(found.value(0, 1), 1 - 1e-3);
}

}  // namespace
}  // namespace fungi
