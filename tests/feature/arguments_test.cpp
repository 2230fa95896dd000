// SPDX-License-Identifier: Apache-2.0
// What a program may do to its backbones and pictures, and what it may not: an extractor keeps the
// one, and records the other.
#include <gtest/gtest.h>

#include "fungi/pca/pca.h"
#include "tests/feature/extractor_fixture.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"
#include "tests/support/made_store.h"

namespace fungi {
namespace {

using test::Pictures;
using test::tiny_backbone;

TEST(ExtractorArguments, TheBackboneMayMoveOrGo) {
  Pool pool(2);
  const Pictures pictures(4);
  std::vector<Backbone> models{tiny_backbone(pool)};
  Extractor of_element(models[0], {.objectives = {"kl"}}, pool);
  while (models.size() < 4) models.push_back(tiny_backbone(pool));
  const FeatureSet moved = extract_to_memory(of_element, pictures);
  models.clear();
  EXPECT_TRUE(test::same(extract_to_memory(of_element, pictures).features, moved.features));
  Extractor of_temporary(tiny_backbone(pool), {.objectives = {"kl"}}, pool);
  EXPECT_TRUE(test::same(extract_to_memory(of_temporary, pictures).features, moved.features));
}

// Number 1 is one that no decoder of ours would make.
struct OddPictures : Pictures {
  using Pictures::Pictures;
  Image odd;
  Sample decode(size_t i, std::span<const uint8_t> bytes, const DecodeOptions& o) const override {
    return i == 1 ? odd : Pictures::decode(i, bytes, o);
  }
  using Pictures::labels_;
};

TEST(ExtractorArguments, AnOddPictureIsABadSample) {
  Pool pool(2);
  OddPictures pictures(4);
  for (const Image& odd : {Image{}, Image{40, 30, std::vector<uint8_t>(5)}}) {
    pictures.odd = odd;
    Extractor extractor(tiny_backbone(pool), {.objectives = {"simclr:width=16,negatives=4"}}, pool);
    EXPECT_TRUE(extractor.fit(pictures)) << "among the negatives it is left out";
    std::vector<StoreFailure> failures;
    EXPECT_EQ(extract_to_memory(extractor, pictures, &failures).ids.size(), 3u);
    ASSERT_EQ(failures.size(), 1u);
    EXPECT_EQ(failures[0].stage, "decode");
    EXPECT_NE(failures[0].reason.find("bytes of pixels"), std::string::npos);
  }
}

TEST(ExtractorArguments, SamplesMustBeThere) {
  Pool pool(1);
  OddPictures pictures(3);
  Extractor extractor(tiny_backbone(pool), {.objectives = {"kl"}}, pool);
  EXPECT_ERROR("asked for sample 7 of 3", extractor.extract(pictures, std::vector<size_t>{0, 7}));
  EXPECT_ERROR("asked for sample 3 of 3", pictures.label(3));
  pictures.labels_.pop_back();
  EXPECT_ERROR("with 2 labels", pictures.label(2));
  struct Unlabelled : Pictures {
    Unlabelled() : Pictures(2) {
      labels_.clear();
      finish(DatasetKind::flat, "pictures");
    }
  };
  EXPECT_ERROR("one label per sample, found 0 for 2", Unlabelled());
}

TEST(FeatureArguments, ShapesAndRowsMustFit) {
  Pool pool(1);
  Matrix<float> rows(6, 4), out(6, 1), wide(1, 9), b(1, 3), a(1, 3), y(1, 2), right(1, 4);
  for (size_t i = 0; i < 24; ++i) rows.data()[i] = float(i * 7 % 11);
  EXPECT_ERROR("room for 6 x 2 numbers", Pca::fit(rows, 2, pool).transform(rows, out, pool));
  EXPECT_ERROR("found 0x3", Projection::make({.rows = 4}, {0, 3}));
  const auto projection = Projection::make({.rows = 4}, {3, 3});
  const GradientFactors good{b, a}, bad{wide, a};
  EXPECT_ERROR("room for 1 x 4 numbers", projection->project({&good, 1}, y, pool));
  EXPECT_ERROR("found 1 x 9 and 1 x 3", projection->project({&bad, 1}, right, pool));

  const test::TemporaryFolder folder;
  test::write_made_store(folder / "store", {{"a", 0, {{1, 2}}}}, {"x"});
  const Store store = Store::open(folder / "store");
  EXPECT_EQ(store.first_row(store.shards()), 1u);
  EXPECT_ERROR("asked for shard 77", store.first_row(77));
  EXPECT_ERROR("asked for row 77 of 1", store.class_name(77));
}

// References into a store that is gone.
template <class S>
concept Gives = requires(S&& s) {
  std::forward<S>(s).ids();
}
|| requires(S&& s) { std::forward<S>(s).labels(); }
|| requires(S&& s) { std::forward<S>(s).keys(); }
|| requires(S&& s) { std::forward<S>(s).classes(); }
|| requires(S&& s) { std::forward<S>(s).manifest(); }
|| requires(S&& s) { std::forward<S>(s).folder(); };
static_assert(Gives<Store&> && Gives<const Store&> && !Gives<Store> && !Gives<const Store>);

}  // namespace
}  // namespace fungi
