// SPDX-License-Identifier: Apache-2.0
// What the preset `paper` makes of a CLIP tower: GELU instead of the activation of its weights, and
// a projection as tall as the model is wide (SPEC 1.5, 4 and 8). Its losses and views are in
// tests/objective/factory_test.cpp and view_schedule_test.cpp.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fungi/feature/extractor.h"
#include "fungi/feature/reopen.h"

namespace fungi {
namespace {

using kernel::Activation;

const std::vector<std::string> kObjectives{"kl"};

ExtractorOptions options_of(Preset preset) {
  ExtractorOptions o;
  o.objectives = kObjectives, o.preset = preset;
  return o;
}

Backbone open(const std::string& file, Preset preset, StatedFacts facts = {}) {
  static Pool pool(1);
  facts["heads"] = file.starts_with("timm_eva") ? "3" : "2";
  return Backbone::open(FUNGI_GOLDEN_DIR "/backbone/" + file,
                        backbone_for(options_of(preset), {.precision = Precision::f32,
                                                          .stated_facts = std::move(facts)}),
                        pool);
}

TEST(PaperPreset, RunsClipWithGelu) {
  for (const char* file : {"clip_torchscript/model.pt", "timm_clip_quickgelu/model.safetensors"}) {
    const Backbone paper = open(file, Preset::paper);
    EXPECT_EQ(paper.architecture().activation, Activation::gelu) << file;
    EXPECT_EQ(paper.options().stated_facts.at("activation"), "gelu") << file;
    for (const Preset other : {Preset::native, Preset::lib})
      EXPECT_EQ(open(file, other).architecture().activation, Activation::quick_gelu) << file;
    EXPECT_EQ(open(file, Preset::paper, {{"activation", "quick_gelu"}}).architecture().activation,
              Activation::quick_gelu)
        << "what the user states has the last word: " << file;
  }
  // Nothing tells the activation of this one, and nothing has to.
  EXPECT_EQ(open("openai_clip/model.pt", Preset::paper).architecture().activation,
            Activation::gelu);
  EXPECT_THROW(open("openai_clip/model.pt", Preset::native), Error);
}

TEST(PaperPreset, LeavesOtherActivationsAlone) {
  for (const char* file : {"timm_vit/model.safetensors", "dinov2_giant/model.pth",
                           "timm_eva02_clip/model.safetensors"}) {
    const Backbone paper = open(file, Preset::paper);
    EXPECT_EQ(paper.architecture().activation, open(file, Preset::native).architecture().activation)
        << file;
    EXPECT_FALSE(paper.options().clip_with_gelu) << file;
    EXPECT_FALSE(paper.options().stated_facts.contains("activation")) << file;
  }
}

TEST(PaperPreset, RefusesClipOpenedForAnotherPreset) {
  Pool pool(1);
  const Backbone own = open("timm_clip_quickgelu/model.safetensors", Preset::native);
  EXPECT_NO_THROW(Extractor(own, options_of(Preset::native), pool));
  EXPECT_THROW(Extractor(own, options_of(Preset::paper), pool), Error);
}

TEST(PaperPreset, ProjectsToTheWidthOfTheModel) {
  Pool pool(1);
  for (const char* file : {"timm_clip/model.safetensors", "timm_eva02_clip/model.safetensors"})
    for (const Preset preset : {Preset::native, Preset::paper, Preset::lib}) {
      const Backbone backbone = open(file, preset);
      const Architecture& a = backbone.architecture();
      ASSERT_NE(a.width, a.embedding_width) << "this test needs a projected embedding";
      EXPECT_EQ(Extractor(backbone, options_of(preset), pool).blocks().at(1).width,
                preset == Preset::paper ? a.width : a.embedding_width)
          << file;
    }
}

TEST(PaperPreset, IsReopenedAsItWas) {
  Pool pool(1);
  const Backbone backbone = open("timm_clip_quickgelu/model.safetensors", Preset::paper);
  ExtractionRecord record{
      {.spec = Extractor(backbone, options_of(Preset::paper), pool).spec()}, {}, "store"};
  EXPECT_EQ(backbone_options(record).stated_facts.at("activation"), "gelu");
  // The record alone counts: rows made with a stated activation keep it.
  auto settings = nlohmann::json::parse(record.manifest.spec.settings);
  settings["stated"]["activation"] = "quick_gelu";
  record.manifest.spec.settings = settings.dump();
  const BackboneOptions o = backbone_options(record);
  EXPECT_EQ(o.stated_facts.at("activation"), "quick_gelu");
  EXPECT_FALSE(o.clip_with_gelu);
}

}  // namespace
}  // namespace fungi
