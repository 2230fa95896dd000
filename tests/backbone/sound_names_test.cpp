// SPDX-License-Identifier: Apache-2.0
// Encoders of sounds: what their files tell, what the user states, and what is noted or refused.
#include <gtest/gtest.h>

#include "tests/support/data.h"
#include "tests/support/tiny_checkpoint.h"

namespace fungi {
namespace {

using test::TinyCheckpoint;

std::filesystem::path golden_folder(const std::string& name) {
  return std::filesystem::path(FUNGI_GOLDEN_DIR) / "backbone" / name;
}

TinyCheckpoint like(const std::string& name) {
  TinyCheckpoint c = test::shaped_like(golden_folder(name) / "model.safetensors");
  const Checkpoint file = Checkpoint::open(golden_folder(name) / "model.safetensors");
  if (const std::string text = file.beside("config.json"); !text.empty())
    c.config = nlohmann::json::parse(text);
  return c;
}

std::string noted(const TinyCheckpoint& c, const StatedFacts& facts = {}) {
  const test::TemporaryFolder folder;
  std::string all;
  for (const std::string& note : read_notes(Checkpoint::open(c.write(folder)), facts))
    all += note + "\n";
  return all;
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// AST in its authors' names, with a table of so many patches of 16x16.
TinyCheckpoint tiny_ast(size_t positions) {
  TinyCheckpoint c = test::tiny_timm(positions + 2, 16, "module.v.");
  c.shapes["module.v.patch_embed.proj.weight"] = {test::kTimmWidth, 1, 16, 16};
  c.shapes["module.v.dist_token"] = {1, 1, test::kTimmWidth};
  return c;
}

TEST(SoundNames, AstsTableTellsStridesAndLength) {
  struct Case {
    size_t positions, stride, frames;
  };
  for (const auto& [positions, stride, frames] : {Case{1212, 10, 1024},
                                                  {600, 10, 512},
                                                  {144, 10, 128},
                                                  {850, 12, 1024},
                                                  {657, 14, 1024},
                                                  {512, 16, 1024}}) {
    const Architecture a = tiny_ast(positions).read({{"heads", "2"}});
    EXPECT_EQ(a.family, "ast");
    EXPECT_EQ(a.dialect, "ast");
    EXPECT_EQ(a.stride_h, stride) << positions;
    EXPECT_EQ(a.stride_w, stride) << positions;
    EXPECT_EQ(a.input_h, 128u);
    EXPECT_EQ(a.input_w, frames) << positions;
    EXPECT_EQ(a.patches(), positions);
    EXPECT_EQ(a.pooling, Pooling::mean_prefix);
  }
}

TEST(SoundNames, AstIsRunAtAnotherLength) {
  const Architecture a = tiny_ast(1212).read({{"heads", "2"}, {"size", "512"}});
  EXPECT_EQ(a.input_h, 128u);  // a lone number is one of frames
  EXPECT_EQ(a.input_w, 512u);
  EXPECT_EQ(a.stored_grid_w, 101u);
  EXPECT_EQ(a.grid_w(), 50u);
  EXPECT_EQ(a.position_resize, PositionResize::cut_bilinear);
}

TEST(SoundNames, AstsUnusualTableNeedsItsLength) {
  const std::string refusal = tiny_ast(12 * 40).refusal({{"heads", "2"}});
  EXPECT_TRUE(says(refusal, "size]=128x406") || says(refusal, "size=128x406")) << refusal;
  const Architecture a = tiny_ast(12 * 40).read({{"heads", "2"}, {"size", "128x406"}});
  EXPECT_EQ(a.stride_w, 10u);
  EXPECT_EQ(a.stored_grid_w, 40u);
}

TEST(SoundNames, WhatAstsFileCannotTellIsNoted) {
  const std::string notes = noted(tiny_ast(1212), {{"heads", "2"}});
  EXPECT_TRUE(says(notes, "every 10 bins and 10 frames")) << notes;
  EXPECT_TRUE(says(notes, "size=128x1024")) << notes;
}

TEST(SoundNames, OnlyAPreTrainedFileIsSsast) {
  TinyCheckpoint c = tiny_ast(512);  // AST every 16, or SSAST's 8 x 64
  EXPECT_EQ(c.read({{"heads", "2"}}).stride_w, 16u);
  c.shapes["module.mask_embed"] = {1, 1, test::kTimmWidth};
  EXPECT_TRUE(says(c.refusal({{"heads", "2"}}), "p_input_tdim"));
  c.shapes["module.p_input_tdim"] = {1};
  const Architecture a = c.read({{"heads", "2"}, {"size", "128x512"}});
  EXPECT_EQ(a.dialect, "ssast");
  EXPECT_EQ(a.stride_w, 10u);
  EXPECT_EQ(a.stored_grid_h, 8u);
  EXPECT_EQ(a.stored_grid_w, 64u);
  EXPECT_EQ(a.grid_h(), 12u);
  EXPECT_EQ(a.grid_w(), 50u);
}

TEST(SoundNames, WhispersDecoderIsLeftAsideAndSaidSo) {
  TinyCheckpoint c = like("whisper");
  EXPECT_TRUE(says(noted(c), "the decoder of model_type whisper is left aside")) << noted(c);
  c.config = nullptr;  // the names tell
  EXPECT_TRUE(says(noted(c, {{"heads", "2"}}), "the decoder of model_type whisper is left aside"));
  EXPECT_EQ(noted(like("whisper_encoder")), "");
}

TEST(SoundNames, WhisperIsReadByItsTensors) {
  TinyCheckpoint c = like("whisper");
  const Architecture a = c.read();
  EXPECT_EQ(a.family, "whisper");
  EXPECT_EQ(a.heads, 2u);
  EXPECT_EQ(a.input_h, 8u);
  EXPECT_EQ(a.input_w, 40u);
  EXPECT_EQ(a.tokens(), 20u);
  EXPECT_EQ(a.pooling, Pooling::mean_sound);
  EXPECT_EQ(c.read({{"size", "8x20"}}).tokens(), 10u);
  EXPECT_EQ(c.read({{"size", "20"}}).tokens(), 10u);
  EXPECT_TRUE(says(c.refusal({{"size", "8x41"}}), "positions for 40"));
  EXPECT_TRUE(says(c.refusal({{"size", "80x40"}}), "80 bins"));
  c.config["model_type"] = "qwen2_audio_encoder";
  EXPECT_TRUE(says(c.refusal(), "qwen2_audio_encoder"));
}

TEST(SoundNames, SoundIsWhatFramesHoldIt) {
  const Architecture a = like("whisper").read();
  EXPECT_EQ(a.sound_tokens(0), 20u);
  EXPECT_EQ(a.sound_tokens(1), 1u);
  EXPECT_EQ(a.sound_tokens(2), 1u);
  EXPECT_EQ(a.sound_tokens(3), 2u);
  EXPECT_EQ(a.sound_tokens(40), 20u);
  EXPECT_EQ(a.sound_tokens(400), 20u);
}

TEST(SoundNames, OtherPoolingsOfSounds) {
  EXPECT_EQ(like("whisper").read({{"pooling", "mean_all"}}).pooling, Pooling::mean_all);
  EXPECT_EQ(like("kwt").read({{"heads", "2"}, {"pooling", "mean_sound"}}).pooling,
            Pooling::mean_sound);
  EXPECT_TRUE(
      says(tiny_ast(1212).refusal({{"heads", "2"}, {"pooling", "mean_sound"}}), "mean_sound"));
}

TEST(SoundNames, KwtsTokensAreFrames) {
  const Architecture a = like("kwt").read({{"heads", "2"}});
  EXPECT_EQ(a.family, "kwt");
  EXPECT_TRUE(a.post_norm);
  EXPECT_FALSE(a.qkv_bias);
  EXPECT_EQ(a.input_h, 10u);
  EXPECT_EQ(a.input_w, 14u);
  EXPECT_EQ(a.tokens(), 15u);
}

TEST(SoundNames, TheFeatureExtractorsFileTellsHowAstHears) {
  TinyCheckpoint c = like("hf_ast");
  EXPECT_TRUE(c.read().sound.assumed);
  EXPECT_TRUE(says(noted(c), "the mean and std of its filter banks"));
  c.image_processor = {{"feature_extractor_type", "ASTFeatureExtractor"},
                       {"mean", -6.5},
                       {"std", 5.25},
                       {"num_mel_bins", 16},
                       {"max_length", 21},
                       {"sampling_rate", 16000}};
  const SoundFacts facts = c.read().sound;
  EXPECT_EQ(facts.front_end.mean, -6.5f);
  EXPECT_EQ(facts.front_end.std, 5.25f);
  EXPECT_EQ(facts.front_end.frames, 21u);
  EXPECT_EQ(facts.front_end.bins, 16u);
  EXPECT_FALSE(facts.front_end.centre);
  EXPECT_FALSE(facts.assumed);
  EXPECT_EQ(noted(c), "");
  EXPECT_EQ(c.read({{"mean", "-1"}}).sound.front_end.mean, -1.0f);
  EXPECT_TRUE(c.read({{"mean", "-1"}}).sound.stated_statistics);
  EXPECT_TRUE(says(c.refusal({{"std", "0"}}), "positive std"));
  EXPECT_TRUE(says(c.refusal({{"std", "five"}}), "a number"));
  EXPECT_TRUE(says(c.refusal({{"resize", "256"}}), "only pictures"));
  for (const auto& [key, value] : {std::pair<const char*, nlohmann::json>{"num_mel_bins", 128},
                                   {"max_length", 1024},
                                   {"sampling_rate", 8000},
                                   {"mean", "loud"},
                                   {"feature_extractor_type", "WhisperFeatureExtractor"}}) {
    TinyCheckpoint other = c;
    other.image_processor[key] = value;
    EXPECT_TRUE(says(other.refusal(), key)) << other.refusal();
  }
}

TEST(SoundNames, WhispersFrontEndHasNoStatistics) {
  const TinyCheckpoint c = like("whisper");
  EXPECT_EQ(c.read().sound.front_end.kind, SoundFrontEnd::Kind::whisper);
  EXPECT_EQ(c.read().sound.front_end.frames, 40u);
  EXPECT_FALSE(c.read().sound.assumed);
  EXPECT_TRUE(says(c.refusal({{"mean", "-4"}}), "no mean and std"));
  EXPECT_TRUE(says(test::tiny_timm().refusal({{"frames", "512"}}), "only models of sounds"));
  EXPECT_TRUE(says(c.refusal({{"frames", "20"}, {"size", "8x20"}}), "leave one of them out"));
}

TEST(SoundNames, RealKwt) {
  const auto file = test::data_folder() / "weights/kwt1_speechcommands.safetensors";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << test::missing_data(file);
  const Architecture a = read_architecture(Checkpoint::open(file));
  EXPECT_EQ(a.width, 64u);
  EXPECT_EQ(a.depth, 12u);
  EXPECT_EQ(a.heads, 1u);
  EXPECT_EQ(a.input_w, 98u);
  EXPECT_EQ(a.input_h, 40u);
}

}  // namespace
}  // namespace fungi
