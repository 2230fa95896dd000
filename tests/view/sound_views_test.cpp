// SPDX-License-Identifier: Apache-2.0
// Views of sounds: the experiments' noise and roll for given draws, and what a draw depends on.
#include "fungi/view/sound_views.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <set>

#include "fungi/base/random.h"
#include "fungi/input/sound.h"
#include "tests/support/data.h"
#include "tests/support/errors.h"

namespace fungi {
namespace {

SoundReading reading(size_t frames = 48) {
  SoundReading r{ast_front_end()};
  r.front_end.frames = frames;
  return r;
}

Sound tone(size_t samples, double rate = 16000) {
  Sound sound{std::vector<float>(samples), rate};
  for (size_t n = 0; n < samples; ++n)
    sound.samples[n] = float(0.3 * std::sin(2 * std::numbers::pi * 700 * double(n) / rate) +
                             0.01 * std::sin(0.37 * double(n * n % 977)));
  return sound;
}

std::vector<float> view_of(SoundViews& views, size_t view, uint32_t* held = nullptr) {
  InputBuffer buffer;
  views.write(view, buffer);
  const Inputs inputs = buffer.inputs();
  if (held) *held = inputs.frames.empty() ? 0 : inputs.frames[0];
  return {inputs.pixels.row(0), inputs.pixels.row(0) + inputs.pixels.cols};
}

class SoundViewsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      FilterBank probe(ast_front_end());
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }
};

// A view for given draws as the experiments compute it: rolled after the noise, rows wrap.
TEST(SoundShiftTest, IsTheExperiments) {
  const size_t rows = 5, bins = 3;
  Matrix<float> bank(rows, bins), out(rows, bins);
  std::vector<float> noise(rows * bins);
  TorchRandom random(7);
  for (float& u : noise) u = random.uniform();
  for (size_t i = 0; i < rows * bins; ++i) bank.data()[i] = float(i);
  for (const ptrdiff_t roll : {-7, -2, 0, 3, 9}) {
    shift_sound(bank, {noise, 0.0375f, roll}, rows, out);
    for (ptrdiff_t t = 0; t < ptrdiff_t(rows); ++t) {
      const size_t from = size_t(((t - roll) % 5 + 5) % 5);
      for (size_t m = 0; m < bins; ++m)
        EXPECT_EQ(out(size_t(t), m), bank(from, m) + noise[from * bins + m] * 0.0375f) << roll;
    }
  }
  shift_sound(bank, {noise, 0, 1}, 2, out);  // only the first two rows go round
  EXPECT_EQ(out(0, 0), bank(1, 0));
  EXPECT_EQ(out(1, 0), bank(0, 0));
  EXPECT_EQ(out(2, 0), bank(2, 0));
}

// SPEC 10.3's own numbers of a real clip, which the experiments' library computed: as the model is
// fed it, and a view whose draws are given.
TEST_F(SoundViewsTest, OfARealClipAreTheSpecified) {
  const auto file = test::data_folder() / "audio/esc10-16k/audio/1-172649-D-40.wav";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << test::missing_data(file);
  constexpr size_t kRows[] = {0, 1, 50, 97, 504, 505, 511}, kColumns[] = {0, 3, 20, 64, 127};
  constexpr float kWhole[7][5] = {
      {0.4336802f, -0.8692391f, 0.4005454f, 0.2716043f, 0.5989262f},
      {0.5689531f, -0.8692391f, 0.4345587f, 0.6083554f, 0.640253f},
      {0.5696631f, -0.8692391f, 0.4099027f, 0.5824116f, 0.6505215f},
      {0.5566619f, -0.8692391f, 0.4830705f, 0.5552252f, 0.7029659f},
      {0.6183493f, 0.6183493f, 0.6183493f, 0.6183493f, 0.6183493f},
      {0.6183493f, 0.6183493f, 0.6183493f, 0.6183493f, 0.6183493f},
      {0.6183493f, 0.6183493f, 0.6183493f, 0.6183493f, 0.6183493f}};
  constexpr float kView[7][5] = {
      {-0.005520303f, -0.8679739f, 0.3141391f, 0.3118284f, 0.6933948f},
      {0.4226096f, -0.8659658f, 0.3224237f, 0.5945677f, 0.570167f},
      {0.575026f, -0.866981f, 0.3289965f, 0.6414809f, 0.7987431f},
      {0.5283325f, -0.8682079f, 0.5430638f, 0.564657f, 0.6094781f},
      {0.6217972f, 0.6184396f, 0.6210181f, 0.6216023f, 0.6192421f},
      {0.435552f, -0.8669406f, 0.4036347f, 0.2727607f, 0.5995366f},
      {0.0136204f, -0.866572f, 0.4519258f, 0.3706468f, 0.6485391f}};
  SoundFrontEnd f = ast_front_end();
  f.frames = 512, f.mean = -6.6268077f, f.std = 5.358466f;
  FilterBank bank(f);
  Matrix<float> rows(512, 128), view(512, 128);
  EXPECT_EQ(bank.rows(read_sound(file).samples, rows), 498u);
  std::vector<float> noise(512 * 128);
  TorchRandom random(7);
  for (float& u : noise) u = random.uniform();
  shift_sound(rows, {noise, 0.375f / 10, -7}, 512, view);
  bank.normalise(rows), bank.normalise(view);
  for (size_t i = 0; i < 7; ++i)
    for (size_t j = 0; j < 5; ++j) {
      EXPECT_NEAR(rows(kRows[i], kColumns[j]), kWhole[i][j], 1e-4) << kRows[i];
      EXPECT_NEAR(view(kRows[i], kColumns[j]), kView[i][j], 1e-4) << kRows[i];
    }
}

TEST_F(SoundViewsTest, ShiftsAreDrawnByTheSeedAlone) {
  const SoundShifts plan{.global_views = 60, .shift = 3};
  SoundViews whole(WholeView{}, reading()), views(plan, reading()), again(plan, reading());
  const Sample sample = tone(8000);
  whole.open(sample, 5), views.open(sample, 5), again.open(sample, 5);
  const std::vector<float> plain = view_of(whole, 0);
  const float unit = 2 * reading().front_end.std;
  std::set<size_t> rolls;
  double most = 0;
  for (size_t v = plan.global_views; v-- > 0;) {
    const std::vector<float> shown = view_of(views, v);
    EXPECT_EQ(shown, view_of(again, v));
    // Noise is at most a tenth before the rows are normalised, and never below zero: so the roll
    // can be told.
    size_t found = 0;
    for (size_t roll = 0; roll < 48; ++roll) {
      bool fits = true;
      for (size_t t = 0; t < 48 && fits; ++t)
        for (size_t m = 0; m < 128; ++m) {
          const float added = (shown[(t + roll) % 48 * 128 + m] - plain[t * 128 + m]) * unit;
          if (added < -1e-4f || added > 0.1001f) fits = false;
          if (fits) most = std::max(most, double(added));
        }
      if (fits) rolls.insert(roll), ++found;
    }
    EXPECT_EQ(found, 1u) << v;
  }
  EXPECT_EQ(rolls, (std::set<size_t>{0, 1, 2, 45, 46, 47})) << "-3 to 2";
  EXPECT_GT(most, 0.05);
  again.open(sample, 6);
  EXPECT_NE(view_of(again, 0), view_of(views, 0));
}

TEST_F(SoundViewsTest, ThePapersTextShiftsToBothSides) {
  SoundShifts plan{.global_views = 200, .noise = 0, .shift = 1};
  std::set<std::vector<float>> different;
  for (const auto rule : {SoundShifts::Rule::experiments, SoundShifts::Rule::symmetric}) {
    plan.rule = rule;
    SoundViews views(plan, reading());
    const Sample sample = tone(8000);
    views.open(sample, 5);
    different.clear();
    for (size_t v = 0; v < plan.global_views; ++v) different.insert(view_of(views, v));
    EXPECT_EQ(different.size(), rule == SoundShifts::Rule::experiments ? 2u : 3u);
  }
}

TEST_F(SoundViewsTest, OtherRatesAreConvertedAndTold) {
  SoundViews views(WholeView{}, reading(98));
  const Sample same = tone(16000), other = tone(44100, 44100);
  views.open(same, 0);
  EXPECT_FALSE(views.resampled());
  const std::vector<float> expected = view_of(views, 0);
  try {
    views.open(other, 0);
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  EXPECT_TRUE(views.resampled());
  uint32_t held = 0;
  view_of(views, 0, &held);
  EXPECT_EQ(held, 98u);
}

TEST_F(SoundViewsTest, LongOnesAreCutAndTold) {
  SoundViews views(WholeView{}, reading());
  const size_t longest = reading().front_end.longest();
  EXPECT_EQ(longest, 47u * 160 + 400);
  uint32_t held = 0;
  const Sample just = tone(longest), longer = tone(longest + 1), shorter = tone(1000);
  views.open(just, 0);
  EXPECT_FALSE(views.cut());
  views.open(longer, 0);
  EXPECT_TRUE(views.cut());
  views.open(shorter, 0);
  view_of(views, 0, &held);
  EXPECT_EQ(held, 4u);
  // A window is what was wanted.
  SoundReading part = reading();
  part.window = 0.25;
  SoundViews windows(WholeView{}, part);
  windows.open(just, 0);
  EXPECT_FALSE(windows.cut());
  view_of(windows, 0, &held);
  EXPECT_EQ(held, (4000u - 400) / 160 + 1);
  const Sample quarter = tone(4000);
  const std::vector<float> shown = view_of(windows, 0);
  windows.open(quarter, 0);
  EXPECT_EQ(view_of(windows, 0), shown);
}

TEST_F(SoundViewsTest, PaddingOfWhispersStaysWhereItIs) {
  SoundReading whisper{whisper_front_end()};
  whisper.front_end.frames = 100;
  SoundViews views(SoundShifts{.global_views = 8, .noise = 0}, whisper);
  const Sample sample = tone(3200);
  views.open(sample, 3);
  for (size_t v = 0; v < 8; ++v) {
    uint32_t held = 0;
    const std::vector<float> shown = view_of(views, v, &held);
    ASSERT_EQ(held, 20u);
    float loudest_of_padding = -9;
    for (size_t i = 25 * 80; i < shown.size(); ++i)
      loudest_of_padding = std::max(loudest_of_padding, shown[i]);
    EXPECT_LT(loudest_of_padding, 0) << v;
  }
}

TEST_F(SoundViewsTest, WhatCannotBeIsRefused) {
  EXPECT_ERROR("another kind of sample", sound_view_count(WordDeletions{}));
  EXPECT_ERROR("expected 1 to", sound_view_count(SoundShifts{.global_views = 0}));
  EXPECT_ERROR("expected noise", sound_view_count(SoundShifts{.noise = -1}));
  EXPECT_EQ(sound_view_count(SoundShifts{.global_views = 2, .local_views = 10}), 12u);
  SoundViews views(WholeView{}, reading());
  InputBuffer buffer;
  EXPECT_ERROR("call open()", views.write(0, buffer));
  const Sample text = Text{"x"}, empty = Sound{{}, 16000}, tiny = tone(399);
  EXPECT_ERROR("expected a sound", views.open(text, 0));
  EXPECT_ERROR("no samples", views.open(empty, 0));
  EXPECT_ERROR("less than one window", views.open(tiny, 0));
  EXPECT_ERROR("call open()", views.write(0, buffer));
}

}  // namespace
}  // namespace fungi
