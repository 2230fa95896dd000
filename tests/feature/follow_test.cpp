// SPDX-License-Identifier: Apache-2.0
// What an extraction takes over from a store that it follows or continues.
#include "fungi/feature/follow.h"

#include <gtest/gtest.h>

#include "tests/feature/extractor_fixture.h"
#include "tests/store/fixture.h"
#include "tests/support/errors.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
const std::string kModel = FUNGI_GOLDEN_DIR "/backbone/timm_vit/model.safetensors";

// A store that has its settings and its state, and no row yet.
void begin_store(const fs::path& folder, ExtractorOptions options, Pool& pool,
                 const std::string& layer = "blocks.-1.attn.proj") {
  const Backbone backbone = Backbone::open(kModel,
                                           {.precision = Precision::f32,
                                            .layer = options.objectives.empty() ? "none" : layer,
                                            .stated_facts = {{"heads", "4"}}},
                                           pool);
  Extractor extractor(backbone, std::move(options), pool);
  StoreSpec spec = extractor.spec();
  spec.type = StoreType::float16;
  StoreWriter writer(folder, spec, {.shard_size = 7});
  for (const NamedMatrix& m : extractor.state()) writer.put_state(m.name, m.values);
  writer.plan({{"a"}, {"b"}}, {});
}

TEST(Follow, SettingsAreThoseOfTheStore) {
  const test::TemporaryFolder tmp;
  Pool pool(1);
  begin_store(tmp / "s",
              {.objectives = {"kl:temperature=3,width=8"},
               .preset = Preset::lib,
               .projection = ProjectionKind::sparse,
               .projection_rows = 12,
               .seed = 7,
               .projection_seed = 5},
              pool, "blocks.1.attn.proj");
  const ExtractionSettings s = followed_settings(tmp / "s");
  EXPECT_TRUE(fs::equivalent(s.model, kModel)) << s.model;
  EXPECT_EQ(s.backbone.layer, "blocks.1.attn.proj");
  EXPECT_EQ(s.backbone.stated_facts.at("heads"), "4");
  EXPECT_FALSE(s.backbone.precision);
  ASSERT_EQ(s.extractor.objectives.size(), 1u);
  EXPECT_NE(s.extractor.objectives[0].find("temperature=3"), std::string::npos);
  EXPECT_EQ(s.extractor.preset, Preset::lib);
  EXPECT_EQ(s.extractor.projection, ProjectionKind::sparse);
  EXPECT_EQ(s.extractor.projection_rows, 12u);
  EXPECT_EQ(s.extractor.seed, 7u);
  EXPECT_EQ(s.extractor.projection_seed, 5u);
  EXPECT_FALSE(s.extractor.keep_factors);
  EXPECT_EQ(s.type, StoreType::float16);
  EXPECT_NO_THROW(require_followed_model(tmp / "s", kModel));
  EXPECT_ERROR("another model", require_followed_model(tmp / "s", FUNGI_GOLDEN_DIR
                                                       "/backbone/timm_vit_avg/model.safetensors"));
  EXPECT_ERROR("empty name", followed_settings(""));
}

TEST(Follow, WhatHasNoMeaningThereKeepsItsDefault) {
  const test::TemporaryFolder tmp;
  Pool pool(1);
  begin_store(tmp / "bare", {.objectives = {}}, pool);
  const ExtractionSettings bare = followed_settings(tmp / "bare");
  EXPECT_TRUE(bare.extractor.objectives.empty());
  EXPECT_EQ(bare.backbone.layer, BackboneOptions().layer);
  EXPECT_EQ(bare.extractor.projection, ExtractorOptions().projection);
  begin_store(tmp / "whole", {.objectives = {"kl:width=8"}, .projection = ProjectionKind::none},
              pool);
  const ExtractionSettings whole = followed_settings(tmp / "whole");
  EXPECT_EQ(whole.extractor.projection, ProjectionKind::none);
  EXPECT_EQ(whole.extractor.projection_rows, 0u);
}

TEST(Follow, PrecisionAndShardsStayWhatTheyWere) {
  const test::TemporaryFolder tmp;
  Pool pool(1);
  EXPECT_FALSE(begun_store(tmp / "s"));
  begin_store(tmp / "s", {.objectives = {"kl:width=8"}}, pool);
  std::optional<StoreManifest> begun = begun_store(tmp / "s");
  ASSERT_TRUE(begun);
  StoreManifest other = *begun;
  other.spec.precision = "bf16";
  const auto precision = [](std::optional<Precision> stated, const StoreManifest* followed,
                            const StoreManifest* continued) {
    BackboneOptions options{.precision = stated};
    follow_precision(options, followed, continued);
    return options.precision;
  };
  EXPECT_EQ(precision({}, nullptr, nullptr), std::nullopt);
  EXPECT_EQ(precision({}, nullptr, &other), Precision::bf16);
  EXPECT_EQ(precision({}, &*begun, &other), Precision::f32);
  EXPECT_EQ(precision(Precision::bf16, &*begun, &*begun), Precision::bf16);

  const Backbone backbone = Backbone::open(kModel, {.stated_facts = {{"heads", "4"}}}, pool);
  const Extractor extractor(backbone, {.objectives = {"kl:width=8"}}, pool);
  EXPECT_EQ(shard_size_for(3, &*begun, extractor), 3u);
  EXPECT_EQ(shard_size_for(0, &*begun, extractor), 7u);
  EXPECT_EQ(shard_size_for(0, nullptr, extractor), extractor.shard_size());
}

}  // namespace
}  // namespace fungi
