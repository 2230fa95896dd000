// SPDX-License-Identifier: Apache-2.0
// SPEC 7.3 from images to projected features: backbone, heads, losses, short backward, reference projection, normalisation.
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
  MiniVitFeatures() : backbone_(Backbone::assemble(mini::architecture(), mini::Tensors(model_), {.precision = Precision::f32}, pool_)) {}

  Matrix<float> embed(size_t first, size_t count, Workspace& workspace) const {
    Matrix<float> pixels(count, 192), e(count, 8);
    for (size_t i = 0; i < count; ++i) std::copy(model_.images[first + i].begin(), model_.images[first + i].end(), pixels.row(i));
    backbone_.forward(Inputs::images(pixels), workspace, e);
    return e;
  }

  // The unit feature of the first `views` images as the views of one sample.
  std::vector<float> feature(const Objective& objective, size_t views, double expected_loss) const {
    Workspace workspace;
    Recording recording(backbone_, views);
    Matrix<float> e(views, 8), d(views, 8);
    for (size_t i = 0; i < views; ++i) {  // one view per call: what is recorded must not depend on it
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

  void expect_feature(const Objective& objective, size_t views, double loss, const mini::Vector& printed) const {
    EXPECT_LT(golden::relative_error(feature(objective, views, loss).data(), printed.data(), 4), 2e-5);
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

TEST_F(MiniVitFeatures, Dino) {
  Dino dino({.width = 5, .global_crops = 2, .local_crops = 1}, 8, 1);
  std::vector<NamedMatrix> state = head_state("student", model_.student);
  for (NamedMatrix& m : head_state("teacher", model_.teacher)) state.push_back({m.name, std::move(m.values)});
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
    if (denominator == 1) expect_feature(simclr, 3, -11.1142504839, {0.836144587, -0.178323481, -0.0176813328, -0.518411358});
    else expect_feature(simclr, 3, 1.0636910857, {0.195284588, 0.377909808, -0.853578718, -0.300751523});
  }
}

}  // namespace
}  // namespace fungi
