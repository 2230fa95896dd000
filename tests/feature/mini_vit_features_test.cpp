// SPDX-License-Identifier: Apache-2.0
// SPEC 7.3 from images to projected features in f32, within 1e-5: backbone, heads, losses, short
// backward, reference projection, normalisation.
#include <gtest/gtest.h>

#include "fungi/backbone/backbone.h"
#include "fungi/objective/dino.h"
#include "fungi/objective/kl.h"
#include "fungi/objective/simclr.h"
#include "fungi/projection/projection.h"
#include "tests/support/golden.h"
#include "tests/support/mini_vit.h"

namespace fungi {
namespace {

Matrix<float> matrix(const mini::Vector& v, size_t rows) {
  Matrix<float> m(rows, v.size() / rows);
  std::copy(v.begin(), v.end(), m.data());
  return m;
}

std::vector<NamedMatrix> head_state(const std::string& role, const mini::Head& head) {
  std::vector<NamedMatrix> state;
  state.push_back({role + ".weight", matrix(head.weight, head.bias.size())});
  state.push_back({role + ".bias", matrix(head.bias, 1)});
  return state;
}

class MiniVitFeatures : public testing::Test {
 protected:
  explicit MiniVitFeatures(const std::string& dialect = "timm",
                           bool mha_input_as_activation = false)
      : backbone_(assemble(dialect, mha_input_as_activation)) {}

  Backbone assemble(const std::string& dialect, bool mha_input_as_activation,
                    bool tokens = false) const {
    Architecture a = mini::architecture();
    a.dialect = dialect;
    return Backbone::assemble(a, mini::Tensors(model_),
                              {.precision = Precision::f32,
                               .tokens = tokens,
                               .mha_input_as_activation = mha_input_as_activation},
                              pool_);
  }

  Matrix<float> embed(size_t first, size_t count, Workspace& workspace) const {
    Matrix<float> pixels(count, 192), e(count, 8);
    for (size_t i = 0; i < count; ++i)
      std::copy(model_.images[first + i].begin(), model_.images[first + i].end(), pixels.row(i));
    backbone_.forward(Inputs::images(pixels), workspace, e);
    return e;
  }

  // What SPEC 7.3 prints of a loss over the first `views` images as the views of one sample; an
  // empty b1 or a norm of 0 is not printed there.
  struct Printed {
    double loss;
    mini::Vector feature;
    double norm = 0;       // of the layer's gradient, bias column included
    mini::Vector b1 = {};  // b of the first view
  };

  void expect(const Objective& objective, size_t views, const Printed& printed) const {
    Workspace workspace;
    Recording recording(backbone_, views);
    Matrix<float> e(views, 8), d(views, 8);
    for (size_t i = 0; i < views;
         ++i) {  // one view per call: what is recorded must not depend on it
      const Matrix<float> one = embed(i, 1, workspace);
      std::copy_n(one.row(0), 8, e.row(i));
      backbone_.record(workspace, recording);
    }
    const double loss = objective.loss_and_gradient({e}, {d, {}});
    EXPECT_NEAR(loss, printed.loss, kRelative * std::abs(printed.loss));
    LayerGradient g;
    backbone_.backward(d, recording, 0, workspace, {&g, 1});
    const double scale = objective.gradient_scale();
    mini::Vector b1 = printed.b1;
    for (double& x : b1) x *= scale;
    if (!b1.empty()) {
      EXPECT_LT(golden::relative_error(g.b.row(0), b1.data(), 8), kRelative);
    }
    if (printed.norm > 0) {
      EXPECT_NEAR(norm(g) / scale, printed.norm, kRelative * printed.norm);
    }
    const Matrix<float> y = projected({g.b, g.a});
    EXPECT_LT(golden::relative_error(y.data(), printed.feature.data(), 4), kRelative);
  }

  static double norm(const LayerGradient& g) {
    double squares = 0;
    for (size_t i = 0; i < 8; ++i)
      for (size_t j = 0; j < 9; ++j) {
        double sum = 0;
        for (size_t v = 0; v < g.b.rows(); ++v)
          sum += double(g.b(v, i)) * (j < 8 ? double(g.a(v, j)) : 1.0);
        squares += sum * sum;
      }
    return std::sqrt(squares);
  }

  static Matrix<float> projected(const GradientFactors& factors) {
    ProjectionOptions options;
    options.kind = ProjectionKind::sign_reference;
    options.rows = 4;
    const auto projection = Projection::make(std::move(options), {8, 8, true});
    Matrix<float> y(1, 4);
    Pool pool(1);
    projection->project({&factors, 1}, y, pool);
    normalise({y.row(0), 4});
    return y;
  }

  // With the latents of the two negative images.
  Simclr simclr(double denominator) const {
    Simclr simclr({.width = 4, .temperature = 0.07, .denominator_temperature = denominator}, 8, 1);
    simclr.restore(head_state("head", model_.simclr));
    Workspace workspace;
    Matrix<float> kept(2, 4);
    simclr.reduce_support(embed(3, 2, workspace), kept);
    simclr.prepare(kept, 1, pool_);
    return simclr;
  }

  static constexpr double kRelative = 1e-5;
  mini::Model model_;
  mutable Pool pool_{1};
  Backbone backbone_;
};

TEST_F(MiniVitFeatures, Kl) {
  Kl kl({.width = 6}, 8, 1);
  kl.restore(head_state("head", model_.kl));
  expect(kl, 1,
         {1.58975635338e-05,
          {0.254423279, 0.312501307, -0.886673067, 0.226765518},
          3.34718305e-05,
          {7.31197522e-06, 1.52673477e-06, -3.05305299e-06, 7.98551358e-06, 4.11638027e-06,
           -9.84767703e-06, 2.91697639e-07, -8.33157145e-06}});
}

// The paper's rule for torchvision checkpoints (SPEC 1.4.1).
class MiniVitPaperFeatures : public MiniVitFeatures {
 protected:
  MiniVitPaperFeatures() : MiniVitFeatures("torchvision", true) {}
};

TEST_F(MiniVitPaperFeatures, KlTakesNorm1ForTheActivation) {
  Kl kl({.width = 6}, 8, 1);
  kl.restore(head_state("head", model_.kl));
  expect(kl, 1, {1.58975635338e-05, {-0.247112007, -0.74613218, -0.0389329854, -0.617014302}});
}

TEST_F(MiniVitPaperFeatures, WithAndWithoutPruningAndForTorchvisionOnly) {
  const Backbone whole = assemble("torchvision", true, true), timm = assemble("timm", true),
                 context = assemble("timm", false);
  EXPECT_TRUE(backbone_.options().mha_input_as_activation);
  EXPECT_FALSE(timm.options().mha_input_as_activation);
  Matrix<float> pixels(2, 192), d(2, 8), tokens(10, 8), embedding[4];
  for (size_t i = 0; i < 2; ++i)
    std::copy(model_.images[i].begin(), model_.images[i].end(), pixels.row(i));
  for (size_t i = 0; i < 16; ++i) d.data()[i] = float(i % 5) - 2;
  LayerGradient g[4];
  const Backbone* backbones[] = {&backbone_, &whole, &timm, &context};
  for (size_t k = 0; k < 4; ++k) {
    Workspace workspace;
    embedding[k] = Matrix<float>(2, 8);
    backbones[k]->forward(Inputs::images(pixels), workspace, embedding[k],
                          k == 1 ? tokens.view() : View<float>{});
    EXPECT_LT(golden::relative_error(embedding[k].data(), embedding[0].data(), 16), 1e-6)
        << "the forward pass must not change";
    backbones[k]->backward(d, workspace, g[k]);
  }
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_LT(golden::relative_error(g[1].a.row(g[1].offsets[i]), g[0].a.row(i), 8), 1e-6)
        << "all tokens, sample " << i;
    EXPECT_EQ(golden::relative_error(g[2].a.row(i), g[3].a.row(i), 8), 0) << "timm, sample " << i;
    EXPECT_GT(golden::relative_error(g[0].a.row(i), g[3].a.row(i), 8), 0.1) << "sample " << i;
    EXPECT_EQ(golden::relative_error(g[0].b.row(i), g[3].b.row(i), 8), 0)
        << "b is the same, sample " << i;
  }
}

TEST_F(MiniVitFeatures, Dino) {
  Dino dino({.width = 5, .views = ImageCrops{.global_crops = 2, .local_crops = 1}}, 8, 1);
  std::vector<NamedMatrix> state = head_state("student", model_.student);
  for (NamedMatrix& m : head_state("teacher", model_.teacher))
    state.push_back({m.name, std::move(m.values)});
  dino.restore(state);
  expect(dino, 3,
         {15.3385399971,
          {0.480994914, -0.69293406, 0.48384556, -0.233194671},
          27.2489581,
          {-1.50203547, -1.22682341, -2.41347743, -1.93601959, 0.441590564, 2.79303995, 0.211625078,
           3.6321003}});
}

TEST_F(MiniVitFeatures, Simclr) {
  expect(simclr(0.07), 3,
         {1.0636910857, {0.195284588, 0.377909808, -0.853578718, -0.300751523}, 1.48425389});
  expect(simclr(1), 3,
         {-11.1142504839, {0.836144587, -0.178323481, -0.0176813328, -0.518411358}, 2.85506126});
  Workspace workspace;
  Matrix<float> z(1, 4);
  simclr(1).reduce_support(embed(0, 1, workspace), z);
  const double printed[] = {-0.473706829, -0.117107602, 0.516497605, 0.426511591};
  EXPECT_LT(golden::relative_error(z.data(), printed, 4), kRelative);
}

// Every token of an image is a view of it, and has a feature of its own (SPEC 2.4).
TEST_F(MiniVitFeatures, PatchSimclr) {
  const Backbone backbone = assemble("timm", false, true);
  Workspace workspace;
  Matrix<float> pixels(1, 192), e(1, 8), tokens(5, 8), d(5, 8);
  std::copy(model_.images[0].begin(), model_.images[0].end(), pixels.data());
  backbone.forward(Inputs::images(pixels), workspace, e, tokens);
  const double loss = simclr(1).loss_and_gradient({tokens}, {d, {}});
  EXPECT_NEAR(loss, -3.16592599218, kRelative * 3.16592599218);
  LayerGradient g;
  backbone.backward(Matrix<float>(1, 8), workspace, g, d);
  ASSERT_EQ(g.b.rows(), 5u);
  const auto expect_feature = [&](size_t token, const mini::Vector& printed) {
    Matrix<float> feature(1, 12);
    std::copy_n(tokens.row(token), 8, feature.data());
    normalise({feature.data(), 8});
    const Matrix<float> y =
        projected({{g.b.row(token), 1, 8, g.b.stride()}, {g.a.row(token), 1, 8, g.a.stride()}});
    std::copy_n(y.data(), 4, feature.data() + 8);
    normalise({feature.data(), 12});
    EXPECT_LT(golden::relative_error(feature.data(), printed.data(), 12), kRelative) << token;
  };
  expect_feature(
      1, {0.0280271436, -0.333885284, 0.348385701, 0.0153788633, 0.208771349, 0.22229436,
          -0.415657355, -0.0188333415, 0.250690843, -0.576770901, 0.102489109, -0.306570401});
  expect_feature(
      4, {-0.0321886882, -0.0561398035, -0.19669313, -0.00484569963, 0.228160366, -0.437503333,
          0.45977765, 0.0473152839, 0.164207233, 0.202835922, -0.628225683, -0.192940573});
}

}  // namespace
}  // namespace fungi
