// SPDX-License-Identifier: Apache-2.0
// A sample is alone: the same bytes by itself, in batches of 3 and 16, with one and two threads, on
// every instruction set and in every precision.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "fungi/backbone/backbone.h"
#include "fungi/backbone/tensors.h"
#include "fungi/base/random.h"
#include "tests/support/golden.h"
#include "tests/support/print.h"

namespace fungi {
namespace {

struct Result {
  std::vector<float> embedding, a, b;
  bool operator==(const Result&) const = default;
};

Matrix<float> random_pixels(size_t n, size_t size, uint64_t seed) {
  Matrix<float> pixels(n, size);
  const RandomStream random(seed, "pixels");
  for (size_t i = 0; i < n * size; ++i) pixels.data()[i] = float(random.normal(i));
  return pixels;
}

// Everything known of sample `index` when it is run in the given batch.
Result run(const Backbone& backbone, View<const float> pixels, size_t index, Workspace& workspace) {
  const size_t d = backbone.architecture().embedding_width;
  Matrix<float> e(pixels.rows, d), seed(pixels.rows, d);
  for (size_t i = 0; i < seed.rows(); ++i)
    for (size_t j = 0; j < d; ++j) seed(i, j) = float(j % 7) - 3.0f;
  backbone.forward(Inputs::images(pixels), workspace, e);
  LayerGradient g;
  backbone.backward(seed, workspace, g);
  const size_t first = g.offsets[index], last = g.offsets[index + 1];
  return {{e.row(index), e.row(index) + d},
          {g.a.row(first), g.a.row(first) + (last - first) * g.a.cols()},
          {g.b.row(first), g.b.row(first) + (last - first) * g.b.cols()}};
}

class Invariance : public testing::TestWithParam<std::tuple<Isa, Precision, std::string>> {};

TEST_P(Invariance, SameBytesInAnyBatchAndThread) {
  const auto& [isa, precision, layer] = GetParam();
  Architecture arch = named_architecture("vit_tiny_patch16_224");
  arch.depth = 2, arch.input_h = 80, arch.input_w = 64, arch.stored_grid_h = 5,
  arch.stored_grid_w = 4;  // 21 tokens
  Pool pool(2);
  const Backbone backbone = Backbone::assemble(
      arch, RandomTensors(3), {.isa = isa, .precision = precision, .layer = layer}, pool);
  const Matrix<float> pixels = random_pixels(16, 3 * 80 * 64, 1);
  std::vector<Result> alone(16);
  Workspace workspace;
  for (size_t i = 0; i < 16; ++i) alone[i] = run(backbone, pixels.view().slice(i, 1), 0, workspace);
  for (size_t i = 0; i < 16; ++i)
    EXPECT_EQ(run(backbone, pixels, i, workspace), alone[i]) << "in a batch of 16: " << i;
  for (size_t i = 0; i + 3 <= 16; i += 3)
    for (size_t j = 0; j < 3; ++j)
      EXPECT_EQ(run(backbone, pixels.view().slice(i, 3), j, workspace), alone[i + j])
          << "in a batch of 3";
  std::vector<Workspace> workspaces(2);
  pool.parallel_for(8, 1, [&](size_t i, size_t, unsigned worker) {
    EXPECT_EQ(run(backbone, pixels.view().slice(2 * i, 2), 1, workspaces[worker]), alone[2 * i + 1])
        << "with two threads";
  });
}

INSTANTIATE_TEST_SUITE_P(, Invariance,
                         testing::Combine(testing::ValuesIn(supported_isas()),
                                          testing::Values(Precision::f32, Precision::bf16,
                                                          Precision::int8),
                                          testing::Values("blocks.1.attn.proj", "blocks.0.mlp.fc1",
                                                          "blocks.1.attn.qkv")),
                         [](const auto& p) {
                           std::string layer = std::get<2>(p.param);
                           std::replace(layer.begin(), layer.end(), '.', '_');
                           return std::string(to_string(std::get<0>(p.param))) + "_" +
                                  to_string(std::get<1>(p.param)) + "_" + layer;
                         });

}  // namespace
}  // namespace fungi
