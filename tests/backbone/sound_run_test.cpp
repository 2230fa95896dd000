// SPDX-License-Identifier: Apache-2.0
// Views of sounds of which different parts are padding: each is run as if it were alone, on every
// instruction set and in every precision; and what cannot be run is refused.
#include <gtest/gtest.h>

#include "fungi/backbone/backbone.h"
#include "tests/support/errors.h"
#include "tests/support/golden_family.h"
#include "tests/support/print.h"

namespace fungi {
namespace {

using golden::Family;

struct Result {
  std::vector<float> embedding, a, b;
  bool operator==(const Result&) const = default;
};

// Of every view of the inputs.
std::vector<Result> run(const Backbone& backbone, const Inputs& inputs) {
  const size_t n = inputs.count(), d = backbone.architecture().embedding_width;
  Matrix<float> e(n, d), seed(n, d);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < d; ++j) seed(i, j) = float(j % 7) - 3.0f;
  Workspace workspace;
  backbone.forward(inputs, workspace, e);
  LayerGradient g;
  backbone.backward(seed, workspace, g);
  std::vector<Result> all;
  const auto rows = [](const Matrix<float>& m, size_t first, size_t last) {
    return std::vector<float>(m.row(first), m.row(first) + (last - first) * m.cols());
  };
  for (size_t i = 0; i < n; ++i)
    all.push_back({rows(e, i, i + 1), rows(g.a, g.offsets[i], g.offsets[i + 1]),
                   rows(g.b, g.offsets[i], g.offsets[i + 1])});
  return all;
}

class Sounds : public testing::TestWithParam<std::tuple<Isa, Precision, std::string>> {};

TEST_P(Sounds, SameBytesAloneAndInABatch) {
  const auto& [isa, precision, layer] = GetParam();
  const Family family("whisper");
  Pool pool(1);
  const Backbone backbone = Backbone::open(
      family.checkpoint(), {.isa = isa, .precision = precision, .layer = layer}, pool);
  const std::vector<Result> together = run(backbone, family.inputs());
  for (size_t i = 0; i < together.size(); ++i) {
    Inputs one = family.inputs();
    one.pixels = one.pixels.slice(i, 1);
    one.frames = one.frames.subspan(i, 1);
    EXPECT_EQ(run(backbone, one)[0], together[i]) << "view " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(, Sounds,
                         testing::Combine(testing::ValuesIn(supported_isas()),
                                          testing::Values(Precision::f32, Precision::bf16,
                                                          Precision::int8),
                                          testing::Values("blocks.1.attn.proj", "blocks.1.attn.qkv",
                                                          "blocks.0.mlp.fc1")));

// In the last block only the tokens that hold sound have a gradient, and only they are computed.
TEST(SoundFrames, FactorsAreThoseOfTheTokensThatHoldSound) {
  const Family family("whisper");
  Pool pool(1);
  const Backbone backbone =
      Backbone::open(family.checkpoint(), {.precision = Precision::f32}, pool);
  EXPECT_FALSE(backbone.can_record());
  const std::vector<Result> all = run(backbone, family.inputs());
  const size_t width = backbone.architecture().width;
  EXPECT_EQ(all[0].b.size(), 7 * width);   // 13 frames
  EXPECT_EQ(all[1].b.size(), 20 * width);  // 40, all of them
  EXPECT_EQ(all[2].b.size(), 1 * width);   // one
}

TEST(SoundFrames, WithoutFramesAllOfThemAre) {
  const Family family("whisper");
  Pool pool(1);
  const Backbone backbone =
      Backbone::open(family.checkpoint(), {.precision = Precision::f32}, pool);
  Inputs inputs = family.inputs();
  const std::vector<Result> stated = run(backbone, inputs);
  inputs.frames = {};
  const std::vector<Result> whole = run(backbone, inputs);
  EXPECT_EQ(whole[1], stated[1]);
  EXPECT_FALSE(whole[0] == stated[0]);
  const uint32_t one[] = {3};
  inputs.frames = one;
  Workspace workspace;
  Matrix<float> e(3, backbone.architecture().width);
  EXPECT_ERROR("frames of 1", backbone.forward(inputs, workspace, e));
}

}  // namespace
}  // namespace fungi
