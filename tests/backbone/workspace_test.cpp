// SPDX-License-Identifier: Apache-2.0
// A workspace that another backbone has used: the same bytes as from a fresh one, and no backward
// from what was left behind.
#include <gtest/gtest.h>

#include "fungi/backbone/arena.h"
#include "fungi/backbone/backbone.h"
#include "fungi/backbone/tensors.h"

namespace fungi {
namespace {

Architecture tiny_image(size_t width = 48) {
  Architecture a = named_architecture("vit_tiny_patch16_224");
  a.width = a.embedding_width = width, a.depth = 2, a.heads = 2, a.head_dim = width / 2;
  a.mlp_hidden = 64, a.input_h = a.input_w = 48, a.stored_grid_h = a.stored_grid_w = 3;
  return a;
}

Architecture tiny_text() {  // as T5
  Architecture a;
  a.input = InputKind::token_ids;
  a.width = a.embedding_width = 32, a.depth = 2, a.heads = 2, a.head_dim = 16, a.mlp_hidden = 64;
  a.vocabulary = 20, a.relative_buckets = 8, a.relative_distance = 20, a.prefix_tokens = 0;
  a.rms_norm = true, a.qkv_bias = a.linear_bias = a.scale_attention = false;
  a.pooling = Pooling::mean_all;
  return a;
}

struct Result {
  std::vector<float> embedding, gradient;
  bool operator==(const Result&) const = default;
};

Result run(const Backbone& backbone, Workspace& workspace) {
  const Architecture& a = backbone.architecture();
  Matrix<float> e(3, a.embedding_width), pixels(3, a.channels * a.input_h * a.input_w);
  for (size_t i = 0; i < 3 * pixels.cols(); ++i) pixels.data()[i] = float(i % 17) / 8 - 1;
  const std::vector<int32_t> ids{3, 4, 5, 6, 7, 8, 9};
  const std::vector<Inputs::Text> texts(3, {ids, {}});
  backbone.forward(a.input == InputKind::image ? Inputs::images(pixels) : Inputs::text(texts),
                   workspace, e);
  LayerGradient g;
  backbone.backward(e, workspace, g);
  return {{e.data(), e.data() + 3 * e.cols()}, {g.b.data(), g.b.data() + g.b.rows() * g.b.cols()}};
}

TEST(Workspace, AnotherBackboneStartsFromNothing) {
  Pool pool(1);
  for (const Isa isa : supported_isas()) {
    std::vector<Backbone> backbones;
    uint64_t seed = 0;
    for (const Precision precision : {Precision::bf16, Precision::f32})
      for (const Architecture& a :
           {tiny_image(), tiny_image(40), tiny_text(), tiny_text()}) {  // of other weights
        BackboneOptions options{.isa = isa, .precision = precision, .layer = "blocks.0.attn.qkv"};
        backbones.push_back(Backbone::assemble(a, RandomTensors(++seed), options, pool));
      }
    std::vector<Result> fresh;
    for (const Backbone& b : backbones) {
      Workspace workspace;
      fresh.push_back(run(b, workspace));
    }
    for (size_t i = 0; i < backbones.size(); ++i)
      for (size_t j = 0; j < backbones.size(); ++j) {
        Workspace workspace;
        run(backbones[i], workspace);
        EXPECT_EQ(run(backbones[j], workspace), fresh[j]) << j << " after " << i;
      }
  }
}

TEST(Workspace, BackwardAndRecordWantTheirOwnForward) {
  Pool pool(1);
  const BackboneOptions options{.precision = Precision::f32};
  const Backbone one = Backbone::assemble(tiny_image(), RandomTensors(1), options, pool),
                 other = Backbone::assemble(tiny_image(), RandomTensors(2), options, pool);
  ASSERT_TRUE(one.can_record());
  Workspace workspace;
  run(one, workspace);
  Matrix<float> d(3, one.architecture().embedding_width);
  LayerGradient g;
  EXPECT_THROW(other.backward(d, workspace, g), Error);
  Recording of_one(one, 3), of_other(other, 3);
  EXPECT_THROW(other.record(workspace, of_other), Error) << "a foreign forward";
  EXPECT_THROW(one.record(workspace, of_other), Error) << "a foreign recording";
  one.record(workspace, of_one);
  Workspace second;
  EXPECT_THROW(other.backward(d, of_one, 0, second, {&g, 1}), Error);
  run(other, second);
  EXPECT_NO_THROW(one.backward(d, of_one, 0, second, {&g, 1})) << "any workspace will do";
}

TEST(Arena, ElementsOfAnotherTypeOrWidthAreFresh) {
  const Isa isa = supported_isas().back();
  const kernel::Kernel &f32 = kernel::kernel_for(isa, Precision::f32),
                       &bf16 = kernel::kernel_for(isa, Precision::bf16);
  Elements elements;
  elements.ensure(bf16, 4, 64);
  elements.ensure(f32, 4, 64);
  EXPECT_EQ(elements.row(1) - elements.row(0), 5 * 64);  // four lines and one that keeps them odd
  std::fill_n(reinterpret_cast<float*>(elements.row(0)), 64, 1.0f);
  elements.ensure(f32, 4, 50);  // the same stride
  for (size_t j = 50; j < elements.stride(); ++j)
    EXPECT_EQ(*reinterpret_cast<float*>(elements.at(0, j)), 0.0f);
}

}  // namespace
}  // namespace fungi
