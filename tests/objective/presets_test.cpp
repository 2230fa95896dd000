// SPDX-License-Identifier: Apache-2.0
// What the presets say of each objective, for each kind of sample (SPEC 0, SPEC 8).
#include "fungi/objective/presets.h"

#include <gtest/gtest.h>

#include "fungi/objective/factory.h"
#include "tests/support/errors.h"

namespace fungi {
namespace {

ImageStatistics statistics_of(const DinoParameters& p) {
  return std::get<ImageCrops>(p.views).statistics;
}
ImageStatistics statistics_of(const DeepClusterParameters& p) {
  return std::get<ImageCrops>(p.views).statistics;
}

ObjectiveContext context() { return {.embedding_width = 16, .token_width = 12}; }

TEST(Presets, DifferWhereTheReferencesDo) {
  EXPECT_EQ(kl_parameters(Preset::native, SampleKind::image).temperature, 15);
  EXPECT_EQ(kl_parameters(Preset::paper, SampleKind::image).temperature, 15);
  EXPECT_EQ(kl_parameters(Preset::lib, SampleKind::image).temperature, 1);
  EXPECT_EQ(simclr_parameters(Preset::native, SampleKind::image).negatives, 256u);
  EXPECT_EQ(simclr_parameters(Preset::lib, SampleKind::image).negatives, 64u);
  EXPECT_EQ(simclr_parameters(Preset::paper, SampleKind::image).denominator_temperature, 0.07);
  EXPECT_EQ(simclr_parameters(Preset::lib, SampleKind::image).denominator_temperature, 1);
  EXPECT_EQ(statistics_of(dino_parameters(Preset::native, SampleKind::image)),
            ImageStatistics::model);
  EXPECT_EQ(statistics_of(dino_parameters(Preset::paper, SampleKind::image)),
            ImageStatistics::imagenet);
  EXPECT_EQ(statistics_of(deepcluster_parameters(Preset::paper, SampleKind::image)),
            ImageStatistics::deepcluster);
  EXPECT_EQ(parse_preset("lib"), Preset::lib);
  EXPECT_THROW(parse_preset("best"), Error);
}

// Losses know no pictures: what is one about them is in the views, which other kinds of samples
// lack.
TEST(Presets, AreOfAKindOfSample) {
  for (const SampleKind kind : {SampleKind::text, SampleKind::sound, SampleKind::own}) {
    const bool views = kind != SampleKind::own;
    EXPECT_EQ(kl_parameters(Preset::lib, kind).views, ViewPlan(WholeView{}));
    EXPECT_EQ(kl_parameters(Preset::lib, kind).temperature, 1);
    ObjectiveContext other = context();
    other.kind = kind;
    EXPECT_THROW(make_objective("kl:squash=true", other), Error);
    for (const char* name : {"dino", "simclr", "deepcluster", "ibot"})
      if (!views || name == std::string("ibot"))
        EXPECT_ERROR(to_string(kind), make_objective(name, other));
  }
}

// The paper's for texts: 12 views, 256 x 2 negatives, width 256 (SPEC 5.6).
TEST(Presets, TextsHaveTheirOwn) {
  const SimclrParameters simclr = simclr_parameters(Preset::paper, SampleKind::text);
  EXPECT_EQ(simclr.width, 256u);
  EXPECT_EQ(simclr.negatives, 256u);
  EXPECT_EQ(simclr.negative_views, 2u);
  EXPECT_EQ(simclr.denominator_temperature, 1);
  EXPECT_EQ(simclr_parameters(Preset::native, SampleKind::text).denominator_temperature, 0.07);
  EXPECT_EQ(simclr.views, ViewPlan(WordDeletions{.global_views = 12, .global_share = 0.1}));

  ObjectiveContext texts = context();
  texts.kind = SampleKind::text;
  const auto made = make_objective("simclr:views=5,negatives=3,rule=independent", texts);
  EXPECT_EQ(made->views()[0].plan,
            ViewPlan(WordDeletions{.global_views = 5, .rule = WordDeletions::Rule::independent}));
  EXPECT_EQ(made->support().samples, 3u);
  const ViewRequest negatives = made->support().views;
  EXPECT_EQ(std::get<WordDeletions>(negatives.plan).global_views, 2u);
  EXPECT_NE(negatives.draw, made->views()[0].draw) << "a sample's negatives are other draws";
  EXPECT_EQ(make_objective("dino", texts)->views()[0].plan,
            ViewPlan(WordDeletions{.global_views = 2, .local_views = 10}));
  EXPECT_EQ(make_objective("deepcluster", texts)->name(), "deepcluster");
  EXPECT_ERROR("patch_count", make_objective("simclr:patch_count=4", texts));
}

// The paper's for sounds: 16 views, 64 x 2 negatives, width 768 (SPEC 5.7).
TEST(Presets, SoundsHaveTheirOwn) {
  EXPECT_EQ(kl_parameters(Preset::paper, SampleKind::sound).temperature, 15);
  EXPECT_EQ(kl_parameters(Preset::paper, SampleKind::sound).width, 768u);
  const SimclrParameters simclr = simclr_parameters(Preset::paper, SampleKind::sound);
  EXPECT_EQ(simclr.width, 768u);
  EXPECT_EQ(simclr.negatives, 64u);
  EXPECT_EQ(simclr.negative_views, 2u);
  EXPECT_EQ(simclr.temperature, 0.07);
  EXPECT_EQ(simclr.denominator_temperature, 1);
  EXPECT_EQ(simclr_parameters(Preset::native, SampleKind::sound).denominator_temperature, 0.07);
  EXPECT_EQ(simclr.views, ViewPlan(SoundShifts{.global_views = 16, .noise = 0.1, .shift = 10}));

  ObjectiveContext sounds = context();
  sounds.kind = SampleKind::sound;
  const auto made = make_objective("simclr:views=5,negatives=3,shift=4,rule=symmetric", sounds);
  EXPECT_EQ(made->views()[0].plan,
            ViewPlan(SoundShifts{
                .global_views = 5, .shift = 4, .rule = SoundShifts::Rule::symmetric}));
  const ViewRequest negatives = made->support().views;
  EXPECT_EQ(std::get<SoundShifts>(negatives.plan).global_views, 2u);
  EXPECT_NE(negatives.draw, made->views()[0].draw) << "a sample's negatives are other draws";
  EXPECT_EQ(make_objective("dino", sounds)->views()[0].plan,
            ViewPlan(SoundShifts{.global_views = 2, .local_views = 10}));
  EXPECT_EQ(make_objective("deepcluster", sounds)->name(), "deepcluster");
  EXPECT_ERROR("between 0 and 1", make_objective("simclr:noise=2", sounds));
}

}  // namespace
}  // namespace fungi
