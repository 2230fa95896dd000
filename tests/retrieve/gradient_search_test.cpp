// SPDX-License-Identifier: Apache-2.0
// Neighbours by whole gradients against plain double-precision rows of unit blocks, for every
// metric; independence of blocks and threads; and what ever wider projections tend to.
#include "fungi/retrieve/gradient_search.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "fungi/checkpoint/npy.h"
#include "fungi/feature/kept_factors.h"
#include "fungi/search/knn.h"
#include "tests/support/factor_store.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

using test::kGradients;
using test::limit_row;
using test::made_sample;

struct Stores {
  Stores() {
    test::write_factor_store(folder / "database", 40, 1);
    test::write_factor_store(folder / "queries", 17, 2);
  }
  test::TemporaryFolder folder;
  Store database() const { return Store::open(folder / "database"); }
  Store queries() const { return Store::open(folder / "queries"); }
};

double plain_key(Metric metric, const std::vector<double>& x, const std::vector<double>& y) {
  if (metric == Metric::euclidean) {
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
    return sum;
  }
  if (metric == Metric::inner_product) return -test::dot(x, y);
  const double length = std::sqrt(test::dot(x, x) * test::dot(y, y));
  return length > 0 ? -test::dot(x, y) / length : 0;
}

TEST(GradientSearch, KeysAreThoseOfUnitBlocksSideBySide) {
  const Stores stores;
  const Store database = stores.database(), queries = stores.queries();
  Pool pool(2);
  struct Case {
    const char* features;
    bool embedding;
    std::vector<size_t> gradients;
  };
  for (const Case& c : {Case{"embedding", true, {}},
                        {"kl", false, {0}},
                        {"embedding+kl+dino+simclr", true, {0, 1, 2}},
                        {"simclr+dino", false, {2, 1}}}) {
    for (const Metric metric : {Metric::euclidean, Metric::inner_product, Metric::cosine}) {
      const GradientSearch search(database, queries, c.features, pool, {.metric = metric});
      EXPECT_EQ(search.columns(), (c.embedding ? test::kEmbedding : 0) +
                                      c.gradients.size() * test::kOutputs * (test::kInputs + 1));
      Matrix<double> keys(17, 40);
      search.keys(0, keys, pool);
      const Neighbours neighbours = search.knn(5, pool);
      for (size_t i = 0; i < 17; ++i) {
        const std::vector<double> x = limit_row(made_sample(2, i), c.embedding, c.gradients);
        std::vector<std::pair<double, uint32_t>> sorted;
        for (size_t j = 0; j < 40; ++j) {
          EXPECT_NEAR(keys(i, j),
                      plain_key(metric, x, limit_row(made_sample(1, j), c.embedding, c.gradients)),
                      4e-6)
              << c.features << " " << to_string(metric);
          sorted.push_back({keys(i, j), uint32_t(j)});
        }
        std::sort(sorted.begin(), sorted.end());
        for (size_t b = 0; b < 5; ++b) {
          EXPECT_EQ(neighbours.index(i, b), sorted[b].second);
          EXPECT_EQ(neighbours.value(i, b), metric == Metric::euclidean ? std::sqrt(sorted[b].first)
                                                                        : 0.0 - sorted[b].first);
        }
      }
    }
  }
}

// The weight of a block stands in the manifest: the rows are as they were.
void weigh(const std::filesystem::path& store, const std::string& block, double weight) {
  const std::filesystem::path file = store / "manifest.json";
  StoreManifest manifest = parse_manifest(test::read_file(file), file.string());
  for (StoreBlock& b : manifest.spec.blocks)
    if (b.name == block) b.weight = weight;
  std::ofstream(file) << to_json(manifest);
}

TEST(GradientSearch, AWeightIsTheLengthOfItsBlock) {
  const Stores stores;
  for (const char* store : {"database", "queries"}) weigh(stores.folder / store, "dino", 0.25);
  const Store database = stores.database(), queries = stores.queries();
  Pool pool(2);
  for (const Metric metric : {Metric::euclidean, Metric::inner_product, Metric::cosine}) {
    const GradientSearch search(database, queries, "embedding+kl+dino", pool, {.metric = metric});
    Matrix<double> keys(17, 40);
    search.keys(0, keys, pool);
    const auto row = [](uint64_t seed, size_t i) {
      std::vector<double> joined = limit_row(made_sample(seed, i), true, {0});
      for (const double x : limit_row(made_sample(seed, i), false, {1})) joined.push_back(x / 4);
      return joined;
    };
    for (size_t i = 0; i < 17; ++i)
      for (size_t j = 0; j < 40; ++j)
        EXPECT_NEAR(keys(i, j), plain_key(metric, row(2, i), row(1, j)), 4e-6) << to_string(metric);
  }
}

TEST(GradientSearch, EmbeddingsAloneAreSearchedAsEver) {
  const Stores stores;
  const Store database = stores.database(), queries = stores.queries();
  Pool pool(2);
  const Neighbours exact = GradientSearch(database, queries, "embedding", pool).knn(7, pool);
  const Neighbours plain =
      knn(database.load("embedding").features, queries.load("embedding").features, 7, pool);
  EXPECT_TRUE(std::equal(exact.index.data(), exact.index.data() + 17 * 7, plain.index.data()));
  EXPECT_TRUE(std::equal(exact.value.data(), exact.value.data() + 17 * 7, plain.value.data()));
}

TEST(GradientSearch, NoBlockNoThreadAndNoCompanyChangesABit) {
  const Stores stores;
  const Store database = stores.database(), queries = stores.queries();
  Pool one(1), three(3);
  const std::string features = "embedding+kl+dino+simclr";
  Matrix<double> whole(17, 40), parts(17, 40);
  GradientSearch(database, queries, features, one).keys(0, whole, one);
  const GradientSearch small(database, queries, features, three, {.block_bytes = 3000});
  small.keys(0, parts.view().slice(0, 4), three);
  small.keys(4, parts.view().slice(4, 13), three);
  EXPECT_TRUE(std::equal(whole.data(), whole.data() + 17 * 40, parts.data()));
  const std::vector<size_t> some = {3, 8, 9, 31, 39};
  Matrix<double> subset(17, 5);
  GradientSearch(database, queries, features, three, {.database_rows = some})
      .keys(0, subset, three);
  for (size_t i = 0; i < 17; ++i)
    for (size_t j = 0; j < 5; ++j) EXPECT_EQ(subset(i, j), whole(i, some[j]));
}

TEST(GradientSearch, ARowHasDistanceZeroToItself) {
  const Stores stores;
  const Store database = stores.database();
  Pool pool(2);
  const Neighbours self =
      GradientSearch(database, database, "embedding+kl+dino+simclr", pool).knn(1, pool);
  const Neighbours cosine =
      GradientSearch(database, database, "dino", pool, {.metric = Metric::cosine}).knn(1, pool);
  for (size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(self.index(i, 0), i);
    EXPECT_EQ(self.value(i, 0), 0);
    EXPECT_EQ(cosine.index(i, 0), i);
    EXPECT_EQ(cosine.value(i, 0), 1);
  }
}

// With r rows a projected cosine scatters by about 1/√r around the exact one: four times the rows,
// half the error.
TEST(GradientSearch, WiderProjectionsComeNearer) {
  const Stores stores;
  const Store database = stores.database(), queries = stores.queries();
  Pool pool(2);
  Matrix<double> exact(17, 40);
  GradientSearch(database, queries, "dino", pool, {.metric = Metric::inner_product})
      .keys(0, exact, pool);
  const auto project = [&](const Store& store, size_t rows) {
    const KeptFactors kept(store, "dino");
    std::vector<size_t> all(store.rows());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    const FactorRows factors = kept.read(all);
    ProjectionOptions options;
    options.rows = rows;
    Matrix<float> y(all.size(), rows);
    Projection::make(std::move(options), kept.layer())->project(factors.samples, y, pool);
    for (size_t i = 0; i < all.size(); ++i) normalise({y.row(i), rows});
    return y;
  };
  for (const size_t rows : {size_t{256}, size_t{4096}, size_t{65536}}) {
    const Matrix<float> x = project(queries, rows), y = project(database, rows);
    double square = 0;
    for (size_t i = 0; i < 17; ++i)
      for (size_t j = 0; j < 40; ++j) {
        double cosine = 0;
        for (size_t r = 0; r < rows; ++r) cosine += double(x(i, r)) * y(j, r);
        square += (cosine + exact(i, j)) * (cosine + exact(i, j));
      }
    const double error = std::sqrt(square / (17 * 40)) * std::sqrt(double(rows));
    EXPECT_GT(error, 0.4) << rows;
    EXPECT_LT(error, 1.6) << rows;
  }
}

TEST(GradientSearch, SaysWhatIsMissing) {
  const test::TemporaryFolder folder;
  test::write_factor_store(folder / "good", 5, 1);
  test::write_factor_store(folder / "half", 5, 1, StoreType::float16);
  Pool pool(1);
  const Store good = Store::open(folder / "good"), half = Store::open(folder / "half");
  EXPECT_THROW(GradientSearch(good, good, "embedding+nothing", pool), Error);
  EXPECT_THROW(GradientSearch(good, good, "kl_factors_b", pool), Error)
      << "factors are no features";
  EXPECT_THROW(GradientSearch(half, good, "kl", pool), Error);
  EXPECT_THROW(GradientSearch(good, half, "kl", pool), Error);
  const GradientSearch search(good, good, "kl", pool);
  EXPECT_THROW(search.knn(0, pool), Error);
  EXPECT_THROW(search.knn(6, pool), Error);
}

TEST(GradientSearch, NamesTheRowThatIsNotFinite) {
  const Stores stores;
  Pool pool(2);
  // Row 8 is the second of the second shard (shards of 7 rows).
  for (const char* file : {"embedding-00001.npy", "kl_factors_a-00001.npy",
                           "dino_factors_b-00001.npy", "simclr_factors_a-00001.npy"})
    for (const std::string side : {"database", "queries"})
      for (const float bad :
           {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        const auto path = stores.folder / side / file;
        const std::string bytes = test::read_file(path);
        Matrix<float> values = NpyFile::open(path).read();
        values(1, 2) = bad;
        write_npy(path, npy_array(values));
        const Store database = stores.database(), queries = stores.queries();
        for (const Metric metric : {Metric::euclidean, Metric::inner_product, Metric::cosine}) {
          try {
            GradientSearch(database, queries, "embedding+kl+dino+simclr", pool, {.metric = metric})
                .knn(3, pool);
            ADD_FAILURE() << file << " " << side << " " << bad << " " << to_string(metric);
          } catch (const Error& e) {
            // Blocks that are read as rows are named by file and id.
            const bool rows = std::string(file).starts_with("embedding");
            EXPECT_EQ(e.place(), rows ? path.string() : side) << file;
            EXPECT_NE(e.message().find(rows ? "sample-8" : "row 8"), std::string::npos) << e.what();
          }
        }
        std::ofstream(path, std::ios::binary) << bytes;
      }
}

TEST(GradientSearch, RowsOfEitherSideInAnyOrder) {
  const Stores stores;
  const Store database = stores.database(), queries = stores.queries();
  Pool pool(2);
  const std::vector<size_t> some = {31, 3, 39, 8}, asking = {16, 2, 5};
  Matrix<double> whole(17, 40), part(3, 4);
  GradientSearch(database, queries, "embedding+dino", pool).keys(0, whole, pool);
  const GradientSearch search(database, queries, "embedding+dino", pool,
                              {.database_rows = some, .query_rows = asking});
  EXPECT_EQ(search.rows(), 4u);
  EXPECT_EQ(search.queries(), 3u);
  search.keys(0, part, pool);
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < 4; ++j) EXPECT_EQ(part(i, j), whole(asking[i], some[j]));
}

}  // namespace
}  // namespace fungi
