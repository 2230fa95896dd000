// SPDX-License-Identifier: Apache-2.0
// The extractor on a tiny random backbone: shared views, every objective, batch and thread
// independence, kept factors, a user's own objective, and what happens to bad samples.
#include <gtest/gtest.h>

#include "tests/feature/extractor_fixture.h"
#include "tests/support/golden.h"

namespace fungi {
namespace {

using test::all_objectives;
using test::Pictures;
using test::range;
using test::same;
using test::tiny;
using test::tiny_backbone;

TEST(Extractor, BlocksAreUnitVectorsAndViewsAreShared) {
  Pool pool(2);
  const Backbone backbone = tiny_backbone(pool);
  Extractor extractor(backbone, all_objectives(), pool);
  const Pictures data(6);
  EXPECT_FALSE(extractor.ready());
  EXPECT_THROW(extractor.extract(data, range(6)), Error);
  extractor.fit(data);
  EXPECT_TRUE(extractor.ready());
  // embedding and kl share one view; dino 4; simclr 49 at 24 pixels (12-pixel patches, stride 2);
  // deepcluster 8 + 2
  EXPECT_EQ(extractor.views_per_sample(), 1 + 4 + 49 + 10u);
  const StoreRows rows = extractor.extract(data, range(6));
  ASSERT_EQ(rows.blocks.size(), 5u);
  EXPECT_TRUE(rows.failures.empty());
  for (size_t b = 1; b < 5; ++b)
    for (size_t i = 0; i < 6; ++i) {
      double norm = 0;
      for (size_t j = 0; j < 20; ++j) norm += double(rows.blocks[b](i, j)) * rows.blocks[b](i, j);
      EXPECT_NEAR(norm, 1, 1e-5) << "block " << b;
    }
}

TEST(Extractor, SameBytesForAnyBatchAndThreads) {
  const Pictures data(7);
  std::vector<StoreRows> results;
  for (unsigned threads : {1u, 2u, 3u}) {
    Pool pool(threads);
    const Backbone backbone = tiny_backbone(pool);
    ExtractorOptions options = all_objectives();
    if (threads == 3) options.waiting_bytes = 1;  // groups of three samples
    Extractor extractor(backbone, std::move(options), pool);
    extractor.fit(data);
    results.push_back(extractor.extract(data, range(7)));
    if (threads == 2) {  // one by one
      for (size_t i = 0; i < 7; ++i) {
        const size_t index[] = {i};
        const StoreRows one = extractor.extract(data, index);
        for (size_t b = 0; b < one.blocks.size(); ++b)
          EXPECT_TRUE(std::equal(one.blocks[b].row(0), one.blocks[b].row(0) + one.blocks[b].cols(),
                                 results[0].blocks[b].row(i)))
              << "block " << b;
      }
    }
  }
  for (size_t b = 0; b < results[0].blocks.size(); ++b)
    for (size_t other : {1, 2})
      EXPECT_TRUE(same(results[0].blocks[b], results[other].blocks[b])) << "block " << b;
}

TEST(Extractor, TheSeedDecidesAboutAllButTheEmbedding) {
  Pool pool(2);
  const Pictures data(6);
  StoreRows rows[2];
  std::vector<NamedMatrix> states[2];
  for (const size_t run : {0, 1}) {
    ExtractorOptions o = all_objectives();
    o.objectives.push_back("ibot:width=16,local_crops=1");
    o.seed = 1 + run;
    const Backbone backbone = Backbone::assemble(
        tiny(), RandomTensors(1), backbone_for(o, {.precision = Precision::f32}), pool);
    Extractor extractor(backbone, std::move(o), pool);
    extractor.fit(data);
    states[run] = extractor.state();
    rows[run] = extractor.extract(data, range(6));
  }
  ASSERT_EQ(rows[0].blocks.size(), 6u);
  EXPECT_TRUE(same(rows[0].blocks[0], rows[1].blocks[0]));
  for (size_t b = 1; b < 6; ++b)
    for (size_t i = 0; i < 6; ++i)
      EXPECT_FALSE(std::equal(rows[0].blocks[b].row(i), rows[0].blocks[b].row(i) + 20,
                              rows[1].blocks[b].row(i)))
          << "block " << b << ", sample " << i;
  ASSERT_EQ(states[0].size(), 19u);  // 9 weights and 8 biases of heads, negatives, prototypes
  for (size_t i = 0; i < 19; ++i)
    EXPECT_FALSE(same(states[0][i].values, states[1][i].values)) << states[0][i].name;
}

TEST(Extractor, StateCarriesARunOver) {
  Pool pool(2);
  const Pictures train(6), test(4);
  const Backbone backbone = tiny_backbone(pool);
  Extractor first(backbone, all_objectives(), pool);
  first.fit(train);
  ExtractorOptions other = all_objectives();
  Extractor second(backbone, std::move(other), pool);
  second.restore(first.state());
  EXPECT_TRUE(second.ready());
  const StoreRows x = first.extract(test, range(4)), y = second.extract(test, range(4));
  for (size_t b = 0; b < x.blocks.size(); ++b) EXPECT_TRUE(same(x.blocks[b], y.blocks[b]));
}

// The second backbone keeps all tokens, so nothing is pruned or recorded. More crops than fit into
// one batch.
TEST(Extractor, RecordedAndRecomputedBackwardAgree) {
  Pool pool(1);
  const Pictures data(3);
  StoreRows rows[2];
  for (bool tokens : {false, true}) {
    const Backbone backbone = Backbone::assemble(
        tiny(), RandomTensors(1), {.precision = Precision::f32, .tokens = tokens}, pool);
    EXPECT_EQ(backbone.can_record(), !tokens);
    ExtractorOptions o;
    o.objectives = {"kl", "dino:width=32,local_crops=110"};
    o.projection_rows = 20;
    Extractor extractor(backbone, std::move(o), pool);
    EXPECT_GT(extractor.views_per_sample(), backbone.preferred_batch() + 3);
    rows[tokens] = extractor.extract(data, range(3));
  }
  for (size_t b = 0; b < 3; ++b)
    EXPECT_LT(golden::relative_error(rows[1].blocks[b].data(), rows[0].blocks[b].data(),
                                     rows[0].blocks[b].rows() * rows[0].blocks[b].cols()),
              1e-4);
}

TEST(Extractor, Ibot) {
  Pool pool(2);
  const Pictures data(3);
  const Backbone plain = tiny_backbone(pool);
  ExtractorOptions o;
  o.objectives = {"ibot:width=16,local_crops=1"};
  EXPECT_THROW(Extractor(plain, std::move(o), pool), Error);
  o = {};
  o.objectives = {"ibot:width=16,local_crops=1"};
  const Backbone backbone = Backbone::assemble(
      tiny(), RandomTensors(1), backbone_for(o, {.precision = Precision::f32}), pool);
  Extractor extractor(backbone, std::move(o), pool);
  const StoreRows rows = extractor.extract(data, range(3));
  EXPECT_TRUE(rows.failures.empty());
  EXPECT_NE(rows.blocks[1](0, 0), rows.blocks[1](1, 0));
}

TEST(Extractor, KeptFactorsGiveTheProjection) {
  Pool pool(1);
  const Pictures data(2);
  const Backbone backbone = tiny_backbone(pool);
  ExtractorOptions o;
  o.objectives = {"dino:width=32,local_crops=1"};
  o.projection_rows = 20;
  o.keep_factors = true;
  Extractor extractor(backbone, std::move(o), pool);
  const StoreRows rows = extractor.extract(data, range(2));
  ASSERT_EQ(rows.blocks.size(), 4u);  // embedding, dino, factors b and a
  EXPECT_EQ(rows.blocks[2].cols(), 3 * 48u);
  ProjectionOptions p;
  p.rows = 20;
  const auto projection = Projection::make(std::move(p), {48, 48, true});
  for (size_t i = 0; i < 2; ++i) {
    const GradientFactors f{{rows.blocks[2].row(i), 3, 48}, {rows.blocks[3].row(i), 3, 48}};
    Matrix<float> y(1, 20);
    projection->project({&f, 1}, y, pool);
    normalise({y.row(0), 20});
    EXPECT_LT(golden::relative_error(y.row(0), rows.blocks[1].row(i), 20), 1e-6);
  }
}

TEST(Extractor, ABadSampleIsReportedAndTheOthersAreNotTouched) {
  Pool pool(2);
  const Backbone backbone = tiny_backbone(pool);
  ExtractorOptions o;
  o.objectives = {"kl"};
  o.waiting_bytes = 1;  // groups of two: the bad one is the second of the second
  Extractor extractor(backbone, std::move(o), pool);
  const StoreRows good = extractor.extract(Pictures(8), range(8)),
                  bad = extractor.extract(Pictures(8, true), range(8));
  ASSERT_EQ(bad.failures.size(), 1u);
  EXPECT_EQ(bad.failures[0].position, 3u);
  EXPECT_EQ(bad.failures[0].stage, "decode");
  for (size_t i = 0; i < 8; ++i)
    EXPECT_EQ(std::equal(good.blocks[1].row(i), good.blocks[1].row(i) + good.blocks[1].cols(),
                         bad.blocks[1].row(i)),
              i != 3);
}

TEST(Extractor, ABrokenFileAmongTheNegativesIsReplacedByTheNextOneDrawn) {
  Pool pool(2);
  const Backbone backbone = tiny_backbone(pool);
  const auto negatives = [&](const Pictures& data, size_t count) {
    ExtractorOptions o;
    o.objectives = {"simclr:negatives=" + std::to_string(count)};
    Extractor extractor(backbone, std::move(o), pool);
    extractor.fit(data);
    for (NamedMatrix& m : extractor.state())
      if (m.name == "simclr-negatives") return std::move(m.values);
    return Matrix<float>();
  };
  const Matrix<float> all = negatives(Pictures(8), 8);
  const size_t views = all.rows() / 8;
  const std::vector<uint32_t> order = choose_support(8, 8, ExtractorOptions().seed);
  const size_t broken = size_t(std::find(order.begin(), order.end(), 3u) - order.begin());
  ASSERT_LT(broken, 7u);
  const size_t count = broken + 1;  // it is the last one wanted: the one behind it takes its place
  const Matrix<float> some = negatives(Pictures(8, true), count);
  ASSERT_EQ(some.rows(), count * views);
  for (size_t i = 0; i < count; ++i) {
    const float* expected = all.row((i < broken ? i : i + 1) * views);
    EXPECT_TRUE(std::equal(expected, expected + views * all.cols(), some.row(i * views))) << i;
  }
  EXPECT_EQ(negatives(Pictures(8, true), 8).rows(), 7 * views);  // there are no more
}

// Sample 1 cannot be read, 2 is too slim to be viewed.
class Trouble : public Pictures {
 public:
  Trouble() : Pictures(6) {}
  std::vector<uint8_t> read(size_t i) const override {
    if (i == 1) fail("the disk has gone", ids_[i]);
    return {};
  }
  Sample decode(size_t i, std::span<const uint8_t> bytes,
                const DecodeOptions& options) const override {
    if (i == 2) return Image{1, 5000, std::vector<uint8_t>(15000)};
    return Pictures::decode(i, bytes, options);
  }
};

// Refuses the sample whose embedding it was told.
class Picky : public Objective {
 public:
  explicit Picky(float refused) : refused_(refused) {}
  std::string name() const override { return "picky"; }
  std::vector<ViewRequest> views() const override { return {ViewRequest{}}; }
  double loss_and_gradient(const Latents& latents, LatentGradients gradients) const override {
    if (latents.pooled(0, 0) == refused_) fail("not this one", name());
    std::copy_n(latents.pooled.row(0), latents.pooled.cols, gradients.pooled.row(0));
    return 0;
  }

 private:
  float refused_;
};

TEST(Extractor, AFailureSaysAtWhichStage) {
  Pool pool(2);
  const Backbone backbone = tiny_backbone(pool);
  ExtractorOptions embedding_only;
  embedding_only.objectives = {};
  const StoreRows known =
      Extractor(backbone, std::move(embedding_only), pool).extract(Pictures(6), range(6));
  ExtractorOptions o;
  o.objectives = {"kl"};
  o.own.push_back(std::make_unique<Picky>(known.blocks[0](4, 0)));
  Extractor extractor(backbone, std::move(o), pool);
  const StoreRows rows = extractor.extract(Trouble(), range(6));
  std::string stages;
  for (const StoreFailure& f : rows.failures) stages += std::to_string(f.position) + f.stage + " ";
  EXPECT_EQ(stages, "1read 2view 4objective ");
  for (size_t i : {0, 3, 5})
    EXPECT_TRUE(
        std::equal(known.blocks[0].row(i), known.blocks[0].row(i) + 48, rows.blocks[0].row(i)))
        << i;
}

// Samples 1 and 2 do not fit into the memory, as a file and as pixels.
class Huge : public Pictures {
 public:
  Huge() : Pictures(4) {}
  std::vector<uint8_t> read(size_t i) const override {
    if (i == 1) throw std::bad_alloc();
    return {};
  }
  Sample decode(size_t i, std::span<const uint8_t> bytes,
                const DecodeOptions& options) const override {
    if (i == 2) throw std::bad_alloc();
    return Pictures::decode(i, bytes, options);
  }
};

TEST(Extractor, APictureTooLargeForTheMemoryFailsAlone) {
  Pool pool(2);
  const Backbone backbone = tiny_backbone(pool);
  ExtractorOptions o;
  o.objectives = {"kl"};
  Extractor extractor(backbone, std::move(o), pool);
  const StoreRows rows = extractor.extract(Huge(), range(4));
  ASSERT_EQ(rows.failures.size(), 2u);
  EXPECT_EQ(rows.failures[0].position, 1u);
  EXPECT_EQ(rows.failures[0].stage, "read");
  EXPECT_EQ(rows.failures[1].position, 2u);
  EXPECT_EQ(rows.failures[1].stage, "decode");
  for (const StoreFailure& f : rows.failures) {
    EXPECT_NE(f.reason.find("memory"), std::string::npos) << f.reason;
    EXPECT_NE(f.hint.find("`retry_failed`"), std::string::npos) << f.hint;
  }
  ExtractorOptions of_support;  // nor does it end the search for negatives
  of_support.objectives = {"simclr:negatives=4,width=4"};
  Extractor simclr(backbone, std::move(of_support), pool);
  EXPECT_TRUE(simclr.fit(Huge()));
  EXPECT_TRUE(simclr.ready());
}

TEST(Extractor, ShardsHoldFewerSamplesOfManyViewsOrWideRows) {
  Pool pool(1);
  Architecture wide = named_architecture("vit_tiny_patch16_224");
  wide.depth = 1;
  const auto shard_size = [&](const Architecture& a, const char* objective, ProjectionKind kind) {
    const Backbone backbone =
        Backbone::assemble(a, RandomTensors(1), {.precision = Precision::f32}, pool);
    ExtractorOptions o;
    o.objectives = {objective};
    o.projection = kind;
    return Extractor(backbone, std::move(o), pool).shard_size();
  };
  EXPECT_EQ(shard_size(tiny(), "kl", ProjectionKind::sign), 512u);
  EXPECT_EQ(shard_size(tiny(), "kl", ProjectionKind::none), 512u);
  EXPECT_EQ(shard_size(tiny(), "dino:width=8", ProjectionKind::sign), 64u);
  EXPECT_EQ(shard_size(wide, "kl", ProjectionKind::sign), 512u);
  // 192 + 192 x 193 numbers a row, 64 MiB a shard.
  EXPECT_EQ(shard_size(wide, "kl", ProjectionKind::none), 450u);
}

TEST(Extractor, WhatObjectivesWantOfABackbone) {
  const auto wanted = [](std::vector<std::string> objectives, Preset preset,
                         BackboneOptions options = {}) {
    ExtractorOptions o;
    o.objectives = std::move(objectives), o.preset = preset;
    return backbone_for(o, std::move(options));
  };
  const BackboneOptions none = wanted({}, Preset::native),
                        kl = wanted({"kl", "dino:width=8"}, Preset::lib),
                        ibot = wanted({"kl", "ibot_b:width=8"}, Preset::paper,
                                      {.layer = "blocks.0.mlp.fc1"});
  EXPECT_EQ(none.layer, "none");
  EXPECT_EQ(kl.layer, BackboneOptions().layer);
  EXPECT_FALSE(kl.tokens);
  EXPECT_FALSE(kl.mha_input_as_activation);
  EXPECT_EQ(ibot.layer, "blocks.0.mlp.fc1");
  EXPECT_TRUE(ibot.tokens);
  EXPECT_TRUE(ibot.mha_input_as_activation);
  EXPECT_THROW(wanted({"klein"}, Preset::native), Error);
}

TEST(Extractor, PaperPresetOnTorchvisionNeedsItsActivation) {
  Pool pool(1);
  Architecture a = tiny();
  a.dialect = "torchvision";
  const Backbone plain =
      Backbone::assemble(a, RandomTensors(1), {.precision = Precision::f32}, pool);
  const Backbone paper = Backbone::assemble(
      a, RandomTensors(1), {.precision = Precision::f32, .mha_input_as_activation = true}, pool);
  auto options = [](Preset preset) {
    ExtractorOptions o;
    o.objectives = {"kl"};
    o.preset = preset;
    return o;
  };
  EXPECT_THROW(Extractor(plain, options(Preset::paper), pool), Error);
  const Extractor native(plain, options(Preset::native), pool),
      as_paper(paper, options(Preset::paper), pool);
  EXPECT_FALSE(native.settings().gradient->norm1_as_input);
  EXPECT_TRUE(as_paper.settings().gradient->norm1_as_input);
}

}  // namespace
}  // namespace fungi
