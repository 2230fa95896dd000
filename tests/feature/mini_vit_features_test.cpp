// SPDX-License-Identifier: Apache-2.0
// SPEC 7.3 from images to projected features: backbone, heads, losses, short backward, reference
// projection, normalisation.
#include <gtest/gtest.h>

#include "fungi/backbone/backbone.h"
#include "fungi/feature/projection.h"
#include "fungi/objective/dino.h"
#include "fungi/objective/kl.h"
#include "fungi/objective/simclr.h"
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

  // The unit feature of the first `views` images as the views of one sample.
  std::vector<float> feature(const Objective& objective, size_t views, double expected_loss) const {
    Workspace workspace;
    Recording recording(backbone_, views);
    Matrix<float> e(views, 8), d(views, 8);
    for (size_t i = 0; i < views;
         ++i) {  // one view per call: what is recorded must not depend on it
      const Matrix<float> one = embed(i, 1, workspace);
      std::copy_n(one.row(0), 8, e.row(i));
      backbone_.record(workspace, recording);
    }
    const double loss = objective.loss_and_gradient({e, {}, nullptr}, {d, {}});
    EXPECT_NEAR(loss, expected_loss, 2e-5 * std::abs(expected_loss) + 1e-9);
    LayerGradient g;
    backbone_.backward(d, recording, 0, workspace, g);
    ProjectionOptions options;
    options.kind = ProjectionKind::sign_reference;
    options.rows = 4;
    const auto projection = Projection::make(std::move(options), {8, 8, true});
    Matrix<float> y(1, 4);
    const GradientFactors factors{g.b, g.a};
    projection->project({&factors, 1}, y);
    normalise({y.row(0), 4});
    return {y.row(0), y.row(0) + 4};
  }

  void expect_feature(const Objective& objective, size_t views, double loss,
                      const mini::Vector& printed) const {
    EXPECT_LT(golden::relative_error(feature(objective, views, loss).data(), printed.data(), 4),
              2e-5);
  }

  mini::Model model_;
  mutable Pool pool_{1};
  Backbone backbone_;
};

TEST_F(MiniVitFeatures, Kl) {
  Kl kl({.width = 6}, 8, 1);
  kl.restore(head_state("head", model_.kl));
  expect_feature(kl, 1, 1.58975635338e-05, {0.254423279, 0.312501307, -0.886673067, 0.226765518});
}

// The paper's rule for torchvision checkpoints (SPEC 1.4.1).
class MiniVitPaperFeatures : public MiniVitFeatures {
 protected:
  MiniVitPaperFeatures() : MiniVitFeatures("torchvision", true) {}
};

TEST_F(MiniVitPaperFeatures, KlTakesNorm1ForTheActivation) {
  Kl kl({.width = 6}, 8, 1);
  kl.restore(head_state("head", model_.kl));
  expect_feature(kl, 1, 1.58975635338e-05,
                 {-0.247112007, -0.74613218, -0.0389329854, -0.617014302});
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
  Dino dino({.width = 5, .global_crops = 2, .local_crops = 1}, 8, 1);
  std::vector<NamedMatrix> state = head_state("student", model_.student);
  for (NamedMatrix& m : head_state("teacher", model_.teacher))
    state.push_back({m.name, std::move(m.values)});
  dino.restore(state);
  expect_feature(dino, 3, 15.3385399971, {0.480994914, -0.69293406, 0.48384556, -0.233194671});
}

TEST_F(MiniVitFeatures, Simclr) {
  for (double denominator : {0.07, 1.0}) {
    Simclr simclr({.width = 4, .temperature = 0.07, .denominator_temperature = denominator}, 8, 1);
    simclr.restore(head_state("head", model_.simclr));
    Workspace workspace;
    const Matrix<float> e = embed(3, 2, workspace);
    Matrix<float> kept(2, 4);
    simclr.reduce_support(e, kept);
    simclr.prepare(kept, 1, pool_);
    if (denominator == 1)
      expect_feature(simclr, 3, -11.1142504839,
                     {0.836144587, -0.178323481, -0.0176813328, -0.518411358});
    else
      expect_feature(simclr, 3, 1.0636910857,
                     {0.195284588, 0.377909808, -0.853578718, -0.300751523});
  }
}

}  // namespace
}  // namespace fungi
