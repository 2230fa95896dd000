// SPDX-License-Identifier: Apache-2.0
// What timm's config.json says in model_args: read, or refused by its name.
#include <gtest/gtest.h>

#include "tests/support/tiny_checkpoint.h"

namespace fungi {
namespace {

using test::kTimmWidth;
using test::tiny_timm;
using test::TinyCheckpoint;
using Json = nlohmann::json;

TinyCheckpoint eva() {
  return test::shaped_like(FUNGI_GOLDEN_DIR "/backbone/timm_eva02_clip/model.safetensors");
}

void expect_refused(const TinyCheckpoint& c, const std::string& key) {
  EXPECT_NE(c.refusal().find("model_args/" + key), std::string::npos) << key << ": " << c.refusal();
}

TEST(TimmArgs, OfAViTAreKnownOrRefused) {
  TinyCheckpoint c = tiny_timm();
  c.config = {{"architecture", "vit_tiny_patch16_224"},
              {"model_args",
               {{"img_size", 16},
                {"embed_dim", 64},
                {"depth", 2},
                {"num_heads", 4},
                {"drop_path_rate", 0.1},
                {"init_values", nullptr},
                {"num_classes", 0},
                {"dynamic_img_size", true},
                {"norm_layer", nullptr}}}};
  EXPECT_EQ(c.refusal(), "");
  for (const auto& [key, value] : {std::pair<const char*, Json>{"norm_layer", "layernorm"},
                                   {"block_fn", "ResPostBlock"},
                                   {"mlp_layer", "GluMlp"},
                                   {"use_rot_pos_emb", true},
                                   {"use_post_norm", true},
                                   {"a_new_one", 1}}) {
    TinyCheckpoint other = c;
    other.config["model_args"][key] = value;
    expect_refused(other, key);
  }
}

TEST(TimmArgs, OfEvaAreThoseThatAreRun) {
  EXPECT_EQ(eva().refusal(), "");
  const std::pair<const char*, Json> wrong[] = {
      {"use_rot_pos_emb", false},        {"ref_feat_shape", {8, 8}},
      {"ref_feat_shape", nullptr},       {"rope_temperature", 100.},
      {"rope_grid_offset", 0.5},         {"rope_grid_indexing", "xy"},
      {"rope_type", "dinov3"},           {"rope_type", "mixed"},
      {"use_post_norm", true},           {"rope_rotate_half", true},
      {"use_pre_transformer_norm", true}};
  for (const auto& [key, value] : wrong) {
    TinyCheckpoint c = eva();
    c.config["model_args"][key] = value;
    expect_refused(c, key);
  }
  TinyCheckpoint c = eva();
  c.config["model_args"].update({{"use_rot_pos_emb", true},
                                 {"ref_feat_shape", {16, 16}},
                                 {"rope_temperature", 10000.},
                                 {"rope_grid_offset", 0},
                                 {"rope_type", "cat"},
                                 {"use_post_norm", false},
                                 {"rope_mrope_section", nullptr}});
  EXPECT_EQ(c.refusal(), "");
}

// timm's mixed kind learns its angles; the constant ones are computed here.
TEST(TimmArgs, LearnedAnglesAreRefused) {
  TinyCheckpoint c = eva();
  c.config = nullptr;
  c.shapes["rope.freqs"] = {2, 2, 4};
  const StatedFacts heads{{"heads", "3"}};
  EXPECT_NE(c.refusal(heads).find("rope.freqs"), std::string::npos) << c.refusal(heads);
  c.shapes.erase("rope.freqs");
  c.shapes["rope.bands"] = {2}, c.shapes["rope.freqs_cos"] = c.shapes["rope.freqs_sin"] = {16, 8};
  EXPECT_EQ(c.refusal(heads), "");
}

TEST(TimmArgs, EvasNormAfterPoolingIsOfWhatIsPooled) {
  TinyCheckpoint c = eva();
  for (const std::string part : {".weight", ".bias"}) {
    c.shapes["fc_norm" + part] = c.shapes["norm" + part];
    c.shapes.erase("norm" + part), c.shapes.erase("head" + part);
  }
  c.config["global_pool"] = c.config["model_args"]["global_pool"] = "token";
  c.config["model_args"]["use_fc_norm"] = true;
  EXPECT_TRUE(c.read().pooling == Pooling::first && c.read().norm_after_pooling);
  c.config["global_pool"] = c.config["model_args"]["global_pool"] = "avg";
  EXPECT_TRUE(c.read().pooling == Pooling::mean_patches && c.read().norm_after_pooling);
}

TEST(TimmArgs, TheActivationOfAGatedMlp) {
  TinyCheckpoint c = tiny_timm();
  for (const std::string b : {"blocks.0.", "blocks.1."}) {
    c.shapes[b + "mlp.fc1.weight"] = {2 * test::kTimmHidden, kTimmWidth};
    c.shapes[b + "mlp.fc1.bias"] = {2 * test::kTimmHidden};
    c.shapes[b + "ls1.gamma"] = c.shapes[b + "ls2.gamma"] = {kTimmWidth};
  }
  c.config = {{"architecture", "vit_giant_patch14_dinov2"},
              {"model_args", {{"embed_dim", kTimmWidth}, {"num_heads", 4}}}};
  EXPECT_EQ(c.read().activation, kernel::Activation::silu);
  c.config["model_args"]["act_layer"] = "relu";
  EXPECT_EQ(c.read().activation, kernel::Activation::relu);
}

TEST(TimmArgs, TheImageSizeIsTheModels) {
  TinyCheckpoint c = tiny_timm();  // 16 positions: 4x4, or 2x8
  c.config = {{"architecture", "vit_tiny_patch16_224"},
              {"model_args", {{"img_size", {8, 32}}, {"embed_dim", kTimmWidth}, {"num_heads", 4}}},
              {"pretrained_cfg", {{"input_size", {3, 224, 224}}}}};
  const Architecture a = c.read();
  EXPECT_TRUE(a.stored_grid_h == 2 && a.stored_grid_w == 8);
  EXPECT_TRUE(a.input_h == 8 && a.input_w == 32);
}

// A norm after the embedding does not make a CLIP of a ViT.
TEST(TimmArgs, TheEpsilonOfANormAfterTheEmbedding) {
  TinyCheckpoint c = tiny_timm();
  c.shapes["norm_pre.weight"] = c.shapes["norm_pre.bias"] = {kTimmWidth};
  c.config = {{"architecture", "vit_tiny_patch16_224"},
              {"model_args", {{"pre_norm", true}, {"embed_dim", kTimmWidth}, {"num_heads", 4}}}};
  EXPECT_EQ(c.read().norm_epsilon, 1e-6f);
  c.config["architecture"] = "vit_base_patch16_clip_224";
  EXPECT_EQ(c.read().norm_epsilon, 1e-5f);
  c.config = nullptr;
  EXPECT_EQ(c.read({{"activation", "gelu"}}).norm_epsilon, 1e-5f);
}

}  // namespace
}  // namespace fungi
