// SPDX-License-Identifier: Apache-2.0
// config.json of a model of several networks: the facts of the image encoder stand in a part of
// their own, and those at the top are of another network.
#include <gtest/gtest.h>

#include "tests/support/tiny_checkpoint.h"

namespace fungi {
namespace {

using test::tiny_huggingface_clip;
using test::tiny_vit;
using test::TinyCheckpoint;
using Json = nlohmann::json;

TinyCheckpoint under(const std::string& prefix, const TinyCheckpoint& network) {
  TinyCheckpoint c;
  for (const auto& [name, shape] : network.shapes) c.shapes[prefix + name] = shape;
  return c;
}

// The text model of Git and Idefics is described at the top, with heads of its own.
TEST(ConfigRoot, TheTopMayBeOfTheTextModel) {
  TinyCheckpoint c = under("image_encoder.", tiny_huggingface_clip("vision_model.", 64));
  c.config = {{"model_type", "git"},
              {"num_attention_heads", 2},
              {"num_hidden_layers", 6},
              {"hidden_size", 32},
              {"hidden_act", "relu"},
              {"layer_norm_eps", 1e-12},
              {"vision_config",
               {{"model_type", "git_vision_model"},
                {"num_attention_heads", 4},
                {"hidden_act", "gelu"},
                {"layer_norm_eps", 1e-3}}}};
  const Architecture a = c.read();
  EXPECT_EQ(a.heads, 4u);
  EXPECT_EQ(a.norm_epsilon, 1e-3f);
  EXPECT_EQ(a.activation, kernel::Activation::gelu);
  c.config["vision_config"]["num_hidden_layers"] = 3;
  EXPECT_NE(c.refusal().find("vision_config/num_hidden_layers = 3, the tensors say 2"),
            std::string::npos)
      << c.refusal();
}

TEST(ConfigRoot, EveryPartIsReadAlike) {
  for (const auto& [part, prefix] : {std::pair("encoder", "encoder."),
                                     {"backbone_config", "backbone."},
                                     {"vision_config", "vision_tower."}}) {
    TinyCheckpoint c = under(prefix, tiny_vit(3, false, 12));
    c.config = {{"model_type", "whole"}, {"num_attention_heads", 8}};
    c.config[part] = {{"model_type", "vit"},    {"num_attention_heads", 2}, {"hidden_act", "relu"},
                      {"layer_norm_eps", 0.05}, {"image_size", {12, 16}},   {"hidden_size", 8}};
    const Architecture a = c.read();
    EXPECT_EQ(a.heads, 2u) << part;
    EXPECT_FALSE(a.heads_assumed);
    EXPECT_EQ(a.norm_epsilon, 0.05f);
    EXPECT_EQ(a.activation, kernel::Activation::relu);
    EXPECT_TRUE(a.input_h == 12 && a.input_w == 16);
    c.config[part]["model_type"] = "rf_detr_dinov2";
    EXPECT_NE(c.refusal().find(std::string(part) + "/model_type = rf_detr_dinov2"),
              std::string::npos)
        << c.refusal();
  }
}

TEST(ConfigRoot, SeveralPartsAreNotChosenFrom) {
  TinyCheckpoint c = tiny_vit(3, false, 16);
  const Json part{{"model_type", "vit"}, {"num_attention_heads", 2}};
  c.config = {{"vision_config", part}, {"backbone_config", part}};
  EXPECT_NE(c.refusal().find("vision_config and backbone_config"), std::string::npos)
      << c.refusal();
  c.config = {{"backbone_config", nullptr}, {"encoder", "vit"}, {"num_attention_heads", 2}};
  EXPECT_EQ(c.read().heads, 2u) << "no parts";
}

// Idefics and Kosmos-2 have CLIP's names, but others than its 12 heads where they do not say.
TEST(ConfigRoot, WhatOthersLeaveOutIsNotGuessed) {
  TinyCheckpoint c = tiny_huggingface_clip("vision_model.", 96);
  c.config = {{"model_type", "idefics"},
              {"num_attention_heads", 2},
              {"vision_config", {{"model_type", "idefics_vision"}, {"hidden_act", "gelu"}}}};
  EXPECT_NE(c.refusal().find("vision_config/num_attention_heads"), std::string::npos)
      << c.refusal();
  c.config["vision_config"]["num_attention_heads"] = 4;
  EXPECT_NE(c.refusal().find("layer_norm_eps"), std::string::npos) << c.refusal();
  c.config["vision_config"]["layer_norm_eps"] = 1e-5;
  EXPECT_EQ(c.read().heads, 4u);
}

// VisionTextDualEncoder projects what a pooler makes of the ViT.
TEST(ConfigRoot, AProjectionAfterAViTIsRefused) {
  TinyCheckpoint c = under("vision_model.", tiny_vit(3, false, 16));
  c.config = {{"model_type", "vision-text-dual-encoder"},
              {"vision_config", {{"model_type", "vit"}, {"num_attention_heads", 2}}}};
  EXPECT_EQ(c.refusal(), "");
  c.shapes["visual_projection.weight"] = {24, 8};
  EXPECT_NE(c.refusal().find("visual_projection.weight"), std::string::npos) << c.refusal();
}

}  // namespace
}  // namespace fungi
