// SPDX-License-Identifier: Apache-2.0
// Files whose names look familiar and which are something else, or half of it: refused with the
// tensor or fact named, never run as a plain ViT. And facts that a size or config.json decides.
#include <gtest/gtest.h>

#include "fungi/backbone/backbone.h"
#include "tests/support/errors.h"
#include "tests/support/tiny_checkpoint.h"

namespace fungi {
namespace {

using test::TinyCheckpoint;
using Json = nlohmann::json;

using test::tiny_huggingface_clip;
using test::tiny_timm;
constexpr size_t kWidth = test::kTimmWidth, kHidden = test::kTimmHidden;

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Variants, AnUnknownTensorOfABlockIsRefused) {
  EXPECT_EQ(tiny_timm().refusal(), "");
  for (const char* tensor :
       {"blocks.1.attn.q_norm.weight", "blocks.0.attn.norm.bias", "blocks.1.gamma_3",
        "blocks.0.attn.qkv.lora_A.weight", "blocks.0.attn.q_bias", "attn_pool.latent",
        "blocks_token_only.0.norm1.weight", "patch_embed.backbone.stem.conv.weight"}) {
    TinyCheckpoint c = tiny_timm();
    c.shapes[tensor] = {kWidth};
    EXPECT_TRUE(says(c.refusal(), tensor)) << tensor << ": " << c.refusal();
  }
  TinyCheckpoint c = tiny_timm();  // what training leaves beside a network is no part of it
  for (const char* tensor : {"head.weight", "decoder_blocks.0.attn.qkv.weight", "mlp_head.1.bias",
                             "blocks.0.attn.relative_position_index", "fc.weight"})
    c.shapes[tensor] = {3, 3};
  EXPECT_EQ(c.refusal(), "");
}

TEST(Variants, WhatIsMissingIsNamed) {  // missing_tensors_test.cpp does so with every golden file
  for (const auto& [tensor, shape] : tiny_timm().shapes) {
    TinyCheckpoint c = tiny_timm();
    c.shapes.erase(tensor);
    EXPECT_TRUE(says(c.refusal(), tensor)) << tensor << ": " << c.refusal();
  }
  TinyCheckpoint hole = tiny_timm();  // the second of three
  for (const auto& [name, shape] : tiny_timm().shapes)
    if (name.starts_with("blocks.1.")) hole.shapes["blocks.2." + name.substr(9)] = shape;
  hole.shapes.erase("blocks.1.attn.qkv.weight");
  EXPECT_TRUE(says(hole.refusal(), "blocks.1.attn.qkv.weight")) << hole.refusal();
  TinyCheckpoint bias = tiny_timm();
  bias.shapes.erase("blocks.0.attn.qkv.bias");
  EXPECT_TRUE(says(bias.refusal(), "blocks.0.attn.qkv.bias: the tensor is missing"))
      << bias.refusal();
  TinyCheckpoint last = tiny_timm();
  last.config = {{"architecture", "vit"}, {"model_args", {{"depth", 3}}}};
  EXPECT_TRUE(says(last.refusal(), "depth = 3, the tensors say 2")) << last.refusal();
}

TEST(Variants, AsManyNumbersInAnotherShapeAreAnotherTensor) {
  Pool pool(1);
  const auto load = [&](const TinyCheckpoint& c) {
    const test::TemporaryFolder folder;
    return test::error_of(
        [&] { Backbone::open(c.write(folder), {.precision = Precision::f32}, pool); });
  };
  EXPECT_EQ(load(tiny_timm()), "");
  TinyCheckpoint fc1 = tiny_timm(), table = tiny_timm(), cut = tiny_timm();
  fc1.shapes["blocks.1.mlp.fc1.weight"] = {kWidth, kHidden};
  EXPECT_TRUE(says(load(fc1), "blocks.1.mlp.fc1.weight")) << load(fc1);
  table.shapes["pos_embed"] = {1, kWidth, 17};
  EXPECT_TRUE(says(load(table), "pos_embed")) << load(table);
  cut.shapes["pos_embed"] = {1, 26, kWidth};
  EXPECT_EQ(load(cut), "");  // 5x5: another input size
}

TEST(Variants, TheEvaluationViewFollowsTheSize) {
  TinyCheckpoint dino = tiny_timm(37 * 37 + 1, 14);
  EXPECT_EQ(dino.read().preprocess.transform.resize_size, 592u);  // 518 · 256 / 224
  EXPECT_EQ(dino.read({{"size", "518"}}).preprocess.transform.resize_size, 592u);
  const Architecture a = dino.read({{"size", "224"}, {"family", "dino"}});
  EXPECT_EQ(a.input_h, 224u);
  EXPECT_EQ(a.stored_grid_h, 37u);
  EXPECT_EQ(a.preprocess.transform.resize_size, 256u);  // SPEC 3.4
  TinyCheckpoint configured = tiny_timm(577, 16);
  configured.config = {
      {"architecture", "vit_base_patch16_384"},
      {"model_args", {{"embed_dim", kWidth}, {"num_heads", 1}}},
      {"pretrained_cfg", {{"mean", {.5, .5, .5}}, {"std", {.5, .5, .5}}, {"crop_pct", 1.0}}}};
  EXPECT_EQ(configured.read().preprocess.transform.resize_size, 384u);
  EXPECT_EQ(configured.read({{"size", "224"}}).preprocess.transform.resize_size, 224u);
  EXPECT_EQ(configured.read({{"size", "512x384"}}).preprocess.transform.resize_size, 384u);
}

// DINO resizes its positions by a rule of its own; its files look like any ViT's.
TEST(Variants, AResizeThatNothingDecidesIsRefused) {
  const StatedFacts larger{{"size", "24"}};
  const auto named = [&](const char* name, const TinyCheckpoint& c = tiny_timm()) {
    const test::TemporaryFolder folder;
    c.write(folder);
    std::filesystem::rename(folder / "model.safetensors", folder / name);
    return read_architecture(Checkpoint::open(folder / name), larger).position_resize;
  };
  const std::string said = tiny_timm().refusal(larger);
  EXPECT_TRUE(says(said, "`stated_facts[family]=dino`") && says(said, "`stated_facts[family]=vit`"))
      << said;
  EXPECT_THROW(named("weights.safetensors"), Error);
  EXPECT_EQ(tiny_timm().refusal({{"size", "16"}}), "") << "nothing to resize";
  const auto rule = [&](const TinyCheckpoint& c, const char* family = nullptr) {
    StatedFacts facts = larger;
    if (family) facts["family"] = family;
    return c.read(facts).position_resize;
  };
  EXPECT_EQ(rule(tiny_timm(), "dino"), PositionResize::bicubic_offset);
  for (const char* family : {"vit", "mae", "moco", "augreg"})
    EXPECT_EQ(rule(tiny_timm(), family), PositionResize::antialias_bicubic);
  EXPECT_EQ(named("dino_vitsmall8_pretrain.safetensors"), PositionResize::bicubic_offset);
  for (const char* name :
       {"vit_base_patch16_224.safetensors", "deit_small_patch16_224-cd65a155.safetensors",
        "mae_pretrain.safetensors", "jx_vit_base_p16_224-80ecf9dd.safetensors"})
    EXPECT_EQ(named(name), PositionResize::antialias_bicubic) << name;
  EXPECT_EQ(rule(tiny_timm(17, 4, "teacher.backbone.")), PositionResize::bicubic_offset);
  EXPECT_EQ(rule(tiny_timm(17, 4, "module.base_encoder.")), PositionResize::antialias_bicubic);
  TinyCheckpoint configured = tiny_timm(), classifier = tiny_timm(), mean = tiny_timm(),
                 scaled = tiny_timm();  // none of DINO's
  configured.config = test::timm_config("vit_small_patch16_224");
  classifier.shapes["head.weight"] = {10, kWidth}, classifier.shapes["head.bias"] = {10};
  for (const std::string part : {".weight", ".bias"})
    mean.shapes["fc_norm" + part] = {kWidth}, mean.shapes.erase("norm" + part);
  for (const std::string b : {"blocks.0.", "blocks.1."})
    scaled.shapes[b + "ls1.gamma"] = scaled.shapes[b + "ls2.gamma"] = {kWidth};
  for (const TinyCheckpoint& c : {configured, classifier, mean, scaled})
    EXPECT_EQ(rule(c), PositionResize::antialias_bicubic);
}

// With half of the network that its authors evaluate, the other one is not meant.
TEST(Variants, TheStudentIsNotTakenForABrokenTeacher) {
  TinyCheckpoint both = tiny_timm(17, 4, "teacher.backbone.");
  for (const auto& [name, shape] : tiny_timm(17, 4, "student.module.backbone.").shapes)
    both.shapes[name] = shape;
  EXPECT_EQ(both.refusal(), "");
  both.shapes.erase("teacher.backbone.blocks.0.attn.qkv.weight");
  EXPECT_TRUE(says(both.refusal(), "teacher.backbone.blocks.0.attn.qkv.weight")) << both.refusal();
  EXPECT_EQ(both.refusal({{"prefix", "student.module.backbone"}}), "");
}

// The one in MAE's whole file is of the decoder, which is narrower.
TEST(Variants, AMaskTokenOfTheDecoderIsLeftOut) {
  TinyCheckpoint mae = tiny_timm();
  mae.shapes["decoder_embed.weight"] = {kWidth / 2, kWidth};
  mae.shapes["mask_token"] = {1, 1, kWidth / 2};
  EXPECT_FALSE(mae.read().mask_token);
  mae.shapes.erase("decoder_embed.weight");
  EXPECT_TRUE(says(mae.refusal(), "mask_token")) << mae.refusal();
}

TEST(Variants, GridsThatAreNoSquare) {
  TinyCheckpoint wide = tiny_timm(25, 4);  // 4 x 6 and a class token, or 5 x 5 without one?
  const std::string said = tiny_timm(33, 4).refusal();
  EXPECT_TRUE(says(said, "`stated_facts[size]=16x32`") && says(said, "runs squares alone")) << said;
  EXPECT_TRUE(says(wide.refusal(), "`stated_facts[size]=20x20`")) << wide.refusal();
  const Architecture stated = wide.read({{"size", "16x24"}});
  EXPECT_EQ(stated.stored_grid_h, 4u);
  EXPECT_EQ(stated.stored_grid_w, 6u);
  EXPECT_TRUE(stated.position_on_prefix);
  EXPECT_FALSE(wide.read({{"size", "20"}}).position_on_prefix);
  wide.config = {{"architecture", "x"}, {"pretrained_cfg", {{"input_size", {3, 24, 16}}}}};
  EXPECT_EQ(wide.read().stored_grid_h, 6u);
  TinyCheckpoint long_one = tiny_timm(17, 4);  // 16 is a square, and 2 x 8
  long_one.config = {{"architecture", "x"}, {"pretrained_cfg", {{"input_size", {3, 8, 32}}}}};
  EXPECT_EQ(long_one.read().stored_grid_w, 8u);
  const Architecture resized =  // 50 patches, by chance
      tiny_timm(50, 4).read({{"size", "40x20"}, {"family", "vit"}});
  EXPECT_EQ(resized.stored_grid_h, 7u);
  EXPECT_TRUE(resized.position_on_prefix);
  EXPECT_EQ(tiny_timm(17, 4).read({{"size", "32x8"}, {"family", "vit"}}).stored_grid_h, 4u)
      << "resized, too";
  TinyCheckpoint grey = tiny_timm(65, 4);
  grey.shapes["patch_embed.proj.weight"] = {kWidth, 1, 4, 4};
  EXPECT_EQ(grey.read().input_h, 32u);
}

TEST(Variants, PoolingIsNotGuessed) {
  TinyCheckpoint none = tiny_timm(16);
  none.shapes.erase("cls_token");
  EXPECT_TRUE(says(none.refusal(), "no class token")) << none.refusal();
  EXPECT_EQ(none.read({{"pooling", "mean_patches"}}).pooling, Pooling::mean_patches);
  for (const char* pool : {"max", "avgmax", "map"}) {
    TinyCheckpoint c = tiny_timm();
    c.config = {{"architecture", "x"}, {"global_pool", pool}};
    EXPECT_TRUE(says(c.refusal(), pool)) << c.refusal();
  }
  TinyCheckpoint token = tiny_timm();  // fc_norm after the class token
  for (const char* part : {".weight", ".bias"}) {
    token.shapes["fc_norm" + std::string(part)] = {kWidth};
    token.shapes.erase("norm" + std::string(part));
  }
  EXPECT_EQ(token.read().pooling, Pooling::mean_patches);
  token.config = {{"architecture", "x"}, {"global_pool", "token"}};
  EXPECT_EQ(token.read().pooling, Pooling::first);
}

TEST(Variants, HeadsAndWhereTheyComeFrom) {
  EXPECT_TRUE(tiny_timm().read().heads_assumed);
  EXPECT_FALSE(tiny_timm().read({{"heads", "4"}}).heads_assumed);
  EXPECT_EQ(tiny_timm(17, 4, "module.base_encoder.", 384).read().heads, 12u) << "MoCo-v3's small";
  EXPECT_EQ(tiny_timm(17, 4, "", 384).read().heads, 6u);
}

TEST(Variants, TheOriginIsAWholeWord) {
  EXPECT_TRUE(tiny_timm(17, 4, "module.base_encoder.").read().preprocess.transform.filter ==
              Filter::bilinear)
      << "MoCo-v3";
  EXPECT_EQ(tiny_timm(17, 4, "teacher.backbone.").read().family, "dino");
  TinyCheckpoint augreg = tiny_timm();
  augreg.config = test::timm_config("vit_base_patch16_224");
  augreg.config["pretrained_cfg"] = {
      {"tag", "augreg_in21k"}, {"mean", {.5, .5, .5}}, {"std", {.5, .5, .5}}};
  EXPECT_TRUE(augreg.read().preprocess.augreg) << "also where config.json has the transform";
  augreg.config["pretrained_cfg"]["tag"] = "augreg2_in21k_ft_in1k";
  EXPECT_TRUE(augreg.read().preprocess.augreg);
  const auto named = [](const char* name) {
    const test::TemporaryFolder folder;
    tiny_timm().write(folder);
    std::filesystem::rename(folder / "model.safetensors", folder / name);
    return read_architecture(Checkpoint::open(folder / name));
  };
  EXPECT_EQ(named("dino_vitsmall8_pretrain.safetensors").family, "dino");
  EXPECT_EQ(named("dinosaurs.safetensors").family, "vit");
  EXPECT_TRUE(says(named("mae_pretrain.safetensors").preprocess.source, "MAE"));
  EXPECT_FALSE(says(named("maestro.safetensors").preprocess.source, "MAE"));
}

TEST(Variants, ActivationsOfConfigAndOfGatedMlps) {
  TinyCheckpoint c = tiny_timm();
  c.config = {{"architecture", "x"}, {"model_args", {{"act_layer", "relu"}}}};
  EXPECT_EQ(c.read().activation, kernel::Activation::relu);
  c.config = {{"architecture", "vit_base_patch16_quickgelu_224"}};
  EXPECT_EQ(c.read().activation, kernel::Activation::quick_gelu);
  c.config = {{"architecture", "vit_small_patch16_rope_224"}};
  EXPECT_TRUE(says(c.refusal(), "rope")) << c.refusal();
  TinyCheckpoint gated = tiny_timm();
  for (const std::string b : {"blocks.0.", "blocks.1."}) {
    gated.shapes[b + "mlp.fc1.weight"] = {2 * kHidden, kWidth};
    gated.shapes[b + "mlp.fc1.bias"] = {2 * kHidden};
  }
  EXPECT_TRUE(says(gated.refusal(), "gated MLP")) << gated.refusal();
  EXPECT_EQ(gated.read({{"activation", "silu"}}).activation, kernel::Activation::silu);
}

TEST(Variants, TheHeadOfAFineTunedTowerIsNoProjection) {
  TinyCheckpoint c = tiny_timm();
  c.shapes["norm_pre.weight"] = c.shapes["norm_pre.bias"] = {kWidth};
  c.shapes.erase("patch_embed.proj.bias");
  c.shapes["head.weight"] = {24, kWidth}, c.shapes["head.bias"] = {24};
  const StatedFacts gelu{{"activation", "gelu"}};
  EXPECT_EQ(c.read(gelu).embedding_width, 24u);
  c.config = test::timm_config("vit_base_patch16_clip_224");
  c.config["pretrained_cfg"] = {{"tag", "openai_ft_in1k"}};
  EXPECT_EQ(c.read(gelu).embedding_width, kWidth);
  c.config = nullptr;
  c.shapes["head.weight"] = {1000, kWidth};
  EXPECT_EQ(c.read(gelu).embedding_width, kWidth);
}

TEST(Variants, ABrokenOrForeignConfigIsNotPassedOver) {
  const test::TemporaryFolder folder;
  tiny_timm().write(folder);
  std::ofstream(folder / "config.json") << R"({"num_heads": 2, "archi)";
  EXPECT_THROW(read_architecture(Checkpoint::open(folder.path())), Error);
  for (const Json& config :
       {Json{{"hidden_size", 768}}, Json{{"num_heads", "two"}}, Json{{"num_heads", 4.5}},
        Json{{"num_heads", -4}}, Json{{"num_heads", 1e30}}, Json::array({1, 2}),
        Json{{"pretrained_cfg", {{"mean", {.5, .5, .5}}, {"crop_pct", 0}}}},
        Json{{"pretrained_cfg", {{"mean", {.5, .5, .5}}, {"std", {0, 0, 0}}}}}}) {
    TinyCheckpoint c = tiny_timm();
    c.config = config;
    EXPECT_TRUE(says(c.refusal(), "config.json")) << config << ": " << c.refusal();
  }
}

// transformers 4 writes into a nested configuration only what differs from its defaults.
TEST(Variants, WhatVisionConfigLeavesOutHasItsDefault) {
  TinyCheckpoint c = tiny_huggingface_clip("vision_model.", 96);
  c.config = {{"model_type", "clip"},
              {"vision_config", {{"hidden_act", "gelu"}, {"layer_norm_eps", 1e-3}}}};
  const Architecture a = c.read();
  EXPECT_EQ(a.activation, kernel::Activation::gelu);
  EXPECT_EQ(a.norm_epsilon, 1e-3f);
  EXPECT_EQ(a.heads, 12u);
  c.config = {{"model_type", "clip"}, {"vision_config", {{"num_attention_heads", 3}}}};
  EXPECT_EQ(c.read().heads, 3u);
  EXPECT_EQ(c.read().activation, kernel::Activation::quick_gelu);
}

TEST(Variants, HuggingFacesTowerWithAndWithoutItsPrefix) {
  for (const std::string v : {"vision_model.", ""}) {
    TinyCheckpoint c = tiny_huggingface_clip(v, kWidth);
    const StatedFacts gelu{{"activation", "gelu"}};
    const Architecture a = c.read(gelu);
    EXPECT_EQ(a.family, "clip");
    EXPECT_EQ(a.input_h, 16u);
    c.shapes.erase(v + "encoder.layers.1.self_attn.k_proj.bias");
    EXPECT_TRUE(says(c.refusal(gelu), v + "encoder.layers.1.self_attn.k_proj.bias: the tensor is"))
        << c.refusal(gelu);
  }
}

TEST(Variants, WhatLooksLikeAViTAndIsRunDifferentlyIsRefused) {
  TinyCheckpoint c = tiny_timm();
  c.config = {{"architecture", "vit_base_patch16_siglip_of_mine"}};
  EXPECT_TRUE(says(c.refusal(), "`stated_facts[activation]")) << c.refusal();
  EXPECT_EQ(c.refusal({{"activation", "gelu_tanh"}}), "");
  c.config = test::timm_config("vit_base_patch16_siglip_gap_224");  // timm has one of them
  EXPECT_EQ(c.read().activation, kernel::Activation::gelu);
  c.config = test::timm_config("vit_base_patch32_siglip_gap_256");
  EXPECT_EQ(c.read().activation, kernel::Activation::gelu_tanh);
  c.config = {{"architecture", "vit_giantopt_patch16_384"}};
  EXPECT_TRUE(says(c.refusal(), "`stated_facts[heads]=")) << c.refusal();
  c = tiny_timm();
  c.shapes["fc_norm.weight"] = c.shapes["fc_norm.bias"] = {kWidth};
  EXPECT_TRUE(says(c.refusal(), "fc_norm")) << c.refusal();
  const test::TemporaryFolder folder;  // without config.json the file's name speaks
  tiny_timm().write(folder);
  const auto file = folder / "vit_base_patch16_rpn_224.safetensors";
  std::filesystem::rename(folder / "model.safetensors", file);
  EXPECT_THROW(read_architecture(Checkpoint::open(file)), Error);
}

TEST(Variants, TablesOfNothingAreRefused) {
  TinyCheckpoint one = tiny_timm(1, 16);
  one.config = {{"architecture", "x"}, {"pretrained_cfg", {{"input_size", {3, 8, 8}}}}};
  EXPECT_NE(one.refusal({{"size", "224"}}), "");
  for (const size_t patch : {16u, 256u}) {  // SSAST's way to a table
    TinyCheckpoint sound = tiny_timm(2, patch, "module.v.");
    sound.shapes["module.v.patch_embed.proj.weight"] = {kWidth, 1, patch, patch};
    sound.shapes["module.v.dist_token"] = {1, 1, kWidth};
    sound.shapes["module.p_input_tdim"] = {1};
    EXPECT_TRUE(says(sound.refusal(), "positions")) << sound.refusal();
  }
}

// A tensor without elements may claim any side: nothing is allocated for it.
TEST(Variants, AnEmptyTensorIsNoWidth) {
  TinyCheckpoint c = tiny_timm();
  c.shapes["blocks.0.mlp.fc2.weight"] = {0, size_t(1) << 40};
  const test::TemporaryFolder folder;
  Pool pool(1);
  EXPECT_THROW(Backbone::open(c.write(folder), {}, pool), Error);
}

TEST(Variants, StatedFactsAreUnderstoodOrRefused) {
  for (const auto& [key, value] : {std::pair{"family", "deit3"},
                                   {"norm_epsilon", "1e-6xyz"},
                                   {"size", "99999999"},
                                   {"size", "0"},
                                   {"heads", "4.5"},
                                   {"colour", "blue"}})
    EXPECT_NE(tiny_timm().refusal({{key, value}}), "") << key << "=" << value;
  EXPECT_TRUE(says(tiny_timm().refusal({{"family", "foo"}}), "choose one of"));
  EXPECT_EQ(tiny_timm().read({{"family", "dino"}}).family, "dino");
}

}  // namespace
}  // namespace fungi
