// SPDX-License-Identifier: Apache-2.0
// Tensors of a file that nothing uses: refused by name, unless they are known to be without effect
// or the user says so.
#include <gtest/gtest.h>

#include <algorithm>

#include "fungi/backbone/backbone.h"
#include "fungi/checkpoint/checkpoint.h"
#include "tests/support/tiny_checkpoint.h"

namespace fungi {
namespace {

using test::tiny_huggingface_clip;
using test::tiny_timm;
using test::TinyCheckpoint;
constexpr size_t kWidth = test::kTimmWidth;

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A tensor that is not known may be a part of the network: without it the embedding is another.
TEST(LeftAside, AnUnknownTensorAnywhereIsRefusedByName) {
  for (const std::string prefix : {"", "module.base_encoder.", "teacher.backbone."})
    for (const char* tensor :
         {"prompt_tokens", "deep_prompt_embeddings", "mem_tokens", "temporal_embed",
          "rel_pos_bias.relative_position_bias_table", "neck.0.weight", "head_norm.weight",
          "norm_head.weight", "headless", "heads_up.weight", "x"}) {
      TinyCheckpoint c = tiny_timm(17, 4, prefix);
      ASSERT_EQ(c.refusal(), "");
      c.shapes[prefix + tensor] = {kWidth};
      EXPECT_TRUE(says(c.refusal(), "'" + prefix + tensor + "': nothing here uses")) << c.refusal();
      EXPECT_TRUE(says(c.refusal(), "`stated_facts[ignore]=" + prefix + tensor + "`"));
      EXPECT_EQ(c.refusal({{"ignore", prefix + tensor}}), "") << "as the refusal says";
      if (prefix.empty()) continue;
      c.shapes.erase(prefix + tensor);  // above the network
      const std::string above = prefix.substr(0, prefix.find('.') + 1) + tensor;
      c.shapes[above] = {kWidth};
      EXPECT_TRUE(says(c.refusal(), above)) << c.refusal();
    }
  TinyCheckpoint lone = test::tiny_open_clip();
  for (const auto& [name, shape] : test::tiny_open_clip().shapes)  // without "visual."
    lone.shapes[name.substr(7)] = shape, lone.shapes.erase(name);
  lone.shapes["logit_scale"] = {1};
  const StatedFacts gelu{{"activation", "gelu"}};
  EXPECT_EQ(lone.refusal(gelu), "");
  lone.shapes["transformer.norm.weight"] = {kWidth};  // of the text, if it were not the image's
  EXPECT_TRUE(says(lone.refusal(gelu), "transformer.norm.weight")) << lone.refusal(gelu);
  TinyCheckpoint tower = tiny_huggingface_clip("vision_model.", kWidth);
  tower.config = {{"hidden_act", "gelu"}, {"num_attention_heads", 2}};
  for (const char* harmless : {"text_model.final_layer_norm.bias", "logit_scale"})
    tower.shapes[harmless] = {1};
  EXPECT_EQ(tower.refusal(), "");
  for (const char* tensor : {"vision_model.logit_scale", "prompt_learner.ctx"}) {
    TinyCheckpoint c = tower;
    c.shapes[tensor] = {1};
    EXPECT_TRUE(says(c.refusal(), tensor)) << c.refusal();
  }
}

// As Lightning and mmengine keep it, in records and in dicts.
TEST(LeftAside, TheStateOfTrainingMayGo) {
  TinyCheckpoint c = tiny_timm(17, 4, "state_dict.");
  for (const char* tensor :
       {"callbacks.ModelCheckpoint.best_model_score", "loops.fit_loop.state_dict.total",
        "optimizer_states.0.state.0.exp_avg", "lr_schedulers.0.base", "cfg.weights.class",
        "hyper_parameters.class_weights", "param_schedulers.0.x", "message_hub.log_scalars.loss"})
    c.shapes[tensor] = {3};
  EXPECT_EQ(c.refusal(), "");
  c.shapes["options.prompt"] = {3};
  EXPECT_TRUE(says(c.refusal(), "'options.prompt': nothing here uses")) << c.refusal();
}

// Where config.json says what the whole is, its decoder is known.
TEST(LeftAside, TheDecoderOfAKnownTypeMayGo) {
  TinyCheckpoint depth, words = tiny_huggingface_clip("git.image_encoder.vision_model.", kWidth);
  for (const auto& [name, shape] : test::tiny_vit(3, false, 16, kWidth).shapes)
    depth.shapes["dpt." + name] = shape;
  for (const char* tensor : {"neck.convs.0.weight", "head.head.0.weight"})
    depth.shapes[tensor] = {3};
  for (const char* tensor : {"git.encoder.layer.0.output.dense.weight", "output.weight",
                             "git.embeddings.word_embeddings.weight"})
    words.shapes[tensor] = {3};
  depth.config = {{"num_attention_heads", 2}};
  words.config = {{"vision_config", {{"num_attention_heads", 2}, {"hidden_act", "gelu"}}}};
  for (auto& [c, type, other] : {std::tuple(&depth, "dpt", "vit"), {&words, "git", "clip"}}) {
    c->config["model_type"] = type;
    EXPECT_EQ(c->refusal(), "");
    const test::TemporaryFolder folder;
    const auto notes = read_notes(Checkpoint::open(c->write(folder)));
    EXPECT_EQ(std::count_if(notes.begin(), notes.end(),
                            [&](const std::string& note) {
                              return says(note, "the decoder of model_type " + std::string(type));
                            }),
              1)
        << type;
    c->shapes["prompts"] = {3};
    EXPECT_TRUE(says(c->refusal(), "'prompts': nothing here uses")) << c->refusal();
    c->shapes.erase("prompts");
    c->config["model_type"] = other;
    EXPECT_TRUE(says(c->refusal(), "nothing here uses the tensor")) << c->refusal();
  }
}

// The way out names all of them, or none where they are too many.
TEST(LeftAside, OneWayOutOfSeveralTensors) {
  TinyCheckpoint c = tiny_timm();
  for (const char* tensor :
       {"neck.0.weight", "neck.0.bias", "neck.1.weight", "prompts", "extra.a", "extra.b"})
    c.shapes[tensor] = {3};
  EXPECT_TRUE(says(c.refusal(), "nothing here uses the tensor, nor 5 others")) << c.refusal();
  EXPECT_TRUE(says(c.refusal(), "`stated_facts[ignore]=extra.,neck.,prompts`")) << c.refusal();
  EXPECT_TRUE(says(c.refusal({{"ignore", "prompts"}}), "=prompts,extra.,neck.`"));
  EXPECT_EQ(c.refusal({{"ignore", "extra.,neck.,prompts"}}), "");
  for (const char* inside : {"blocks.0.attn.scale", "patch_embed.backbone.0.weight", "norm.gamma",
                             "rope.freqs", "attn_pool.q.weight"}) {
    TinyCheckpoint one = tiny_timm();
    one.shapes[inside] = {3};
    EXPECT_TRUE(says(one.refusal(), inside)) << one.refusal();
    EXPECT_FALSE(says(one.refusal(), "stated_facts[ignore]")) << "it matters: " << one.refusal();
    EXPECT_EQ(one.refusal({{"ignore", inside}}), "") << "but the user may say otherwise";
  }
  TinyCheckpoint unfit = c;  // ignoring them would not help
  unfit.shapes["blocks.1.mlp.fc1.weight"] = {8, 8};
  EXPECT_TRUE(says(unfit.refusal(), "nor 5 others")) << unfit.refusal();
  EXPECT_FALSE(says(unfit.refusal(), "stated_facts[ignore]")) << unfit.refusal();
  for (int i = 0; i < 7; ++i) c.shapes["part" + std::to_string(i)] = {3};
  EXPECT_FALSE(says(c.refusal(), "stated_facts[ignore]")) << c.refusal();
}

TEST(LeftAside, WhatTheUserSaysIsWithoutEffectIsLeftAside) {
  TinyCheckpoint c = tiny_timm(17, 4, "net.");
  for (const char* tensor : {"net.neck.0.weight", "net.neck.0.bias", "net.blocks.0.gamma_3",
                             "prompts.first", "prompts.second"})
    c.shapes[tensor] = {3};
  for (const char* list :
       {"net.neck.,net.blocks.0.gamma_3,prompts.", "neck.0.*,blocks.0.gamma_3,prompts.first,pro*",
        "neck.0.weight,neck.0.bias,blocks.0.gamma_*,prompts.s*,prompts.first"})
    EXPECT_EQ(c.refusal({{"ignore", list}}), "") << list;
  EXPECT_TRUE(says(c.refusal({{"ignore", "neck.,prompts."}}), "net.blocks.0.gamma_3"));
  EXPECT_TRUE(says(c.refusal({{"ignore", "neck,prompts.,blocks.0.gamma_3"}}), "'neck'"))
      << "a whole name, without a dot or star at its end";
  EXPECT_TRUE(says(c.refusal({{"ignore", "neck.,prompts.,blocks.0.gamma_3,nack."}}), "'nack.'"))
      << "a name of nothing is a mistake";
  for (const char* used : {"pos_embed", "net.blocks.0.", "net.*"})
    EXPECT_TRUE(says(tiny_timm(17, 4, "net.").refusal({{"ignore", used}}), "is computed with"))
        << used;
  for (const char* empty : {"", ",", "neck.,", "*", "."})
    EXPECT_TRUE(says(c.refusal({{"ignore", empty}}), "not the name of a tensor")) << empty;
}

// The same network twice, e.g. trained and averaged: one is used, and that is said.
TEST(SeveralNetworks, AreNamedAndChosenByTheirPart) {
  struct Pair {
    std::string used, other, part_of_used, part_of_other;
  };
  for (const Pair& p : {Pair{"model_ema.", "model.", "ema", "model"},
                        {"state_dict_ema.", "state_dict.", "ema", "state_dict"},
                        {"teacher.backbone.", "student.backbone.", "teacher", "student"},
                        {"model_ema.module.", "model.module.", "model_ema", "model"},
                        {"ema.", "", "ema", ""}}) {
    SCOPED_TRACE(p.used);
    TinyCheckpoint c = tiny_timm(17, 4, p.used, kWidth);
    for (const auto& [name, shape] : tiny_timm(17, 4, p.other, 2 * kWidth).shapes)
      c.shapes[name] = shape;
    const test::TemporaryFolder folder;
    const Checkpoint file = Checkpoint::open(c.write(folder));
    EXPECT_EQ(c.read().width, kWidth);
    const auto notes = read_notes(file);
    ASSERT_FALSE(notes.empty());
    EXPECT_TRUE(says(notes[0], "that under '" + p.used + "' is used, not '" + p.other + "'"))
        << notes[0];
    for (const auto& [part, width] :
         {std::pair(p.part_of_used, kWidth), {p.part_of_other, 2 * kWidth}}) {
      if (part.empty()) continue;
      EXPECT_EQ(c.read({{"part", part}}).width, width) << part;
      const auto quiet = read_notes(file, {{"part", part}});
      EXPECT_TRUE(quiet.empty() || !says(quiet[0], "several networks")) << quiet[0];
    }
    EXPECT_EQ(c.read({{"prefix", p.other}}).width, 2 * kWidth);
    EXPECT_TRUE(says(c.refusal({{"part", "swa"}}), "no network of the name 'swa'"));
  }
  TinyCheckpoint equals = tiny_timm(17, 4, "encoder_a.");
  for (const auto& [name, shape] : tiny_timm(17, 4, "encoder_b.").shapes)
    equals.shapes[name] = shape;
  EXPECT_TRUE(says(equals.refusal(), "holds 2 networks")) << equals.refusal();
  EXPECT_TRUE(says(equals.refusal({{"part", "encoder"}}), "several networks of the name"));
  EXPECT_EQ(equals.refusal({{"part", "b"}}), "");
}

// MoCo-v3's small ViT has 12 heads, not the 6 of others of its width, in every layout of its names.
TEST(Notes, MocosSmallIsKnownByItsPositions) {
  for (const char* prefix : {"module.base_encoder.", "module.", ""}) {
    TinyCheckpoint c = tiny_timm(17, 4, prefix, 384);
    const std::string table = std::string(prefix) + "pos_embed";
    const bool own_prefix = std::string(prefix).find("base_encoder") != std::string::npos;
    EXPECT_EQ(c.read().heads, own_prefix ? 12u : 6u) << prefix;
    EXPECT_EQ(c.read({{"family", "moco"}}).heads, 12u) << prefix;
    std::vector<float> fixed(17 * 384, 0.25f);
    for (size_t i = 0; i < 384; ++i) fixed[i] = 0, fixed[384 + i] = i / 96 % 2 ? 1 : 0;
    c.values[table] = fixed;
    EXPECT_EQ(c.read().heads, 12u) << prefix;
    EXPECT_EQ(c.read({{"heads", "6"}}).heads, 6u) << prefix;
    c.values[table][400] = 0.01f;  // trained
    EXPECT_EQ(c.read().heads, own_prefix ? 12u : 6u) << prefix;
  }
}

// What no file says is assumed, and said; what is stated is not.
std::string note(const TinyCheckpoint& c, const StatedFacts& facts = {},
                 const char* file = "model.safetensors") {
  const test::TemporaryFolder folder;
  c.write(folder);
  std::filesystem::rename(folder / "model.safetensors", folder / file);
  const auto notes = read_notes(Checkpoint::open(folder / file), facts);
  return notes.empty() ? "" : notes.back();
}

// The evaluation transform is none of the facts below.
nlohmann::json with_transform(nlohmann::json config) {
  config["pretrained_cfg"] = {{"crop_pct", 0.9}};
  return config;
}

TEST(Notes, NameWhatIsAssumed) {
  TinyCheckpoint c = tiny_timm();
  EXPECT_TRUE(says(note(c), "tells heads=1, activation=gelu, pooling=first, norm_epsilon=1e-06,"))
      << note(c);
  StatedFacts stated{{"mean", "0.5"}, {"std", "0.5"},       {"resize", "16"},
                     {"heads", "2"},  {"pooling", "first"}, {"norm_epsilon", "1e-6"}};
  EXPECT_TRUE(says(note(c, stated), "tells activation=gelu: that is assumed")) << note(c, stated);
  stated["activation"] = "gelu";
  EXPECT_EQ(note(c, stated), "");
  TinyCheckpoint words = test::tiny_vit(3, false, 16, kWidth);
  EXPECT_TRUE(says(note(words), "tells heads=1, activation=gelu,")) << note(words);
  EXPECT_TRUE(says(note(words), "config.json and preprocessor_config.json beside")) << note(words);
  words.config = {{"model_type", "vit"}, {"num_attention_heads", 2}};
  EXPECT_TRUE(says(note(words), "tells its evaluation transform")) << note(words);
  EXPECT_TRUE(says(note(words), "Keep its preprocessor_config.json beside")) << note(words);
  words.image_processor = {{"image_mean", {0.5, 0.5, 0.5}}, {"image_std", {0.5, 0.5, 0.5}}};
  EXPECT_EQ(note(words), "");
}

// DeiT-III's own names are those of timm's ViTs with rotary positions, too.
TEST(Notes, PositionsOfDeiT3sOwnNamesMayBeRotary) {
  TinyCheckpoint c = tiny_timm(16);
  for (const std::string b : {"blocks.0.", "blocks.1."})
    c.shapes[b + "gamma_1"] = c.shapes[b + "gamma_2"] = {kWidth};
  EXPECT_EQ(c.read().family, "deit3");
  EXPECT_TRUE(says(note(c), "that no positions are rotary")) << note(c);
  EXPECT_FALSE(says(note(c, {{"family", "deit3"}}), "rotary"));
  c.config = test::timm_config("deit3_small_patch16_224");
  EXPECT_FALSE(says(note(c), "rotary")) << note(c);
}

// A name that is none of timm's tells nothing; what stands beside it does.
TEST(Notes, AnUnknownArchitectureLeavesOpenWhatItDoesNotSay) {
  TinyCheckpoint c = tiny_timm();
  c.config = with_transform({{"architecture", "vit_x"}, {"model_args", {{"num_heads", 2}}}});
  EXPECT_TRUE(says(note(c), "tells activation=gelu, pooling=first, norm_epsilon=1e-06: these"))
      << note(c);
  c.config["model_args"]["act_layer"] = "gelu", c.config["global_pool"] = "token";
  EXPECT_TRUE(says(note(c), "tells norm_epsilon=1e-06: that is assumed")) << note(c);
  c.config = with_transform(test::timm_config("vit_tiny_patch16_224"));
  EXPECT_EQ(note(c), "");
}

}  // namespace
}  // namespace fungi
