// SPDX-License-Identifier: Apache-2.0
// What config.json may say of Hugging Face's ViT and AST, and what it must not.
#include <gtest/gtest.h>

#include "tests/support/tiny_checkpoint.h"

namespace fungi {
namespace {

using test::tiny_vit;
using test::TinyCheckpoint;

const StatedFacts kHeads{{"heads", "2"}};

TinyCheckpoint tiny_ast() {  // 16 bins x 20 frames in patches of 4x4, every 4 bins and 8 frames
  TinyCheckpoint c = tiny_vit(1, true, 4 * 3);
  c.config = {
      {"num_mel_bins", 16}, {"max_length", 20}, {"frequency_stride", 4}, {"time_stride", 8}};
  return c;
}

TEST(FilterBankNames, SizesAndStridesAreChecked) {
  const Architecture a = tiny_ast().read(kHeads);
  EXPECT_EQ(a.family, "ast");
  EXPECT_EQ(a.stored_grid_h, 4u);
  EXPECT_EQ(a.stored_grid_w, 3u);
  for (const char* field : {"num_mel_bins", "max_length", "frequency_stride", "time_stride"})
    for (const double value : {0.0, -1.0, 2.5, 4294967303.0, 1e30, 1.0 * (1 << 20) + 1}) {
      TinyCheckpoint c = tiny_ast();
      c.config[field] = value;
      EXPECT_NE(c.refusal(kHeads).find(field), std::string::npos)
          << field << " = " << value << ": " << c.refusal(kHeads);
    }
  TinyCheckpoint wraps = tiny_ast();  // (2^32)² positions would be 0
  wraps.config = {{"num_mel_bins", 4294967299},
                  {"max_length", 4294967299},
                  {"frequency_stride", 1},
                  {"time_stride", 1}};
  EXPECT_NE(wraps.refusal(kHeads), "");
  TinyCheckpoint small = tiny_ast();
  small.config["num_mel_bins"] = 3;  // less than a patch
  EXPECT_NE(small.refusal(kHeads).find("num_mel_bins"), std::string::npos);
}

TEST(FilterBankNames, ThePositionsMustBeThoseOfTheGrid) {
  TinyCheckpoint c = tiny_vit(1, true, 13 * 103);  // the default is (128 - 4) / 10 + 1 = 13 by 103
  EXPECT_EQ(c.refusal(kHeads), "");
  for (const size_t positions : {13 * 103 - 1, 13 * 103 + 1, 13 * 205})
    EXPECT_NE(tiny_vit(1, true, positions).refusal(kHeads).find("expected 1339"),
              std::string::npos);
}

TEST(VitNames, ActivationsHaveSeveralNames) {
  using enum kernel::Activation;
  const std::pair<const char*, kernel::Activation> cases[] = {
      {"gelu", gelu},           {"gelu_python", gelu}, {"gelu_new", gelu_tanh},
      {"gelu_fast", gelu_tanh}, {"swish", silu},       {"silu", silu}};
  for (const auto& [text, activation] : cases) {
    TinyCheckpoint c = tiny_vit(3, false, 16);
    c.config = {{"hidden_act", text}};
    EXPECT_EQ(c.read(kHeads).activation, activation) << text;
  }
}

TEST(VitNames, OnlyKnownTypesAreRun) {
  TinyCheckpoint c = test::tiny_vit(3, false, 16);
  for (const char* type : {"vit", "vit_mae", "vit_msn", "dpt", "flava_image_model"}) {
    c.config = {{"model_type", type}, {"num_attention_heads", 2}};
    EXPECT_EQ(c.refusal(), "") << type;
  }
  for (const char* type :
       {"vilt", "flava", "rf_detr_dinov2", "vitpose_backbone", "yolos", "vision-encoder-decoder"}) {
    c.config["model_type"] = type;
    EXPECT_NE(c.refusal().find(type), std::string::npos) << c.refusal();
  }
  c.config = {{"model_type", "vit_msn"}, {"num_attention_heads", 2}};
  EXPECT_EQ(c.read().norm_epsilon, 1e-6f) << "the others of these names have 1e-12";
}

TEST(VitNames, PartsThatAViTHasNotAreRefused) {
  for (const char* extra :
       {"embeddings.text_embeddings.word_embeddings.weight",  // ViLT
        "embeddings.token_type_embeddings.weight", "encoder.mid_position_embeddings",
        "encoder.relative_position_bias.relative_position_bias_table",
        "visual_projection.weight"}) {
    TinyCheckpoint c = tiny_vit(3, false, 16);
    c.shapes[extra] = {8, 8};
    EXPECT_NE(c.refusal(kHeads).find(extra), std::string::npos) << c.refusal(kHeads);
  }
  TinyCheckpoint rest = tiny_vit(3, false, 16);
  rest.shapes["pooler.dense.weight"] = rest.shapes["decoder.layers.0.fc1.weight"] = {8, 8};
  EXPECT_EQ(rest.refusal(kHeads), "");
}

// Hugging Face and timm show such a model 18 pixels and leave out the last 2.
TEST(VitNames, AnImageSizeThatIsNoMultipleOfThePatchIsRefused) {
  TinyCheckpoint c = tiny_vit(3, false, 16);
  c.config = {{"image_size", 18}};
  EXPECT_NE(c.refusal(kHeads).find("18x18, expected a multiple"), std::string::npos)
      << c.refusal(kHeads);
  EXPECT_EQ(c.read({{"heads", "2"}, {"size", "16"}}).input_h, 16u);
  c.config = {{"image_size", 16}};
  EXPECT_EQ(c.refusal(kHeads), "");
}

TEST(VitNames, AnActivationThatIsNotKnownNamesItsFile) {
  TinyCheckpoint c = tiny_vit(3, false, 16);
  c.config = {{"hidden_act", "mish"}};
  EXPECT_NE(c.refusal(kHeads).find("model.safetensors: config.json: unknown activation 'mish'"),
            std::string::npos)
      << c.refusal(kHeads);
  EXPECT_EQ(c.refusal({{"heads", "2"}, {"activation", "relu"}}), "");
}

TEST(VitNames, TablesWithoutPatchesAndDetectorsAreRefused) {
  EXPECT_NE(tiny_vit(3, false, 0).refusal(kHeads).find("position_embeddings"), std::string::npos);
  TinyCheckpoint yolos = tiny_vit(3, false, 16 + 9);
  yolos.shapes["embeddings.detection_tokens"] = {1, 9, 8};
  EXPECT_NE(yolos.refusal(kHeads).find("detection_tokens"), std::string::npos);
}

// torch.save(model.state_dict()) of transformers 5: whole, but under names of its own.
TEST(VitNames, NamesInMemoryAreToldFromAnIncompleteFile) {
  TinyCheckpoint memory;
  for (const char* name :
       {"embeddings.cls_token", "embeddings.position_embeddings", "layernorm.weight",
        "embeddings.patch_embeddings.projection.weight", "layers.0.attention.q_proj.weight"})
    memory.shapes[name] = {8, 8};
  EXPECT_NE(memory.refusal(kHeads).find("save_pretrained"), std::string::npos)
      << memory.refusal(kHeads);
}

TEST(VitNames, ADistillationTokenIsPooledToo) {
  EXPECT_EQ(tiny_vit(3, true, 16).read(kHeads).pooling, Pooling::mean_prefix);
  EXPECT_EQ(tiny_vit(3, false, 16).read(kHeads).pooling, Pooling::first);
}

}  // namespace
}  // namespace fungi
