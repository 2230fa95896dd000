// SPDX-License-Identifier: Apache-2.0
// What a backbone may be fed: where the tokens of each view lie, and that tokens which a caller
// embedded himself give what the model's own embedding gives.
#include <gtest/gtest.h>

#include <cstring>

#include "fungi/backbone/backbone.h"
#include "fungi/backbone/tensors.h"
#include "tests/support/errors.h"

namespace fungi {
namespace {

Architecture small(InputKind input) {
  Architecture a = named_architecture("vit_tiny_patch16_224");
  a.depth = 2, a.width = a.embedding_width = 32, a.heads = 2, a.head_dim = 16, a.mlp_hidden = 64;
  a.patch_h = a.patch_w = a.stride_h = a.stride_w = 4, a.input_h = a.input_w = 12;
  a.stored_grid_h = a.stored_grid_w = 3;
  a.input = input;
  if (input != InputKind::token_ids) return a;
  a.family = "bert", a.vocabulary = 50, a.max_positions = 20, a.prefix_tokens = 0;
  a.norm_pre = a.post_norm = true, a.final_norm = false;
  return a;
}

class BackboneInputs : public testing::Test {
 protected:
  Backbone make(const Architecture& a) {
    return Backbone::assemble(
        a, tensors_, {.precision = Precision::f32, .layer = "blocks.0.mlp.fc2", .tokens = true},
        pool_);
  }
  // Embeddings, all final tokens, and both factors of an early layer's gradient.
  std::vector<float> run(const Backbone& backbone, const Inputs& inputs) {
    Workspace workspace;
    const TokenLayout layout = backbone.layout(inputs);
    Matrix<float> e(inputs.count(), 32), tokens(layout.rows(), 32);
    backbone.forward(inputs, workspace, e, tokens);
    LayerGradient g;
    backbone.backward(e, workspace, g, tokens);
    std::vector<float> all;
    for (const Matrix<float>* m : {&e, &tokens, &g.a, &g.b})
      for (size_t i = 0; i < m->rows(); ++i)
        all.insert(all.end(), m->row(i), m->row(i) + m->cols());
    return all;
  }

  Pool pool_{1};
  RandomTensors tensors_{3};
};

TEST_F(BackboneInputs, TextsLieOneAfterTheOther) {
  const Backbone backbone = make(small(InputKind::token_ids));
  const std::vector<int32_t> ids = {1, 2, 3, 4, 5};
  const std::vector<uint8_t> mask = {1, 1, 0, 1, 0};
  const Inputs::Text texts[] = {{ids, mask}, {ids, {}}, {std::span(ids).first(1), {}}};
  const TokenLayout layout = backbone.layout(Inputs::text(texts));
  EXPECT_EQ(layout.offsets, (std::vector<size_t>{0, 3, 8, 9}));
  EXPECT_EQ(layout.prefix, 0u);
  EXPECT_EQ(layout.own(1), 5u);
  EXPECT_EQ(layout.first(2), 8u);
}

TEST_F(BackboneInputs, PatchesLieBehindTheModelsOwnTokens) {
  const Backbone backbone = make(small(InputKind::image));
  const Matrix<float> pixels(2, 3 * 12 * 12);
  const TokenLayout layout = backbone.layout(Inputs::images(pixels));
  EXPECT_EQ(layout.offsets, (std::vector<size_t>{0, 10, 20}));
  EXPECT_EQ(layout.prefix, 1u);
  EXPECT_EQ(layout.own(1), 9u);
  EXPECT_EQ(layout.first(1), 11u);
}

// To the last bit: the table's rows are what the model would have taken.
TEST_F(BackboneInputs, WordsMayBeEmbeddedByTheCaller) {
  for (const bool padded : {false, true}) {  // RoBERTa's positions begin behind the padding's
    Architecture a = small(InputKind::token_ids);
    if (padded) a.padding_id = 1;
    const Backbone backbone = make(a);
    const Matrix<float> words = Tensors(a, tensors_).matrix("words");
    const std::vector<std::vector<int32_t>> ids = {{4, 8, 15}, {16, 23, 42, 7, 9, 30}};
    std::vector<Inputs::Text> texts;
    InputBuffer own;
    for (const auto& text : ids) {
      texts.push_back({text, {}});
      const View<float> rows = own.add_embedded(text.size(), 32);
      for (size_t j = 0; j < text.size(); ++j)
        std::copy_n(words.row(size_t(text[j])), 32, rows.row(j));
    }
    EXPECT_EQ(run(backbone, own.inputs()), run(backbone, Inputs::text(texts)));
  }
}

TEST_F(BackboneInputs, PatchesMayBeEmbeddedByTheCaller) {
  const Architecture a = small(InputKind::image);
  const Backbone backbone = make(a);
  Matrix<float> pixels(2, 3 * 12 * 12);
  for (size_t i = 0; i < 2 * 432; ++i) pixels.data()[i] = float(i * 37 % 101) / 50 - 1;
  const Matrix<float> weight = Tensors(a, tensors_).matrix("patch_embed.weight");
  const std::vector<float> bias = Tensors(a, tensors_).vector("patch_embed.bias");
  InputBuffer own;
  for (size_t i = 0; i < 2; ++i) {
    const View<float> rows = own.add_embedded(9, 32);
    for (size_t p = 0; p < 9; ++p)
      for (size_t o = 0; o < 32; ++o) {
        double sum = bias[o];
        for (size_t k = 0; k < 48; ++k) {  // channel, row, column
          const size_t y = p / 3 * 4 + k % 16 / 4, x = p % 3 * 4 + k % 4;
          sum += double(weight(o, k)) * double(pixels(i, (k / 16 * 12 + y) * 12 + x));
        }
        rows(p, o) = float(sum);
      }
  }
  const std::vector<float> found = run(backbone, own.inputs()),
                           expected = run(backbone, Inputs::images(pixels));
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 2e-4) << i;
}

TEST_F(BackboneInputs, WhatItCannotReadIsRefused) {
  const Backbone words = make(small(InputKind::token_ids)), patches = make(small(InputKind::image));
  Workspace workspace;
  Matrix<float> e(1, 32);
  const auto given = [](InputBuffer& buffer, size_t tokens, size_t width) {
    buffer.clear();
    buffer.add_embedded(tokens, width);
    return buffer.inputs();
  };
  InputBuffer buffer;
  EXPECT_ERROR("found [4, 31]", words.forward(given(buffer, 4, 31), workspace, e));
  EXPECT_ERROR("no token", words.forward(given(buffer, 0, 32), workspace, e));
  EXPECT_ERROR("20 positions", words.forward(given(buffer, 21, 32), workspace, e));
  EXPECT_ERROR("expected embedded tokens [9, 32]",
               patches.forward(given(buffer, 8, 32), workspace, e));
  const Matrix<uint8_t> mask(1, 9);
  Inputs both = given(buffer, 9, 32);
  both.masked = mask;
  EXPECT_ERROR("one sort", patches.forward(both, workspace, e));
  const std::vector<int32_t> ids = {1};
  const Inputs::Text texts[] = {{ids, {}}};
  Inputs hidden = Inputs::text(texts);
  hidden.masked = mask;
  EXPECT_ERROR("hidden by a mask", words.forward(hidden, workspace, e));
  EXPECT_ERROR("no view", words.layout({}));
}

}  // namespace
}  // namespace fungi
