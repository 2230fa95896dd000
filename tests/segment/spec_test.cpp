// SPDX-License-Identifier: Apache-2.0
// SPEC 7.3, the mini ViT: features of its patches from the pieces that PatchFeatures joins, with
// the two negatives that the specification gives.
#include <gtest/gtest.h>

#include <cmath>

#include "fungi/backbone/backbone.h"
#include "fungi/objective/patch_simclr.h"
#include "fungi/projection/projection.h"
#include "tests/support/mini_vit.h"

namespace fungi {
namespace {

TEST(PatchSpecification, MiniVit) {
  const mini::Model m;
  Pool pool(1);
  BackboneOptions options;
  options.precision = Precision::f32;
  options.tokens = true;
  const Backbone backbone =
      Backbone::assemble(mini::architecture(), mini::Tensors(m), options, pool);
  PatchSimclr loss({.width = 4}, 8, 1);
  std::vector<NamedMatrix> head;
  head.push_back({"head0.weight", Matrix<float>(4, 8)});
  head.push_back({"head0.bias", Matrix<float>(1, 4)});
  std::copy(m.simclr.weight.begin(), m.simclr.weight.end(), head[0].values.data());
  std::copy(m.simclr.bias.begin(), m.simclr.bias.end(), head[1].values.data());
  loss.restore(head);

  Workspace workspace;
  const auto run = [&](size_t image, View<float> embedding, View<float> tokens) {
    Matrix<float> pixels(1, 192);
    std::copy(m.images[image].begin(), m.images[image].end(), pixels.data());
    backbone.forward(Inputs::images(pixels), workspace, embedding, tokens);
  };
  Matrix<float> negatives(2, 8), embedding(1, 8), tokens(5, 8), d_tokens(5, 8), none(1, 8);
  for (size_t i = 0; i < 2; ++i) run(3 + i, negatives.view().slice(i, 1), tokens);
  run(0, embedding, tokens);
  EXPECT_NEAR(loss.loss_and_gradient(tokens, negatives, d_tokens), -3.16592599218, 1e-5);
  LayerGradient gradient;
  backbone.backward(none, workspace, gradient, d_tokens);
  ASSERT_EQ(gradient.b.rows(), 5u);
  const auto projection = Projection::make(
      {.kind = ProjectionKind::sign_reference, .rows = 4, .seed = 42}, {8, 8, true});
  const std::map<size_t, std::vector<double>> expected{
      {1,
       {0.0280271436, -0.333885284, 0.348385701, 0.0153788633, 0.208771349, 0.22229436,
        -0.415657355, -0.0188333415, 0.250690843, -0.576770901, 0.102489109, -0.306570401}},
      {4,
       {-0.0321886882, -0.0561398035, -0.19669313, -0.00484569963, 0.228160366, -0.437503333,
        0.45977765, 0.0473152839, 0.164207233, 0.202835922, -0.628225683, -0.192940573}}};
  for (const auto& [t, truth] : expected) {
    Matrix<float> y(1, 4);
    const GradientFactors factors{gradient.b.view().slice(t, 1), gradient.a.view().slice(t, 1)};
    projection->project({&factors, 1}, y, pool);
    std::vector<float> row(tokens.row(t), tokens.row(t) + 8);
    normalise(row);
    normalise({y.data(), 4});
    row.insert(row.end(), y.data(), y.data() + 4);
    normalise(row);
    for (size_t j = 0; j < 12; ++j) EXPECT_NEAR(row[j], truth[j], 2e-6) << t << " " << j;
  }
}

}  // namespace
}  // namespace fungi
