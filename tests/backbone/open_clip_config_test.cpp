// SPDX-License-Identifier: Apache-2.0
// open_clip_config.json: what it says is done, or refused; and the heads of open_clip's timm
// trunks.
#include <gtest/gtest.h>

#include "tests/support/tiny_checkpoint.h"

namespace fungi {
namespace {

using test::tiny_open_clip;
using test::tiny_timm;
using test::TinyCheckpoint;
using Json = nlohmann::json;

TinyCheckpoint with(const Json& vision, bool quick = false) {
  TinyCheckpoint c = tiny_open_clip();
  c.open_clip = {{"model_cfg", {{"embed_dim", 24}, {"quick_gelu", quick}}}};
  c.open_clip["model_cfg"]["vision_cfg"] = {{"width", 64}, {"layers", 2}, {"head_width", 16}};
  c.open_clip["model_cfg"]["vision_cfg"].update(vision);
  return c;
}

TEST(OpenClipConfig, TellsWhatNoTensorDoes) {
  using enum kernel::Activation;
  const Architecture plain = with(Json::object()).read();
  EXPECT_EQ(plain.heads, 4u);
  EXPECT_FALSE(plain.heads_assumed);
  EXPECT_EQ(plain.activation, gelu);
  EXPECT_EQ(plain.norm_epsilon, 1e-5f);
  EXPECT_TRUE(plain.pooling == Pooling::first && !plain.norm_after_pooling);
  EXPECT_EQ(with(Json::object(), true).read().activation, quick_gelu);
  EXPECT_EQ(with({{"act_kwargs", {{"approximate", "tanh"}}}}).read().activation, gelu_tanh);
  EXPECT_EQ(with({{"norm_kwargs", {{"eps", 0.01}}}}).read().norm_epsilon, 0.01f);
  EXPECT_EQ(with({{"pool_type", "avg"}}).read().pooling, Pooling::mean_patches);
  EXPECT_TRUE(
      with({{"pool_type", "avg"}, {"final_ln_after_pool", true}}).read().norm_after_pooling);
  const StatedFacts stated{{"heads", "8"}, {"activation", "relu"}, {"pooling", "first"}};
  const Architecture a = with({{"pool_type", "avg"}}).read(stated);
  EXPECT_TRUE(a.heads == 8 && a.activation == relu && a.pooling == Pooling::first);
}

TEST(OpenClipConfig, WhatIsNotKnownIsRefused) {
  const std::pair<const char*, Json> wrong[] = {{"pool_type", "none"},
                                                {"norm_kwargs", {{"elementwise_affine", false}}},
                                                {"act_kwargs", {{"approximate", "x"}}},
                                                {"attentional_pool", true},
                                                {"timm_model_name", "vit_base_patch16_224"},
                                                {"input_patchnorm", true},
                                                {"layers", 12},
                                                {"head_width", 48},
                                                {"head_width", "x"}};
  for (const auto& [key, value] : wrong) {
    const std::string said = with({{key, value}}).refusal();
    EXPECT_NE(said.find("open_clip_config.json"), std::string::npos) << key << ": " << said;
    EXPECT_NE(said.find(key), std::string::npos) << key << ": " << said;
  }
  for (const auto& [broken, expected] :
       {std::pair<Json, const char*>{Json::array(),
                                     "open_clip_config.json: expected a JSON object"},
        {Json{{"model_cfg", 3}}, "vision_cfg"},
        {Json{{"model_cfg", Json::array({1})}}, "vision_cfg"},
        {Json::object(), "vision_cfg"}}) {
    TinyCheckpoint c = tiny_open_clip();
    c.open_clip = broken;
    EXPECT_NE(c.refusal().find(expected), std::string::npos) << c.refusal();
  }
}

TEST(OpenClipConfig, HasTheEvaluationTransform) {
  TinyCheckpoint c = with(Json::object());
  c.open_clip["preprocess_cfg"] = {{"mean", {.5, .4, .3}},
                                   {"std", {.2, .2, .1}},
                                   {"interpolation", "bilinear"},
                                   {"resize_mode", "squash"}};
  PreprocessFacts p = c.read().preprocess;
  EXPECT_EQ(p.transform.mean, (std::array{.5f, .4f, .3f}));
  EXPECT_EQ(p.transform.std, (std::array{.2f, .2f, .1f}));
  EXPECT_TRUE(p.transform.squashes() && p.transform.filter == Filter::bilinear &&
              !p.transform.floor_crop && p.transform.resize_size == 16);
  c.image_processor = {{"image_mean", {0, 0, 0}}, {"image_std", {1, 1, 1}}};
  EXPECT_EQ(c.read().preprocess.transform.mean[0], .5f)
      << "the other is of Hugging Face's weights beside it";
  for (const auto& [key, value] : {std::pair<const char*, Json>{"resize_mode", "longest"},
                                   {"interpolation", "random"},
                                   {"mean", {1, 2}},
                                   {"std", {1, 2, "x"}}}) {
    TinyCheckpoint wrong = c;
    wrong.open_clip["preprocess_cfg"][key] = value;
    EXPECT_NE(wrong.refusal().find(key), std::string::npos) << wrong.refusal();
  }
}

TEST(OpenClipTrunk, AHeadThatIsNotRunIsRefused) {
  TinyCheckpoint c = tiny_timm(17, 4, "visual.trunk.");
  EXPECT_EQ(c.refusal(), "");
  for (const char* head :
       {"visual.head.proj.weight", "visual.head.mlp.fc1.weight", "visual.trunk.head.weight"}) {
    TinyCheckpoint other = c;
    other.shapes[head] = {24, 64};
    EXPECT_NE(other.refusal().find(head), std::string::npos) << other.refusal();
  }
  TinyCheckpoint eva = test::shaped_like(  // whose own head is the projection
      FUNGI_GOLDEN_DIR "/backbone/timm_eva02_clip/model.safetensors", "visual.trunk.");
  eva.config = nullptr;
  EXPECT_TRUE(eva.read({{"heads", "3"}}).head);
}

TEST(OpenClipTrunk, IsPooledAsItsConfigurationSays) {
  TinyCheckpoint c = tiny_timm(17, 4, "visual.trunk.");
  c.open_clip = {{"model_cfg", {{"vision_cfg", {{"timm_pool", "token"}}}}}};
  EXPECT_EQ(c.refusal(), "");
  for (const char* pool : {"avg", "map", ""}) {
    c.open_clip["model_cfg"]["vision_cfg"]["timm_pool"] = pool;
    EXPECT_NE(c.refusal().find("timm_pool"), std::string::npos) << c.refusal();
  }
  c.open_clip["model_cfg"]["vision_cfg"]["timm_pool"] = "avg";
  EXPECT_EQ(c.read({{"pooling", "mean_patches"}}).pooling, Pooling::mean_patches);
}

}  // namespace
}  // namespace fungi
