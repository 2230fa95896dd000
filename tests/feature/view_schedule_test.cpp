// SPDX-License-Identifier: Apache-2.0
// The transforms line by line as the tables of SPEC 3.4 and 3.5 have them: what each family's
// checkpoint is shown under each preset, and what each objective looks at.
#include "fungi/feature/view_schedule.h"

#include <gtest/gtest.h>

#include "fungi/backbone/backbone.h"
#include "fungi/checkpoint/checkpoint.h"
#include "fungi/feature/image_modality.h"
#include "fungi/objective/factory.h"

namespace fungi {
namespace {

constexpr Preset kPresets[] = {Preset::native, Preset::paper, Preset::lib};
using Triple = std::array<float, 3>;
constexpr Triple kClipMeanSpec{0.48145466f, 0.4578275f, 0.40821073f},
    kClipStdSpec{0.26862954f, 0.26130258f, 0.27577711f}, kMean{0.485f, 0.456f, 0.406f},
    kStd{0.229f, 0.224f, 0.225f}, kDeepClusterStd{0.228f, 0.224f, 0.225f}, kHalf{0.5f, 0.5f, 0.5f};

// A tiny golden checkpoint as if it were run at 224; only its names and facts are read.
Architecture architecture_of(const std::string& file, StatedFacts facts = {}) {
  facts["heads"] = "2", facts["size"] = "224";
  return read_architecture(Checkpoint::open(FUNGI_GOLDEN_DIR "/backbone/" + file), facts);
}

void expect_transform(const Preprocess& p, size_t resize, Filter filter, const Triple& mean,
                      const Triple& deviation) {
  EXPECT_EQ(p.resize, Preprocess::Resize::short_side);
  EXPECT_EQ(p.resize_size, resize);
  EXPECT_EQ(p.filter, filter);
  EXPECT_EQ(p.input_size, 224u);
  EXPECT_EQ(p.mean, mean);
  EXPECT_EQ(p.std, deviation);
}

struct Line {
  const char* file;
  StatedFacts facts;
  Filter filter;
  struct Transform {
    size_t resize;
    Triple mean, deviation;
  } own, paper;  // native to the checkpoint; really used by the paper's code
};

TEST(EvaluationTransform, AStatedCropHoldsUnderEveryPreset) {
  for (const char* crop : {"floor", "even"})
    for (const Preset preset : kPresets)
      for (const char* file : {"hf_clip/model.safetensors", "timm_eva02_clip/model.safetensors"}) {
        StatedFacts facts{{"crop", crop}};
        const Architecture a = architecture_of(file, facts);
        EXPECT_EQ(evaluation_transform(a, preset).floor_crop, crop == std::string("floor")) << file;
      }
}

TEST(EvaluationTransform, AsTheTableOfBackbones) {
  const Line::Transform imagenet{256, kMean, kStd}, mae{248, kMean, kStd},
      clip{248, kClipMeanSpec, kClipStdSpec}, openai{224, kClipMeanSpec, kClipStdSpec},
      augreg{248, kHalf, kHalf};
  const StatedFacts gelu{{"activation", "gelu"}};
  const Line lines[] = {
      {"dino/model.pth", {{"family", "dino"}}, Filter::bicubic, imagenet, imagenet},
      {"dinov2_native/model.pth", {}, Filter::bicubic, imagenet, imagenet},
      {"torchvision_vit/model.pth", {}, Filter::bilinear, imagenet, imagenet},
      {"mocov3/model.pth.tar", {}, Filter::bilinear, imagenet, imagenet},
      {"timm_clip/model.safetensors", {}, Filter::bicubic, clip, clip},
      {"openai_clip/model.pt", gelu, Filter::bicubic, openai, clip},
      {"open_clip_vit/open_clip_model.safetensors", gelu, Filter::bicubic, openai, clip},
      {"hf_clip/model.safetensors", {}, Filter::bicubic, openai, clip},
      {"hf_clip_vision/model.safetensors", {}, Filter::bicubic, openai, clip},
      {"mae/model.pth", {{"family", "mae"}}, Filter::bicubic, mae, mae},
      {"timm_mae/model.safetensors", {}, Filter::bicubic, mae, mae},
      {"timm_eva02_clip/model.safetensors", {}, Filter::bicubic, clip, imagenet},
      {"augreg_npz/model.npz", {}, Filter::bicubic, augreg, imagenet},
      {"timm_vit/model.safetensors", {}, Filter::bicubic, augreg, imagenet},  // so says config.json
      {"dino/model.pth", {{"family", "augreg"}}, Filter::bicubic, augreg, imagenet},
  };
  for (const Line& line : lines)
    for (const Preset preset : kPresets) {
      SCOPED_TRACE(std::string(line.file) + ", " + to_string(preset));
      const Line::Transform& expected = preset == Preset::paper ? line.paper : line.own;
      expect_transform(evaluation_transform(architecture_of(line.file, line.facts), preset),
                       expected.resize, line.filter, expected.mean, expected.deviation);
    }
}

TEST(EvaluationTransform, OfClipWithPatchesOf14ThePaperCropsNothing) {
  Architecture a = architecture_of("openai_clip/model.pt", {{"activation", "gelu"}});
  a.patch_h = a.patch_w = a.stride_h = a.stride_w = 14;
  for (const Preset preset : kPresets)
    expect_transform(evaluation_transform(a, preset), 224, Filter::bicubic, kClipMeanSpec,
                     kClipStdSpec);
}

TEST(EvaluationTransform, WhatTheUserStatesHoldsUnderEveryPreset) {
  for (const char* file : {"openai_clip/model.pt", "augreg_npz/model.npz"}) {
    StatedFacts facts{{"mean", "0.25"}, {"std", "0.5"}, {"resize", "300"}};
    if (std::string(file).starts_with("openai")) facts["activation"] = "gelu";
    const Architecture a = architecture_of(file, facts);
    for (const Preset preset : kPresets) {
      const Preprocess p = evaluation_transform(a, preset);
      EXPECT_EQ(p.resize_size, 300u) << file;
      EXPECT_EQ(p.mean[1], 0.25f) << file;
    }
  }
}

TEST(EvaluationTransform, SquashesWhereTheModelDoesButNotWhereThePaperDidNot) {
  Architecture a = architecture_of("timm_eva02_clip/model.safetensors");
  a.preprocess.transform.set_squash(true);
  using Resize = Preprocess::Resize;
  EXPECT_EQ(evaluation_transform(a, Preset::native).resize, Resize::squash);
  EXPECT_EQ(evaluation_transform(a, Preset::paper).resize, Resize::short_side);
  a = architecture_of("timm_eva02_clip/model.safetensors", {{"squash", "yes"}});
  EXPECT_EQ(evaluation_transform(a, Preset::paper).resize, Resize::squash) << "stated";
}

TEST(EvaluationTransform, RefusesWhatIsNoSquarePicture) {
  Architecture a = architecture_of("dino/model.pth", {{"family", "dino"}});
  a.input_w = 112;
  EXPECT_THROW(evaluation_transform(a, Preset::native), Error);
  a = architecture_of("dino/model.pth", {{"family", "dino"}});
  a.channels = 1;
  EXPECT_THROW(evaluation_transform(a, Preset::native), Error);
}

// The schedule of one objective: its own view comes after the embedding's.
class Objectives : public testing::Test {
 protected:
  struct Scheduled {
    ViewRequest request;
    size_t views;
    Preprocess preprocess;
  };
  std::vector<Scheduled> schedule(const std::string& objective, Preset preset) const {
    const ImageModality images(architecture_, evaluation_transform(architecture_, preset));
    ViewSchedule schedule(modality_for(architecture_, preset));
    const auto made = make_objective(objective, {8, 8, 1, preset});
    std::vector<Scheduled> requests;
    for (const ViewRequest& request : made->views()) {
      const ScheduledRequest& found = schedule[schedule.add(request)];
      requests.push_back({found.request, found.views, images.preprocess(found.request.plan)});
    }
    return requests;
  }

  // CLIP's own statistics are not ImageNet's.
  static void expect_statistics(const Preprocess& p, Preset preset, const Triple& deviation) {
    EXPECT_EQ(p.input_size, 224u);
    EXPECT_EQ(p.mean, preset == Preset::native ? kClipMeanSpec : kMean);
    EXPECT_EQ(p.std, preset == Preset::native ? kClipStdSpec : deviation);
  }

  static void expect_crops(const ViewPlan& plan, size_t global, float global_low, size_t local,
                           float local_low, float local_high, bool bilinear) {
    ASSERT_TRUE(std::holds_alternative<ImageCrops>(plan));
    const auto& crops = std::get<ImageCrops>(plan);
    EXPECT_EQ(crops.global_crops, global);
    EXPECT_EQ(crops.global_area, (ImageCrops::Area{global_low, 1.0f}));
    EXPECT_EQ(crops.local_crops, local);
    EXPECT_EQ(crops.local_area, (ImageCrops::Area{local_low, local_high}));
    EXPECT_EQ(crops.bilinear, bilinear);
  }

  const Architecture architecture_ = architecture_of("timm_clip/model.safetensors");
};

TEST_F(Objectives, KlSeesTheEvaluationTransformAndInTheLibraryASquashedPicture) {
  for (const Preset preset : kPresets) {
    SCOPED_TRACE(to_string(preset));
    const auto requests = schedule("kl", preset);
    ASSERT_EQ(requests.size(), 1u);
    EXPECT_EQ(requests[0].views, 1u);
    EXPECT_EQ(std::holds_alternative<WholeView>(requests[0].request.plan), preset != Preset::lib);
    const Preprocess& p = requests[0].preprocess;
    if (preset != Preset::lib) {
      expect_transform(p, 248, Filter::bicubic, kClipMeanSpec, kClipStdSpec);
      continue;
    }
    EXPECT_EQ(p.resize, Preprocess::Resize::squash);
    EXPECT_EQ(p.resize_size, 256u);
    EXPECT_EQ(p.filter, Filter::bilinear);
    EXPECT_EQ(p.input_size, 224u);
    EXPECT_EQ(p.mean, kMean);
    EXPECT_EQ(p.std, kStd);
  }
}

TEST_F(Objectives, DinoSeesTwoLargeAndTenSmallCrops) {
  for (const Preset preset : kPresets) {
    SCOPED_TRACE(to_string(preset));
    const auto requests = schedule("dino", preset);
    ASSERT_EQ(requests.size(), 1u);
    EXPECT_EQ(requests[0].views, 12u);
    expect_crops(requests[0].request.plan, 2, 0.25f, 10, 0.05f, 0.25f, false);
    expect_statistics(requests[0].preprocess, preset, kStd);
  }
}

TEST_F(Objectives, SimclrSees49Patches) {
  for (const Preset preset : kPresets) {
    SCOPED_TRACE(to_string(preset));
    const auto requests = schedule("simclr", preset);
    ASSERT_EQ(requests.size(), 1u);
    EXPECT_EQ(requests[0].views, 49u);
    ASSERT_TRUE(std::holds_alternative<ImagePatches>(requests[0].request.plan));
    const auto& patches = std::get<ImagePatches>(requests[0].request.plan);
    EXPECT_EQ(patches.patch_count, 4u);
    EXPECT_EQ(patches.stride_scale, 6u);
    expect_statistics(requests[0].preprocess, preset, kStd);
  }
}

TEST_F(Objectives, DeepClusterSeesEightCropsWithTheDeviationAsTyped) {
  for (const Preset preset : kPresets) {
    SCOPED_TRACE(to_string(preset));
    bool crops = false;
    for (const Scheduled& r : schedule("deepcluster", preset)) {
      expect_statistics(r.preprocess, preset, kDeepClusterStd);
      if (!r.request.gradient) continue;  // the crops that choose the clusters
      crops = true;
      EXPECT_EQ(r.views, 8u);
      expect_crops(r.request.plan, 2, 0.14f, 6, 0.05f, 0.14f, true);
    }
    EXPECT_TRUE(crops);
  }
}

TEST_F(Objectives, IbotSeesTheCropsOfDino) {
  for (const Preset preset : kPresets) {
    SCOPED_TRACE(to_string(preset));
    const auto requests = schedule("ibot", preset);
    ASSERT_EQ(requests.size(), 2u);
    EXPECT_EQ(requests[0].views, 12u);
    EXPECT_EQ(requests[1].views, 2u);
    expect_crops(requests[0].request.plan, 2, 0.25f, 10, 0.05f, 0.25f, false);
    for (const Scheduled& r : requests) expect_statistics(r.preprocess, preset, kStd);
  }
}

TEST_F(Objectives, EqualRequestsShareTheirViews) {
  for (const Preset preset : kPresets) {
    ViewSchedule schedule(modality_for(architecture_, preset));
    EXPECT_EQ(schedule.views_per_sample(), 1u);  // the embedding's
    for (const char* objective : {"kl", "dino", "simclr", "dino"})
      for (const ViewRequest& r : make_objective(objective, {8, 8, 1, preset})->views())
        schedule.add(r);
    // KL looks at the embedding's own view, but for the library's squashed one.
    EXPECT_EQ(schedule.views_per_sample(), preset == Preset::lib ? 63u : 62u);
    EXPECT_EQ(schedule.first_row(schedule.requests().size() - 1, 5),
              5 * (schedule.views_per_sample() - 49));
  }
}

}  // namespace
}  // namespace fungi
