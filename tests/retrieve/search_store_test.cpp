// SPDX-License-Identifier: Apache-2.0
// Searches of stores in parts, against a plain search in memory.
#include "fungi/retrieve/search_store.h"

#include <gtest/gtest.h>

#include "fungi/checkpoint/npy.h"
#include "fungi/search/knn.h"
#include "tests/store/fixture.h"

namespace fungi {
namespace {

using test::Folder;

std::vector<StoreSample> numbered(size_t n) {
  std::vector<StoreSample> samples;
  for (size_t i = 0; i < n; ++i) samples.push_back({std::to_string(i), -1, ""});
  return samples;
}

TEST(SearchStore, PartsAreFittedAndSearchedAsOneMatrix) {
  const Folder folder;
  StoreSpec spec = test::example_spec();
  spec.pipeline = "embedding", spec.blocks = {{"embedding", 1000}};
  const size_t rows = 8500, width = 1000, unlike = 8490;
  {
    StoreWriter writer(folder / "store", spec, {.shard_size = 2000});
    for (const StoreWork& work : writer.plan(numbered(rows), test::kClasses)) {
      StoreRows computed;
      computed.blocks.emplace_back(work.samples.size(), width);
      for (size_t i = 0; i < work.samples.size(); ++i) {
        const size_t same_as = work.samples[i] < unlike
                                   ? work.samples[i]
                                   : work.samples[i] - unlike;  // ties across the parts
        for (size_t c = 0; c < width; ++c)
          computed.blocks[0](i, c) =
              float(mix64(same_as * width + c) >> 40) / float(1 << 24) - 0.5f;
      }
      writer.put(work, computed);
    }
    ASSERT_TRUE(writer.finish().complete);
  }
  const Store store = Store::open(folder / "store");
  Pool pool(2);
  const FeatureSet all = store.load();
  size_t parts = 0;
  const Reduction plain = Reduction::fit(store, "", 0, pool);
  plain.each_part(store, pool, [&](size_t, View<const float>) { ++parts; });
  ASSERT_EQ(parts, 2u);
  for (Metric metric : {Metric::euclidean, Metric::inner_product, Metric::cosine}) {
    const Neighbours found = search_store(store, plain, all.features.view().slice(0, 7), 12, metric,
                                          pool),
                     expected = knn(all.features, all.features.view().slice(0, 7), 12, pool,
                                    {.metric = metric});
    for (size_t i = 0; i < 7 * 12; ++i) {
      EXPECT_EQ(found.index.data()[i], expected.index.data()[i]);
      EXPECT_EQ(found.value.data()[i], expected.value.data()[i]);
    }
  }
  EXPECT_THROW(search_store(store, plain, all.features, rows + 1, Metric::euclidean, pool), Error);
  const Reduction reduction = Reduction::fit(store, "", 3, pool);
  const Matrix<float> expected = Pca::fit(all.features, 3, pool).transform(all.features, pool);
  write_vectors(reduction, store, folder / "vectors.npy", pool);
  const Matrix<float> written = NpyFile::open(folder / "vectors.npy").read();
  ASSERT_EQ(written.rows(), rows);
  EXPECT_TRUE(std::equal(written.data(), written.data() + rows * 3, expected.data()));
}

// Two keys whose square roots round to the same distance: the order is that of the keys.
TEST(SearchStore, RowsComeInTheOrderOfKeys) {
  const Folder folder;
  StoreSpec spec = test::example_spec();
  spec.pipeline = "embedding", spec.blocks = {{"embedding", 2}};
  {
    StoreWriter writer(folder / "store", spec, {});
    for (const StoreWork& work : writer.plan(numbered(2), test::kClasses)) {
      StoreRows computed;
      computed.blocks.emplace_back(2, 2);
      computed.blocks[0](0, 0) = computed.blocks[0](1, 0) = 1;
      computed.blocks[0](0, 1) = 0x1p-25f;
      writer.put(work, computed);
    }
    writer.finish();
  }
  const Store store = Store::open(folder / "store");
  Pool pool(1);
  Matrix<float> query(1, 2);
  query(0, 0) = -1;
  const Reduction plain = Reduction::fit(store, "", 0, pool);
  const FeatureSet all = store.load();
  for (const size_t k : {1, 2}) {
    const Neighbours found = search_store(store, plain, query, k, Metric::euclidean, pool),
                     expected = knn(all.features, query, k, pool, {.metric = Metric::euclidean});
    for (size_t i = 0; i < k; ++i) EXPECT_EQ(found.index(0, i), expected.index(0, i)) << k;
    EXPECT_EQ(found.index(0, 0), 1u);
  }
}

}  // namespace
}  // namespace fungi
