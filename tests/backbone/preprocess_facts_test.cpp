// SPDX-License-Identifier: Apache-2.0
// The evaluation transform: what preprocessor_config.json and the user may say of it.
#include <gtest/gtest.h>

#include "tests/support/tiny_checkpoint.h"

namespace fungi {
namespace {

using test::TinyCheckpoint;
using Colours = std::array<float, 3>;

const StatedFacts kHeads{{"heads", "2"}};

TinyCheckpoint with(const nlohmann::json& processor) {
  TinyCheckpoint c = test::tiny_vit(3, false, 16);  // 16 pixels
  c.image_processor = processor;
  return c;
}

TEST(PreprocessFacts, HuggingFaceWithoutAFileIsItsViTProcessor) {
  const PreprocessFacts p = with(nullptr).read(kHeads).preprocess;
  EXPECT_EQ(p.transform.mean, (Colours{0.5f, 0.5f, 0.5f}));
  EXPECT_TRUE(p.transform.squashes() && p.transform.filter == Filter::bilinear && p.assumed);
  EXPECT_EQ(p.transform.resize_size, 16u);
}

TEST(PreprocessFacts, TheProcessorsFileSaysIt) {
  const nlohmann::json mean{0.48, 0.46, 0.41}, deviation{0.23, 0.22, 0.21};
  // google/vit, facebook/deit and facebook/dinov2, at a fourteenth of their sizes
  PreprocessFacts p = with({{"image_mean", mean},
                            {"image_std", deviation},
                            {"size", {{"height", 16}, {"width", 16}}},
                            {"resample", 2}})
                          .read(kHeads)
                          .preprocess;
  EXPECT_EQ(p.transform.mean, (Colours{0.48f, 0.46f, 0.41f}));
  EXPECT_EQ(p.transform.std, (Colours{0.23f, 0.22f, 0.21f}));
  EXPECT_TRUE(p.transform.squashes() && p.transform.filter == Filter::bilinear && !p.assumed);
  EXPECT_EQ(p.transform.resize_size, 16u);
  p = with({{"size", 20}, {"crop_size", 16}, {"do_center_crop", true}, {"resample", 3}})
          .read(kHeads)
          .preprocess;
  EXPECT_TRUE(p.transform.squashes() && p.transform.filter != Filter::bilinear);
  EXPECT_EQ(p.transform.resize_size, 20u);
  const nlohmann::json shortest{{"size", {{"shortest_edge", 20}}},
                                {"crop_size", {{"height", 16}, {"width", 16}}}};
  p = with(shortest).read(kHeads).preprocess;
  EXPECT_FALSE(p.transform.squashes());
  EXPECT_EQ(p.transform.resize_size, 20u);
  EXPECT_EQ(with(shortest).read({{"heads", "2"}, {"size", "32"}}).preprocess.transform.resize_size,
            40u);
  p = with({{"do_normalize", false}}).read(kHeads).preprocess;
  EXPECT_EQ(p.transform.mean, (Colours{0, 0, 0}));
  EXPECT_EQ(p.transform.std, (Colours{1, 1, 1}));
}

// (r x - mean) / std for pixels x: with r = 2 / 255 the same as mean / 2 and std / 2 at 1 / 255.
TEST(PreprocessFacts, AnotherScaleOfThePixelsGoesIntoTheStatistics) {
  const nlohmann::json mean{1, 1, 0.5}, deviation{1, 0.5, 0.25};
  PreprocessFacts p =
      with({{"image_mean", mean}, {"image_std", deviation}, {"rescale_factor", 2.0 / 255}})
          .read(kHeads)
          .preprocess;
  EXPECT_EQ(p.transform.mean, (Colours{0.5f, 0.5f, 0.25f}));
  EXPECT_EQ(p.transform.std, (Colours{0.5f, 0.25f, 0.125f}));
  p = with({{"do_normalize", false}, {"rescale_factor", 1.0}}).read(kHeads).preprocess;
  EXPECT_EQ(p.transform.mean, (Colours{0, 0, 0}));
  EXPECT_FLOAT_EQ(p.transform.std[0], 1 / 255.0f);
  p = with(
          {{"image_mean", mean}, {"image_std", deviation}, {"rescale_factor", 0.00392156862745098}})
          .read(kHeads)
          .preprocess;
  EXPECT_EQ(p.transform.std, (Colours{1, 0.5f, 0.25f})) << "what every published file says";
}

TEST(PreprocessFacts, AFileThatIsNotUnderstoodIsRefused) {
  const auto refused = [](const nlohmann::json& processor, const char* what) {
    const std::string said = with(processor).refusal(kHeads);
    EXPECT_NE(said.find("preprocessor_config.json"), std::string::npos) << said;
    EXPECT_NE(said.find(what), std::string::npos) << said;
  };
  refused(nlohmann::json::array({1}), "object");
  refused({{"image_mean", {1, 2}}, {"image_std", {1, 1, 1}}}, "image_mean");
  refused({{"image_mean", {1, 2, "x"}}, {"image_std", {1, 1, 1}}}, "image_mean");
  refused({{"image_mean", {0, 0, 0}}, {"image_std", {1, 0, 1}}}, "deviations");
  refused({{"size", {{"height", 16}, {"width", 20}}}}, "a square");
  refused({{"size", {{"height", "16"}, {"width", "16"}}}}, "pixels");
  refused({{"size", -4}}, "pixels");
  refused({{"size", 1e9}}, "pixels");
  refused({{"size", 16}, {"crop_size", 20}}, "larger");
  refused({{"resample", 1}}, "resample");
  refused({{"do_resize", "yes"}}, "do_resize");
  refused({{"do_resize", false}}, "do_resize");
  refused({{"do_rescale", false}}, "do_rescale");
  refused({{"rescale_factor", 0}}, "rescale_factor");
  refused({{"rescale_factor", "1/255"}}, "rescale_factor");
  refused({{"image_mean", {0, 0, 0}}}, "together");
  refused({{"image_mean", {1e39, 0, 0}}, {"image_std", {1, 1, 1}}}, "finite");
  refused({{"size", 16000}, {"crop_size", 4}}, "too small");
  EXPECT_TRUE(with({{"do_resize", nullptr}}).read(kHeads).preprocess.assumed) << "it says nothing";
}

TEST(PreprocessFacts, ItsProcessorsRoundAnOddMarginDown) {
  EXPECT_FALSE(with(nullptr).read(kHeads).preprocess.transform.floor_crop);
  const TinyCheckpoint c = with({{"size", {{"shortest_edge", 20}}}, {"crop_size", 16}});
  EXPECT_TRUE(c.read(kHeads).preprocess.transform.floor_crop);
  EXPECT_FALSE(c.read({{"heads", "2"}, {"crop", "even"}}).preprocess.transform.floor_crop);
  EXPECT_TRUE(
      with(nullptr).read({{"heads", "2"}, {"crop", "floor"}}).preprocess.transform.floor_crop);
  EXPECT_NE(c.refusal({{"heads", "2"}, {"crop", "left"}}).find("floor or even"), std::string::npos);
}

TEST(PreprocessFacts, ProcessorsThatDoMoreAreRefused) {
  const auto said = [](const nlohmann::json& processor) { return with(processor).refusal(kHeads); };
  for (const char* kind : {"ViTImageProcessor", "ViTFeatureExtractor", "BitImageProcessorFast",
                           "CLIPImageProcessorPil"})
    EXPECT_EQ(said({{"image_processor_type", kind}, {"size", 16}}), "") << kind;
  for (const char* kind : {"ConvNextImageProcessor", "LevitImageProcessor",
                           "EfficientNetImageProcessor", "IdeficsImageProcessor", "Mine"})
    for (const char* key : {"image_processor_type", "feature_extractor_type"})
      EXPECT_NE(said({{key, kind}, {"size", 16}}).find(kind), std::string::npos)
          << said({{key, kind}});
  for (const auto& [key, value] : {std::pair<const char*, nlohmann::json>{"crop_pct", 0.875},
                                   {"rescale_offset", true},
                                   {"keep_aspect_ratio", true},
                                   {"ensure_multiple_of", 14},
                                   {"do_pad", true}})
    EXPECT_NE(said({{"size", 16}, {key, value}}).find(key), std::string::npos) << key;
  EXPECT_EQ(said({{"image_processor_type", "DPTImageProcessor"},
                  {"size", {{"height", 16}, {"width", 16}}},
                  {"keep_aspect_ratio", false},
                  {"ensure_multiple_of", 1}}),
            "");
  EXPECT_NE(said({{"size", {{"shortest_edge", 16}}}, {"do_center_crop", false}}).find("square"),
            std::string::npos);
  // What a bare number means is up to the kind.
  const auto squash = [](const char* kind) {
    return with({{"image_processor_type", kind}, {"size", 16}})
        .read(kHeads)
        .preprocess.transform.squashes();
  };
  EXPECT_TRUE(squash("ViTImageProcessor"));
  EXPECT_FALSE(squash("BitImageProcessor"));
}

// All that transformers 5 leaves of a CLIPProcessor.
TEST(PreprocessFacts, TheImageProcessorMayBeAPartOfAnother) {
  TinyCheckpoint c = with(nullptr);
  const nlohmann::json mean{0.4, 0.3, 0.2}, deviation{0.1, 0.2, 0.3};
  c.processor = {{"processor_class", "CLIPProcessor"},
                 {"image_processor",
                  {{"image_processor_type", "CLIPImageProcessor"},
                   {"image_mean", mean},
                   {"image_std", deviation},
                   {"size", {{"shortest_edge", 20}}},
                   {"crop_size", {{"height", 16}, {"width", 16}}}}}};
  PreprocessFacts p = c.read(kHeads).preprocess;
  EXPECT_EQ(p.transform.mean, (Colours{0.4f, 0.3f, 0.2f}));
  EXPECT_TRUE(p.transform.resize_size == 20 && !p.transform.squashes() && p.transform.floor_crop &&
              !p.assumed);
  EXPECT_EQ(p.source, "processor_config.json");
  c.image_processor = {{"image_mean", deviation}, {"image_std", mean}};
  EXPECT_EQ(c.read(kHeads).preprocess.transform.mean, (Colours{0.1f, 0.2f, 0.3f}))
      << "it comes first";
  c.image_processor = nullptr;
  c.processor["image_processor"]["crop_pct"] = 0.9;
  EXPECT_NE(c.refusal(kHeads).find("processor_config.json: crop_pct"), std::string::npos);
  c.processor = {{"processor_class", "CLIPProcessor"}};  // of transformers 4: nothing of pictures
  EXPECT_TRUE(c.read(kHeads).preprocess.assumed);
}

// DINOv2's published files have positions for 518 pixels and a processor that crops to 224.
TEST(PreprocessFacts, DinoV2IsRunAtTheSizeOfItsCrop) {
  TinyCheckpoint c = test::tiny_dinov2(25);  // 20 pixels
  EXPECT_EQ(c.read(kHeads).input_h, 20u);
  c.image_processor = {{"image_processor_type", "BitImageProcessor"},
                       {"size", {{"shortest_edge", 18}}},
                       {"crop_size", {{"height", 16}, {"width", 16}}}};
  const Architecture a = c.read(kHeads);
  EXPECT_TRUE(a.input_h == 16 && a.input_w == 16 && a.stored_grid_h == 5);
  EXPECT_EQ(a.preprocess.transform.resize_size, 18u);
  EXPECT_EQ(c.read({{"heads", "2"}, {"size", "32"}}).preprocess.transform.resize_size, 36u)
      << "the user's size";
  c.image_processor["crop_size"] = 18;
  EXPECT_NE(c.refusal(kHeads).find("multiple of the patch"), std::string::npos)
      << c.refusal(kHeads);
}

TEST(PreprocessFacts, TheUserHasTheLastWord) {
  const TinyCheckpoint c = with({{"image_mean", {0, 0, 0}}, {"image_std", {1, 1, 1}}});
  const auto stated = [&](StatedFacts facts) {
    facts["heads"] = "2";
    return c.read(facts).preprocess;
  };
  PreprocessFacts p = stated({{"mean", "0.25"},
                              {"std", "0.1,0.2,0.3"},
                              {"resize", "18"},
                              {"squash", "no"},
                              {"interpolation", "bicubic"}});
  EXPECT_EQ(p.transform.mean, (Colours{0.25f, 0.25f, 0.25f}));
  EXPECT_EQ(p.transform.std, (Colours{0.1f, 0.2f, 0.3f}));
  EXPECT_TRUE(p.transform.resize_size == 18 && !p.transform.squashes() &&
              p.transform.filter != Filter::bilinear && !p.assumed);
  for (const auto& [key, value] : {std::pair{"mean", "x"},
                                   {"mean", "1,2"},
                                   {"mean", "1,2,3,"},
                                   {"mean", "0.5,"},
                                   {"std", "1e-40"},
                                   {"mean", "nan"},
                                   {"std", "0"},
                                   {"std", ""},
                                   {"resize", "15"},
                                   {"resize", "20x20"},
                                   {"squash", "maybe"},
                                   {"interpolation", "lanczos"}}) {
    const std::string said = c.refusal({{"heads", "2"}, {key, value}});
    EXPECT_NE(said.find(key), std::string::npos) << key << "=" << value << ": " << said;
  }
  EXPECT_NE(test::tiny_bert("bert.").refusal({{"heads", "2"}, {"mean", "0.5"}}).find("only images"),
            std::string::npos);
}

TEST(PreprocessFacts, TimmsConfigTellsTheWholeTransform) {
  TinyCheckpoint c = test::tiny_timm(577, 16, "", 768);  // 384 pixels
  nlohmann::json timm{{"mean", {.5, .4, .3}}, {"std", {.2, .2, .1}}, {"crop_pct", 0.95}};
  timm["crop_mode"] = "squash", timm["interpolation"] = "bilinear";
  const auto transform = [&](const nlohmann::json& config) {
    c.config = config;
    const PreprocessFacts p = c.read().preprocess;
    EXPECT_EQ(p.transform.mean, (std::array{.5f, .4f, .3f}));
    EXPECT_EQ(p.transform.std, (std::array{.2f, .2f, .1f}));
    EXPECT_EQ(p.transform.resize_size, 404u);
    EXPECT_TRUE(p.transform.squashes() && p.transform.filter == Filter::bilinear && !p.assumed);
  };
  transform({{"architecture", "vit_base_patch16_384"}, {"pretrained_cfg", timm}});
  nlohmann::json older = timm;  // as timm wrote it before 0.8
  older["architecture"] = "vit_base_patch16_384", older["input_size"] = {3, 384, 384};
  transform(older);
  for (const auto& [key, value] :
       {std::pair{"crop_mode", "border"}, {"interpolation", "lanczos"}}) {
    c.config = {{"architecture", "vit_base_patch16_384"}, {"pretrained_cfg", timm}};
    c.config["pretrained_cfg"][key] = value;
    EXPECT_TRUE(c.refusal().find(key) != std::string::npos &&
                c.refusal().find(value) != std::string::npos)
        << c.refusal();
  }
}

TEST(PreprocessFacts, WhatTimmsConfigLeavesOutIsImageNets) {
  TinyCheckpoint c = test::tiny_timm(197, 16);
  const auto transform = [&](const nlohmann::json& timm) {
    c.config = {{"architecture", "vit"}, {"pretrained_cfg", timm}};
    return c.read().preprocess;
  };
  PreprocessFacts p = transform({{"mean", {.5, .5, .5}}, {"crop_pct", 0.9}});
  EXPECT_EQ(p.transform.std, (Colours{0.229f, 0.224f, 0.225f}));
  p = transform({{"crop_pct", 1.0}, {"interpolation", "bilinear"}});
  EXPECT_TRUE(p.transform.filter == Filter::bilinear && p.transform.resize_size == 224 &&
              !p.assumed);
  EXPECT_EQ(p.transform.mean, (Colours{0.485f, 0.456f, 0.406f}));
  for (const nlohmann::json& wrong : {nlohmann::json{.5, .5}, {.5, .5, .5, .5}}) {
    c.config = {{"architecture", "vit"}, {"pretrained_cfg", {{"mean", wrong}}}};
    EXPECT_NE(c.refusal().find("three numbers"), std::string::npos) << c.refusal();
  }
  EXPECT_EQ(transform({{"mean", 0.25}}).transform.mean, (Colours{0.25f, 0.25f, 0.25f}));
  c.config["pretrained_cfg"] = {{"interpolation", true}};
  EXPECT_NE(c.refusal().find("interpolation"), std::string::npos) << c.refusal();
  c.config = {{"model_type", "my"}, {"std", 0.02}};  // not timm's: another program's own words
  EXPECT_TRUE(c.read().preprocess.assumed);
}

TEST(PreprocessFacts, EvaFollowsItsConfig) {
  const std::filesystem::path golden = FUNGI_GOLDEN_DIR "/backbone/timm_eva02_clip";
  const test::TemporaryFolder folder;
  std::filesystem::copy(golden / "model.safetensors", folder.path());
  EXPECT_EQ(read_architecture(Checkpoint::open(folder.path()), {{"heads", "3"}})
                .preprocess.transform.resize_size,
            size_t(16 / 0.9));
  nlohmann::json config = nlohmann::json::parse(std::ifstream(golden / "config.json"));
  config["pretrained_cfg"]["crop_pct"] = 1.0;
  config["pretrained_cfg"]["crop_mode"] = "squash";
  std::ofstream(folder / "config.json") << config;
  const PreprocessFacts p = read_architecture(Checkpoint::open(folder.path())).preprocess;
  EXPECT_TRUE(p.transform.squashes() && p.transform.resize_size == 16) << p.transform.resize_size;
}

TEST(PreprocessFacts, TimmsClipWithoutConfigIsCroppedByItsPatch) {
  for (const auto& [patch, resize] : {std::pair{size_t(16), size_t(248)}, {14, 224}, {32, 248}}) {
    const size_t side = 224 / patch;
    TinyCheckpoint c = test::tiny_timm(side * side + 1, patch);
    c.shapes["norm_pre.weight"] = c.shapes["norm_pre.bias"] = {test::kTimmWidth};
    const PreprocessFacts p = c.read({{"activation", "quick_gelu"}}).preprocess;
    EXPECT_EQ(p.transform.resize_size, resize) << patch;
    EXPECT_TRUE(p.assumed) << "open_clip's weights have others";
  }
}

TEST(PreprocessFacts, TorchvisionsFirstWeightsAndSwags) {
  Architecture a =
      read_architecture(Checkpoint::open(FUNGI_GOLDEN_DIR "/backbone/torchvision_vit/model.pth"),
                        {{"heads", "2"}, {"size", "224"}});
  EXPECT_TRUE(a.preprocess.transform.filter == Filter::bilinear &&
              a.preprocess.transform.resize_size == 256);
  TinyCheckpoint c;
  const size_t d = test::kTimmWidth;
  const auto torchvision = [&](size_t side, size_t patch) {
    const size_t positions = side / patch * (side / patch) + 1;
    c.shapes["class_token"] = {1, 1, d};
    c.shapes["encoder.pos_embedding"] = {1, positions, d};
    c.shapes["conv_proj.weight"] = {d, 3, patch, patch};
    const std::string f = "encoder.layers.encoder_layer_0.";
    c.shapes[f + "self_attention.in_proj_weight"] = {3 * d, d};
    c.shapes[f + "self_attention.in_proj_bias"] = {3 * d};
    c.shapes[f + "self_attention.out_proj.weight"] = c.shapes[f + "mlp.0.weight"] = {d, d};
    c.shapes[f + "mlp.3.weight"] = {d, d};
    for (const std::string vector : {"conv_proj.bias", "encoder.ln.weight", "encoder.ln.bias"})
      c.shapes[vector] = {d};
    for (const char* vector : {"ln_1.weight", "ln_1.bias", "ln_2.weight", "ln_2.bias",
                               "self_attention.out_proj.bias", "mlp.0.bias", "mlp.3.bias"})
      c.shapes[f + vector] = {d};
    return c.read().preprocess;
  };
  PreprocessFacts p = torchvision(384, 16);
  EXPECT_TRUE(p.transform.resize_size == 384 && p.transform.filter != Filter::bilinear &&
              !p.assumed)
      << p.transform.resize_size;
  p = torchvision(224, 14);
  EXPECT_TRUE(p.transform.resize_size == 224 && p.transform.filter != Filter::bilinear &&
              !p.assumed)
      << p.transform.resize_size;
  p = torchvision(224, 32);
  EXPECT_TRUE(p.transform.resize_size == 256 && p.transform.filter == Filter::bilinear &&
              !p.assumed)
      << p.transform.resize_size;
  EXPECT_TRUE(torchvision(224, 16).assumed) << "SWAG has such weights, too";
}

TEST(PreprocessFacts, AugRegsLargerModelsCropNothing) {
  TinyCheckpoint c = test::tiny_timm(577, 16);
  EXPECT_EQ(c.read({{"family", "augreg"}}).preprocess.transform.resize_size, 384u);
  c = test::tiny_timm(197, 16);
  EXPECT_EQ(c.read({{"family", "augreg"}}).preprocess.transform.resize_size, 248u);
}

}  // namespace
}  // namespace fungi
