// SPDX-License-Identifier: Apache-2.0
// Features of several layers at once: bit for bit those of each layer alone, of pictures, texts and
// sounds; and stores that hold them.
#include <gtest/gtest.h>

#include "fungi/evaluate/combinations.h"
#include "fungi/evaluate/layers.h"
#include "fungi/feature/comparable.h"
#include "fungi/feature/reopen.h"
#include "tests/feature/extractor_fixture.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

using test::Pictures;
using test::same;

ExtractorOptions three_objectives(ProjectionKind projection = ProjectionKind::sign) {
  ExtractorOptions o;
  o.objectives = {"kl:width=16", "dino:width=16,local_crops=1", "simclr:width=8,negatives=3"};
  o.projection = projection;
  o.projection_rows = projection == ProjectionKind::none ? 0 : 10;
  return o;
}

Backbone tiny(Pool& pool, std::vector<std::string> layers, const std::string& layer = "none",
              bool tokens = false) {
  return Backbone::assemble(test::tiny(), RandomTensors(1),
                            {.precision = Precision::f32,
                             .layer = layer,
                             .layers = std::move(layers),
                             .tokens = tokens},
                            pool);
}

std::vector<Matrix<float>> rows_of(Backbone backbone, ExtractorOptions options, Pool& pool,
                                   std::vector<std::string>* names = nullptr) {
  const Pictures pictures(5);
  Extractor extractor(std::move(backbone), std::move(options), pool);
  extractor.fit(pictures);
  if (names)
    for (const StoreBlock& block : extractor.blocks()) names->push_back(block.name);
  return std::move(extractor.extract(pictures, test::range(5)).blocks);
}

TEST(LayerFeatures, AreThoseOfEachLayerAlone) {
  Pool pool(2), one(1);
  for (const ProjectionKind projection : {ProjectionKind::sign, ProjectionKind::none}) {
    std::vector<std::string> names;
    const auto all =
        rows_of(tiny(pool, {"blocks.*.*"}), three_objectives(projection), pool, &names);
    ASSERT_EQ(all.size(), 1u + 3 * 8);
    ASSERT_EQ(names[1], "kl@blocks.0.attn.qkv");
    ASSERT_EQ(names[8 + 2], "dino@blocks.0.attn.proj");
    for (size_t layer = 0; layer < 8; ++layer) {
      const std::string name = names[1 + layer].substr(3);
      const auto alone = rows_of(tiny(one, {}, name), three_objectives(projection), one);
      ASSERT_EQ(alone.size(), 4u);
      EXPECT_TRUE(same(all[0], alone[0]));
      for (size_t o = 0; o < 3; ++o)
        EXPECT_TRUE(same(all[1 + 8 * o + layer], alone[1 + o])) << names[1 + 8 * o + layer];
    }
  }
}

// The gradient of iBOT comes from all patch tokens, too.
TEST(LayerFeatures, OfAnObjectiveOnPatches) {
  Pool pool(1);
  ExtractorOptions options;
  options.objectives = {"ibot:width=16,local_crops=1"};
  const auto copy = [&] {
    ExtractorOptions o;
    o.objectives = options.objectives;
    return o;
  };
  const auto both = rows_of(tiny(pool, {"blocks.1.mlp.fc1", "blocks.0.attn.proj"}, "none", true),
                            copy(), pool);
  ASSERT_EQ(both.size(), 3u);
  EXPECT_TRUE(same(both[1], rows_of(tiny(pool, {}, "blocks.0.attn.proj", true), copy(), pool)[1]));
  EXPECT_TRUE(same(both[2], rows_of(tiny(pool, {}, "blocks.1.mlp.fc1", true), copy(), pool)[1]));
}

const std::string kModel = FUNGI_GOLDEN_DIR "/backbone/timm_vit/model.safetensors";

Extractor layered(std::vector<std::string> layers, Pool& pool) {
  return Extractor::open(kModel, three_objectives(), pool,
                         {.precision = Precision::f32,
                          .layers = std::move(layers),
                          .stated_facts = {{"heads", "4"}}});
}

TEST(LayerFeatures, AStoreKnowsItsLayers) {
  Pool pool(1);
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "store";
  Extractor extractor = layered({"blocks.*.mlp.fc2", "blocks.1.attn.proj"}, pool);
  const Pictures pictures(4);
  {
    StoreWriter writer(path, extractor.spec());
    extract_to_store(extractor, pictures, writer);
  }
  const Store store = Store::open(path);
  EXPECT_EQ(store.manifest().spec.pipeline.substr(0, 62),
            "embedding+kl@blocks.0.mlp.fc2+kl@blocks.1.attn.proj+kl@blocks.");
  const Settings settings = read_settings(store.manifest().spec, "store");
  EXPECT_EQ(settings, extractor.settings());
  ASSERT_EQ(settings.layers.size(), 4u);
  EXPECT_EQ(settings.layers[3].layer, "blocks.2.mlp.fc2");
  EXPECT_EQ(settings.objectives.size(), 3u);
  EXPECT_FALSE(settings.gradient);

  // Its rows come again, from what it says of itself.
  Reopened again(extraction_record(store), pool);
  const StoreRows rows = again.extractor().extract(pictures, test::range(4));
  const auto blocks = store.select("all");
  ASSERT_EQ(rows.blocks.size(), blocks.size());
  EXPECT_TRUE(same(rows.blocks[5], extractor.extract(pictures, test::range(4)).blocks[5]));

  // One block is compared by its own layer: another store has it among others.
  Extractor fewer = layered({"blocks.2.mlp.fc2"}, pool);
  const std::filesystem::path other = folder.path() / "other";
  {
    StoreWriter writer(other, fewer.spec());
    fewer.restore(extractor.state());
    extract_to_store(fewer, pictures, writer);
  }
  const Store small = Store::open(other);
  require_comparable(store.manifest(), small.manifest(), {"kl@blocks.2.mlp.fc2"}, true, "other",
                     "");
  EXPECT_ERROR("no block", require_comparable(store.manifest(), small.manifest(),
                                              {"kl@blocks.0.mlp.fc2"}, true, "other", ""));
}

TEST(LayerFeatures, WhatDoesNotGoTogether) {
  Pool pool(1);
  ExtractorOptions kept = three_objectives();
  kept.keep_factors = true;
  Extractor extractor(tiny(pool, {"blocks.*.attn.proj"}), std::move(kept), pool);
  EXPECT_ERROR("of one layer", extractor.blocks());
  ExtractorOptions matrix = three_objectives();
  matrix.projection = ProjectionKind::matrix;
  EXPECT_ERROR("that of one layer",
               Extractor(tiny(pool, {"blocks.*.attn.proj"}), std::move(matrix), pool));
}

TEST(LayerFeatures, CurvesOverTheBlocks) {
  const std::vector<std::string> blocks{"embedding", "kl@blocks.2.attn.proj",
                                        "kl@blocks.10.attn.proj"};
  EXPECT_EQ(combinations(blocks, Combine::steps),
            (std::vector<std::string>{"embedding", blocks[1], blocks[2], "embedding+" + blocks[1],
                                      "embedding+" + blocks[2]}));
  EXPECT_EQ(combinations(blocks, Combine::overview), combinations(blocks, Combine::steps));
  const auto curves = layer_curves({{"embedding", 1},
                                    {"kl@blocks.10.attn.proj", 5},
                                    {"kl@blocks.2.attn.proj", 4},
                                    {"embedding+0.5*kl@blocks.2.attn.proj", 6},
                                    {"embedding+kl", 7}});
  ASSERT_EQ(curves.size(), 2u);
  EXPECT_EQ(curves[0].objective, "kl");
  EXPECT_EQ(curves[0].part, "attn.proj");
  EXPECT_EQ(curves[0].blocks, (std::vector<size_t>{2, 10}));
  EXPECT_EQ(curves[0].values, (std::vector<double>{4, 5}));
  EXPECT_EQ(curves[1].beside, "embedding");
  EXPECT_EQ(curves[1].values, (std::vector<double>{6}));
}

}  // namespace
}  // namespace fungi
