// SPDX-License-Identifier: Apache-2.0
// Objectives of a user's own in the extractor: requests for the same view, names that begin alike,
// refusals, gradients of zero.
#include <gtest/gtest.h>

#include "tests/feature/extractor_fixture.h"
#include "tests/support/tiny_checkpoint.h"

namespace fungi {
namespace {

using test::Pictures;
using test::range;
using test::same;
using test::tiny;
using test::tiny_backbone;

// A loss on two requests for the same view, each with or without a gradient of its own.
class Twice : public Objective {
 public:
  Twice(bool first, bool second, std::string name = "twice")
      : first_(first), second_(second), name_(std::move(name)) {}
  std::string name() const override { return name_; }
  std::vector<ViewRequest> views() const override {
    ViewRequest first, second;
    first.gradient = first_, second.gradient = second_;
    return {first, second};
  }
  double loss_and_gradient(const Latents& latents, LatentGradients gradients) const override {
    EXPECT_EQ(latents.pooled.rows, 2u);
    for (size_t j = 0; j < latents.pooled.cols; ++j)
      gradients.pooled(0, j) = float(j) - 7, gradients.pooled(1, j) = float(j % 5);
    return 0;
  }

 private:
  bool first_, second_;
  std::string name_;
};

TEST(OwnObjectives, AnObjectiveMayAskForTheSameViewTwice) {
  Pool pool(1);
  for (const bool tokens : {false, true}) {  // with recorded rows, and with a second forward
    const Backbone backbone = Backbone::assemble(
        tiny(), RandomTensors(1), {.precision = Precision::f32, .tokens = tokens}, pool);
    const auto gradient = [&](bool first, bool second) {
      ExtractorOptions o;
      o.objectives = {};
      o.projection = ProjectionKind::none;
      o.keep_factors = backbone.can_record();
      o.own.push_back(std::make_unique<Twice>(first, second));
      Extractor extractor(backbone, std::move(o), pool);
      return std::move(extractor.extract(Pictures(1), range(1)).blocks);
    };
    const auto first = gradient(true, false), second = gradient(false, true),
               both = gradient(true, true);
    const auto length = [](const Matrix<float>& block) {
      double square = 0;
      for (size_t j = 0; j < block.cols(); ++j) square += double(block(0, j)) * block(0, j);
      return square;
    };
    EXPECT_NEAR(length(first[1]), 1, 1e-5);
    EXPECT_NEAR(length(second[1]), 1, 1e-5);
    EXPECT_NEAR(length(both[1]), 1, 1e-5);
    EXPECT_FALSE(same(first[1], second[1]));
    if (!backbone.can_record()) continue;
    ASSERT_EQ(both.size(), 4u);  // the factor b is linear in the gradient at the embedding
    for (size_t j = 0; j < both[2].cols(); ++j)
      EXPECT_NEAR(both[2](0, j), first[2](0, j) + second[2](0, j), 1e-4);
  }
}

TEST(OwnObjectives, NamesThatBeginAlikeKeepTheirState) {
  Pool pool(1);
  const Backbone backbone = tiny_backbone(pool);
  class Own final : public Twice {
   public:
    Own() : Twice(true, false, "kl-own") {}
    std::vector<NamedMatrix> state() const override {
      std::vector<NamedMatrix> state;
      state.push_back({"head", Matrix<float>(1, 2)});
      return state;
    }
    void restore(const std::vector<NamedMatrix>& state) override {
      EXPECT_EQ(state.size(), 1u);
      EXPECT_EQ(state[0].name, "head");
    }
  };
  ExtractorOptions o;
  o.objectives = {"kl"};
  o.own.push_back(std::make_unique<Own>());
  Extractor extractor(backbone, std::move(o), pool);
  EXPECT_NO_THROW(extractor.restore(extractor.state()));
}

TEST(OwnObjectives, ViewsThatCannotBeAreRefused) {
  Pool pool(2);
  const Backbone backbone = tiny_backbone(pool);
  class Impossible final : public Twice {
   public:
    Impossible() : Twice(true, true, "impossible") {}
    std::vector<ViewRequest> views() const override {
      return {{.plan = ImageCrops{}}, {.plan = ImagePatches{.patch_count = 5}}};  // no square
    }
  };
  ExtractorOptions o;
  o.objectives = {"kl"};
  o.own.push_back(std::make_unique<Impossible>());
  EXPECT_ERROR("perfect square", Extractor(backbone, std::move(o), pool));
}

TEST(OwnObjectives, ZeroGradientsAreNoted) {
  Pool pool(1);
  const Backbone backbone = tiny_backbone(pool);
  class Flat final : public Twice {
   public:
    Flat() : Twice(true, false, "flat") {}
    double loss_and_gradient(const Latents&, LatentGradients) const override { return 1; }
  };
  ExtractorOptions o;
  o.objectives = {};
  ExtractorOptions without_gradient;
  without_gradient.own.push_back(std::make_unique<Twice>(false, false));
  EXPECT_THROW(Extractor(backbone, std::move(without_gradient), pool), Error);
  o.own.push_back(std::make_unique<Flat>());
  Extractor extractor(backbone, std::move(o), pool);
  EXPECT_TRUE(extractor.notes().empty());
  extractor.extract(Pictures(3), range(3));
  ASSERT_EQ(extractor.notes().size(), 1u);
  EXPECT_NE(extractor.notes()[0].find("flat: the gradient of 3 samples is zero"),
            std::string::npos);
}

// One that needs training samples, by the smallest class that says so.
class Supported : public Objective {
 public:
  std::string name() const override { return "supported"; }
  std::vector<ViewRequest> views() const override { return {ViewRequest{.gradient = true}}; }
  Support support() const override { return {.samples = 2}; }
  void prepare(View<const float> kept, size_t, Pool&) override { seen_ = kept.rows; }
  bool ready() const override { return seen_ > 0; }
  double loss_and_gradient(const Latents&, LatentGradients gradients) const override {
    gradients.pooled(0, 0) = float(seen_);
    return 0;
  }

 private:
  size_t seen_ = 0;
};
class Forgetful final : public Supported {
  bool ready() const override { return Objective::ready(); }
};

TEST(OwnObjectives, SupportIsNeverPassedOver) {
  Pool pool(1);
  const Backbone backbone =
      Backbone::assemble(tiny(), RandomTensors(1), {.precision = Precision::f32}, pool);
  for (const bool forgetful : {false, true}) {
    ExtractorOptions o;
    o.objectives = {};
    if (forgetful)
      o.own.push_back(std::make_unique<Forgetful>());
    else
      o.own.push_back(std::make_unique<Supported>());
    Extractor extractor(backbone, std::move(o), pool);
    EXPECT_THROW(extractor.extract(Pictures(1), range(1)), Error) << "before fit()";
    EXPECT_TRUE(extractor.fit(Pictures(3)));
    if (forgetful)  // it never says that it is ready: an Error, not features of an empty support
      EXPECT_THROW(extractor.extract(Pictures(1), range(1)), Error);
    else
      EXPECT_NO_THROW(extractor.extract(Pictures(1), range(1)));
  }
}

std::string notes(const StatedFacts& facts,
                  const test::TinyCheckpoint& checkpoint = test::tiny_vit(3, false, 16, 64)) {
  Pool pool(1);
  const test::TemporaryFolder folder;
  const Backbone backbone = Backbone::open(
      checkpoint.write(folder), {.precision = Precision::f32, .stated_facts = facts}, pool);
  std::string all;
  const Extractor extractor(backbone, {}, pool);
  const std::string manifest = extractor.spec().notes;
  for (const std::string& note : backbone.notes())
    EXPECT_NE(manifest.find(note), std::string::npos) << manifest;
  for (const std::string& note : extractor.notes()) all += note + "\n";
  return all;
}

TEST(ExtractorNotes, AnAssumedNumberOfHeadsIsSaid) {
  EXPECT_NE(notes({}).find("tells heads=1, activation"), std::string::npos) << notes({});
  EXPECT_EQ(notes({{"heads", "4"}}).find("heads"), std::string::npos);
  EXPECT_NE(notes({}, test::tiny_timm()).find("tells heads=1, activation"), std::string::npos);
}

TEST(ExtractorNotes, AnAssumedEvaluationTransformIsSaid) {
  const std::string said = "its evaluation transform (";
  const StatedFacts part{{"mean", "0.5"}, {"std", "0.5"}, {"interpolation", "bilinear"}};
  StatedFacts whole = part;
  whole["resize"] = "18";
  for (const test::TinyCheckpoint& checkpoint :
       {test::tiny_timm(), test::tiny_vit(3, false, 16, 64)}) {
    const std::string none = notes({}, checkpoint), some = notes(part, checkpoint);
    EXPECT_NE(none.find(said), std::string::npos) << none;
    EXPECT_NE(none.find("mean, std, resize and interpolation"), std::string::npos) << none;
    EXPECT_EQ(none.find("stated)"), std::string::npos) << none;
    EXPECT_NE(some.find(said), std::string::npos) << some;
    EXPECT_NE(some.find("in part stated)"), std::string::npos) << some;
    EXPECT_EQ(std::count(none.begin(), none.end(), '\n'), 1) << "of one missing file: " << none;
    EXPECT_EQ(notes(whole, checkpoint).find(said), std::string::npos);
  }
  test::TinyCheckpoint timm = test::tiny_timm(), huggingface = test::tiny_vit(3, false, 16, 64);
  timm.config = {{"architecture", "vit_tiny_patch4_16"}, {"pretrained_cfg", {{"crop_pct", 0.9}}}};
  huggingface.image_processor = {{"image_mean", {0.5, 0.5, 0.5}}, {"image_std", {0.5, 0.5, 0.5}}};
  for (const test::TinyCheckpoint& checkpoint : {timm, huggingface})
    EXPECT_EQ(notes({}, checkpoint).find(said), std::string::npos) << notes({}, checkpoint);
}

}  // namespace
}  // namespace fungi
