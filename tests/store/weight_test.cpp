// SPDX-License-Identifier: Apache-2.0
// Blocks that count for less or more than others: in the manifest, and in rows as they are read.
#include <cmath>

#include "fungi/store/store.h"
#include "tests/store/fixture.h"

namespace fungi::test {
namespace {

StoreSpec weighted_spec(double weight) {
  StoreSpec spec = example_spec();
  spec.blocks[1].weight = weight;
  return spec;
}

TEST(BlockWeight, IsTheLengthOfRowsThatAreReadTogether) {
  const Folder folder;
  Extraction extraction;
  extraction(folder / "plain", example_samples(0, 20));
  extraction(folder / "light", example_samples(0, 20), {.shard_size = 8}, weighted_spec(0.3));
  const Store plain = Store::open(folder / "plain"), light = Store::open(folder / "light");
  EXPECT_EQ(light.manifest().spec.blocks[1].weight, 0.3);
  EXPECT_EQ(plain.manifest().spec.blocks[1].weight, 1);
  const FeatureSet a = plain.load(), b = light.load();
  ASSERT_EQ(a.features.rows(), b.features.rows());
  std::vector<size_t> backwards;
  for (size_t i = a.features.rows(); i-- > 0;) backwards.push_back(i);
  Matrix<float> picked(backwards.size(), 8);
  light.read(light.select("all"), true, backwards, picked);
  for (size_t i = 0; i < a.features.rows(); ++i)
    for (size_t c = 0; c < 8; ++c) {
      EXPECT_NEAR(b.features(i, c), a.features(i, c) * (c < 5 ? 1 : 0.3), 1e-7);
      EXPECT_EQ(picked(backwards.size() - 1 - i, c), b.features(i, c));
    }
  EXPECT_TRUE(contents(folder / "plain").at("kl-00000.npy") ==
              contents(folder / "light").at("kl-00000.npy"))
      << "the files hold what they held";
  const FeatureSet raw = light.load("kl", false), as_stored = plain.load("kl", false);
  EXPECT_EQ(raw.features(0, 0), as_stored.features(0, 0));
}

TEST(BlockWeight, AnotherOneIsAnotherStore) {
  const Folder folder;
  Extraction extraction;
  extraction(folder / "s", example_samples(0, 8), {.shard_size = 8}, weighted_spec(0.5));
  EXPECT_ERROR("'blocks.kl.weight' differs: the store has 0.5, this run has 0.25",
               StoreWriter(folder / "s", weighted_spec(0.25), {.shard_size = 8}));
  for (const double odd : {0.0, -1.0, 1e7, std::nan("")})
    EXPECT_ERROR("weight of the block 'kl'", StoreWriter(folder / "t", weighted_spec(odd), {}));
}

}  // namespace
}  // namespace fungi::test
