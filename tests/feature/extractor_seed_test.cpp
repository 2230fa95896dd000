// SPDX-License-Identifier: Apache-2.0
// Each use of the seed by itself: where the others are given, or make no difference, another seed
// still gives other numbers.
#include <gtest/gtest.h>

#include "tests/feature/extractor_fixture.h"

namespace fungi {
namespace {

using test::Pictures;
using test::range;
using test::same;
using test::tiny_backbone;

// The evaluation view with half of its patches hidden, and no head: only the mask is drawn.
class Hidden final : public Objective {
 public:
  std::string name() const override { return "hidden"; }
  std::vector<ViewRequest> views() const override {
    ViewRequest request;
    request.draw = "hidden", request.masked_views = 1, request.mask_ratio = 0.5;
    return {request};
  }
  double loss_and_gradient(const Latents& latents, LatentGradients gradients) const override {
    std::copy_n(latents.pooled.row(0), latents.pooled.cols, gradients.pooled.row(0));
    return 0;
  }
};

class Seed : public ::testing::Test {
 protected:
  struct Run {
    Matrix<float> block;
    std::vector<NamedMatrix> state;
  };

  // With the same heads for every seed. Without an objective: Hidden.
  Run run(uint64_t seed, const std::string& objective, std::optional<uint64_t> projection_seed,
          size_t pictures = 6) {
    ExtractorOptions usual, o;
    usual.objectives.clear();
    if (!objective.empty()) usual.objectives = {objective};
    o.objectives = usual.objectives;
    o.given = Extractor(backbone_, std::move(usual), pool_).state();
    o.seed = seed;
    o.projection_seed = projection_seed;
    o.projection_rows = 20;
    if (objective.empty()) o.own.push_back(std::make_unique<Hidden>());
    Extractor extractor(backbone_, std::move(o), pool_);
    extractor.fit(Pictures(pictures));
    StoreRows rows = extractor.extract(Pictures(pictures), range(pictures));
    return {std::move(rows.blocks.at(1)), extractor.state()};
  }

  // Whether seeds 1 and 2 give the same, and so does seed 1 twice.
  bool same_blocks(const std::string& objective, std::optional<uint64_t> projection_seed) {
    const Run first = run(1, objective, projection_seed);
    EXPECT_TRUE(same(run(1, objective, projection_seed).block, first.block)) << objective;
    return same(run(2, objective, projection_seed).block, first.block);
  }

  bool same_state(const std::string& objective, const std::string& name, size_t pictures) {
    const auto found = [&](uint64_t seed) {
      for (NamedMatrix& m : run(seed, objective, 7, pictures).state)
        if (m.name == name) return std::move(m.values);
      ADD_FAILURE() << "no state " << name;
      return Matrix<float>();
    };
    return same(found(1), found(2));
  }

  Pool pool_{2};
  const Backbone backbone_ = tiny_backbone(pool_);
};

TEST_F(Seed, DrawsTheProjectionUnlessThatHasASeedOfItsOwn) {
  EXPECT_FALSE(same_blocks("kl:width=8", {}));
  EXPECT_TRUE(same_blocks("kl:width=8", 7)) << "KL draws nothing else";
}

TEST_F(Seed, DrawsTheCrops) { EXPECT_FALSE(same_blocks("dino:width=8,local_crops=1", 7)); }

TEST_F(Seed, DrawsTheMasks) { EXPECT_FALSE(same_blocks("", 7)); }

TEST_F(Seed, ChoosesTheSamplesThatGiveNegatives) {
  EXPECT_FALSE(same_state("simclr:width=8,negatives=3", "simclr-negatives", 6));
}

// One prototype of one picture is its latent, wherever the clustering starts.
TEST_F(Seed, DrawsTheCropsThatAreClustered) {
  EXPECT_FALSE(same_state("deepcluster:width=8,prototypes=1", "deepcluster-prototypes", 1));
}

}  // namespace
}  // namespace fungi
