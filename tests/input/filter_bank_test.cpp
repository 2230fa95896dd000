// SPDX-License-Identifier: Apache-2.0
// Filter banks against kaldi-native-fbank, Hugging Face's extractors and the matrices of a
// published keyword model, on a sound that is here and on real clips.
#include "fungi/input/filter_bank.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <numbers>
#include <set>

#include "fungi/input/sound.h"
#include "tests/support/data.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"

namespace fungi {
namespace {

const std::string kGolden = FUNGI_GOLDEN_DIR "/sound/";

// Rows of a front end; `held` may be asked for.
Matrix<float> bank(SoundFrontEnd f, std::span<const float> samples, size_t* held = nullptr,
                   bool normalised = false) {
  FilterBank filters(f);
  Matrix<float> rows(f.frames, f.bins);
  const size_t count = filters.rows(samples, rows);
  if (held) *held = count;
  if (normalised) filters.normalise(rows);
  return rows;
}

class FilterBanks : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      FilterBank probe(ast_front_end());
      half_ = read_sound(kGolden + "half.wav").samples;
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }
  // The largest distance of every `step`-th row from a golden file; of numbers above `least`.
  static double distance(const Matrix<float>& rows, const std::string& file, size_t step = 1,
                         double least = -1e9) {
    const golden::Array expected = golden::load(kGolden + file);
    EXPECT_LE((expected.rows() - 1) * step + 1, rows.rows()) << file;
    double worst = 0;
    for (size_t i = 0; i < expected.rows(); ++i)
      for (size_t j = 0; j < expected.cols(); ++j) {
        const double value = expected.values[i * expected.cols() + j];
        if (value > least) worst = std::max(worst, std::abs(rows(i * step, j) - value));
      }
    return worst;
  }
  std::vector<float> half_;
};

// SPEC 7.5.
TEST_F(FilterBanks, OfASineAreTheSpecified) {
  std::vector<float> x(720);
  for (size_t n = 0; n < x.size(); ++n)
    x[n] = float(0.5 * std::sin(2 * std::numbers::pi * 440 * double(n) / 16000) +
                 0.1 * std::sin(2 * std::numbers::pi * 3000 * double(n) / 16000));
  SoundFrontEnd f;
  f.frames = 3;
  size_t held = 0;
  const Matrix<float> rows = bank(f, x, &held);
  EXPECT_EQ(held, 3u);
  const std::map<size_t, double> first{{0, -14.11519}, {1, -15.61057}, {2, -12.16719},
                                       {20, -0.35965}, {28, -8.06177}, {29, -7.65605},
                                       {30, -7.50074}, {90, -11.99431}, {3, -15.94239},
                                       {127, -15.94239}};
  for (const auto& [bin, value] : first) EXPECT_NEAR(rows(0, bin), value, 1e-3) << bin;
  for (const auto& [bin, value] :
       std::map<size_t, double>{{0, -12.05464}, {20, -0.35862}, {90, -11.99527}})
    EXPECT_NEAR(rows(2, bin), value, 1e-3) << bin;
}

TEST_F(FilterBanks, AreKaldis) {
  SoundFrontEnd f;
  f.frames = 48;
  const Matrix<float> rows = bank(f, half_);
  EXPECT_LT(distance(rows, "made/kaldi.npy"), 1e-3);
  EXPECT_LT(distance(rows, "made/kaldi.npy", 1, -10), 2e-4);
  f.rate = 8000, f.window = 200, f.hop = 80, f.fft = 256, f.high_hz = 4000;
  EXPECT_LT(distance(bank(f, half_), "made/kaldi_8k.npy"), 1e-3);
}

TEST_F(FilterBanks, AreThoseOfHuggingFacesAst) {
  SoundFrontEnd f;
  f.frames = 64;  // behind 48 there is padding
  EXPECT_LT(distance(bank(f, half_, nullptr, true), "made/extractor.npy"), 1e-4);
  f.frames = 32, f.normalise = false;
  EXPECT_LT(distance(bank(f, half_, nullptr, true), "made/extractor_plain.npy", 4), 1e-3);
}

TEST_F(FilterBanks, AreWhispers) {
  for (const size_t bins : {80, 128}) {
    size_t held = 0;
    const Matrix<float> rows = bank(whisper_front_end(bins), half_, &held, true);
    EXPECT_EQ(held, 50u);
    EXPECT_LT(distance(rows, "made/whisper" + std::to_string(bins) + ".npy", 3), 2e-5) << bins;
  }
}

TEST_F(FilterBanks, AreTheKeywordModels) {
  size_t held = 0;
  EXPECT_LT(distance(bank(kwt_front_end(), half_, &held), "made/keyword.npy", 3), 1e-3);
  EXPECT_EQ(held, 50u);
}

// In frames of digital silence the keyword model's cepstra are logarithms of rounding errors.
TEST_F(FilterBanks, OfRealClipsAreTheReferences) {
  const std::filesystem::path data = test::data_folder();
  if (!std::filesystem::exists(data / "audio")) GTEST_SKIP() << test::missing_data(data / "audio");
  std::map<std::string, golden::Array> expected;
  std::map<std::string, size_t> row;
  std::map<std::string, double> worst;
  std::ifstream list(kGolden + "clips/clips.tsv");
  std::string kind, frame, file;
  std::set<std::string> files;
  while (std::getline(list, kind, '\t') && std::getline(list, frame, '\t') &&
         std::getline(list, file)) {
    if (!expected.count(kind)) expected[kind] = golden::load(kGolden + "clips/" + kind + ".npy");
    const std::vector<float> samples = read_sound(data / file).samples;
    SoundFrontEnd f;
    if (kind == "kaldi") f = ast_front_end();
    if (kind == "whisper") f = whisper_front_end();
    if (kind == "keyword") f = kwt_front_end();
    if (kind == "extractor") f.frames = 98;
    const Matrix<float> rows = bank(f, samples, nullptr, kind != "kaldi");
    const golden::Array& all = expected[kind];
    const size_t at = row[kind]++;
    for (size_t j = 0; j < all.cols(); ++j)
      worst[kind] = std::max(worst[kind], std::abs(rows(std::stoul(frame), j) -
                                                   all.values[at * all.cols() + j]));
    files.insert(file);
  }
  EXPECT_GE(files.size(), 20u);
  EXPECT_LT(worst["kaldi"], 1e-3);
  EXPECT_LT(worst["extractor"], 1e-4);
  EXPECT_LT(worst["whisper"], 2e-5);
  EXPECT_LT(worst["keyword"], 0.1);
}

// What stands behind a clip, and what a longer one has behind the last frame, changes no row.
TEST_F(FilterBanks, ARowDependsOnItsOwnSamplesAlone) {
  for (SoundFrontEnd f : {SoundFrontEnd{}, kwt_front_end()}) {
    f.frames = 60;
    const Matrix<float> all = bank(f, half_);
    const Matrix<float> part = bank(f, std::span(half_).first(4000));
    const size_t same = (4000 - f.window) / f.hop + 1;
    EXPECT_TRUE(std::equal(part.data(), part.data() + same * f.bins, all.data()));
  }
}

TEST_F(FilterBanks, PaddingIsWhatTheModelsHave) {
  SoundFrontEnd f;
  f.frames = 50;
  size_t held = 0;
  const Matrix<float> rows = bank(f, half_, &held, true);
  EXPECT_EQ(held, 48u);
  const float zero = (0 - f.mean) / (2 * f.std);  // loud: SPEC 10.3
  EXPECT_EQ(rows(48, 0), zero);
  EXPECT_EQ(rows(49, 127), zero);
  EXPECT_NE(rows(47, 5), zero);
}

TEST_F(FilterBanks, WhatCannotBeIsRefused) {
  EXPECT_NE(test::error_of([&] { bank(SoundFrontEnd{}, std::span(half_).first(399)); })
                .find("less than one window"),
            std::string::npos);
  EXPECT_EQ(test::error_of([&] { bank(whisper_front_end(), std::span(half_).first(1)); }), "");
  EXPECT_EQ(test::error_of([&] { bank(kwt_front_end(), std::span(half_).first(1)); }), "");
  EXPECT_NE(test::error_of([&] { bank(kwt_front_end(), {}); }), "");
  const auto refused = [](const std::function<void(SoundFrontEnd&)>& change) {
    SoundFrontEnd f;
    change(f);
    return test::error_of([&] { FilterBank filters(f); });
  };
  EXPECT_NE(refused([](auto& f) { f.window = 600; }), "");
  EXPECT_NE(refused([](auto& f) { f.fft = 511; }), "");
  EXPECT_NE(refused([](auto& f) { f.hop = 0; }), "");
  EXPECT_NE(refused([](auto& f) { f.mels = 0; }), "");
  EXPECT_NE(refused([](auto& f) { f.bins = 64; }), "");
  EXPECT_NE(refused([](auto& f) { f.high_hz = 9000; }), "");
  EXPECT_NE(refused([](auto& f) { f.std = 0; }), "");
  EXPECT_NE(refused([](auto& f) { f.frames = 0; }), "");
  EXPECT_NE(refused([](auto& f) { f.rate = 0; }), "");
  Matrix<float> small(3, 128);
  EXPECT_NE(test::error_of([&] { FilterBank(SoundFrontEnd{}).rows(half_, small); }), "");
}

}  // namespace
}  // namespace fungi
