// SPDX-License-Identifier: Apache-2.0
// Real encoders of sounds on given filter banks: Whisper tiny.en beside transformers
// (tests/golden/make_whisper_tiny.py), in f32 and bf16.
#include <gtest/gtest.h>

#include <filesystem>

#include "fungi/backbone/backbone.h"
#include "tests/support/data.h"
#include "tests/support/golden.h"
#include "tests/support/print.h"

namespace fungi {
namespace {

constexpr size_t kFrames = 3000, kSound = 301, kBins = 80;
constexpr size_t kTokens[] = {0, 1, 2, 75, 150, 151, 748, 1497, 1498, 1499};

std::filesystem::path whisper() { return test::data_folder() / "weights/whisper-tiny.en-encoder"; }

// As in the script.
std::vector<float> bank() {
  std::vector<float> x(kFrames * kBins);
  for (size_t t = 0; t < kFrames; ++t)
    for (size_t b = 0; b < kBins; ++b)
      x[t * kBins + b] =
          t < kSound ? float(int((37 * t + 11 * b + t * b % 13) % 97) - 48) / 64.0f : -0.75f;
  return x;
}

golden::Array truth(const char* name) {
  return golden::load(std::string(FUNGI_GOLDEN_DIR) + "/whisper_tiny/" + name + ".npy");
}

// Embedding, and tokens where they are wanted.
std::pair<Matrix<float>, Matrix<float>> run(Precision precision, bool tokens) {
  Pool pool(2);
  const Backbone backbone =
      Backbone::open(whisper(), {.precision = precision, .layer = "none", .tokens = tokens}, pool);
  const size_t width = backbone.architecture().width;
  const std::vector<float> x = bank();
  const uint32_t frames[] = {kSound};
  Inputs inputs = Inputs::images({x.data(), 1, x.size()});
  inputs.frames = frames;
  std::pair<Matrix<float>, Matrix<float>> out;
  out.first = Matrix<float>(1, width);
  if (tokens) out.second = Matrix<float>(kFrames / 2, width);
  Workspace workspace;
  backbone.forward(inputs, workspace, out.first, tokens ? out.second.view() : View<float>{});
  return out;
}

TEST(RealWhisper, IsThatOfTransformers) {
  if (!std::filesystem::exists(whisper())) GTEST_SKIP() << test::missing_data(whisper());
  const auto [embedding, tokens] = run(Precision::f32, true);
  const golden::Array expected = truth("embedding"), rows = truth("tokens");
  EXPECT_LT(golden::relative_error(embedding.row(0), expected.values.data(), expected.cols()),
            2e-5);
  for (size_t i = 0; i < std::size(kTokens); ++i)
    EXPECT_LT(golden::relative_error(tokens.row(kTokens[i]), rows.values.data() + i * rows.cols(),
                                     rows.cols()),
              1e-4)
        << "token " << kTokens[i];
}

// The last block is then computed for the tokens that hold sound alone.
TEST(RealWhisper, ItsEmbeddingIsTheSameWithoutTheTokens) {
  if (!std::filesystem::exists(whisper())) GTEST_SKIP() << test::missing_data(whisper());
  const golden::Array expected = truth("embedding");
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    const Matrix<float> embedding = run(precision, false).first;
    EXPECT_LT(golden::relative_error(embedding.row(0), expected.values.data(), expected.cols()),
              precision == Precision::f32 ? 2e-5 : 0.02);
  }
}

}  // namespace
}  // namespace fungi
