// SPDX-License-Identifier: Apache-2.0
// Oracles: SPEC 7.2, complex step of the loss as SPEC 2.3.3 writes it. The products are f32, hence
// the tolerances.
#include "fungi/objective/simclr.h"

#include "reference.h"

namespace fungi {
namespace {

using namespace reference;

Simclr with_identity_head(const SimclrParameters& parameters, size_t width,
                          const Rows<double>& negatives) {
  Simclr objective(parameters, width, 1);
  Matrix<float> identity(width, width);
  for (size_t i = 0; i < width; ++i) identity(i, i) = 1;
  std::vector<NamedMatrix> head;
  head.push_back({"head.weight", std::move(identity)});
  head.push_back({"head.bias", Matrix<float>(1, width)});
  objective.restore(head);
  Pool pool(1);
  objective.prepare(matrix_of<float>(negatives), 1, pool);
  return objective;
}

TEST(Simclr, SpecificationVectors) {
  const Matrix<float> positives = matrix_of<float>({{1, .5, -.2}, {.8, -.1, .4}, {.3, .9, .6}});
  const Rows<double> negatives = {{-.5, .2, 1}, {.1, -1, .3}};
  SimclrParameters parameters;
  Matrix<float> g(3, 3);
  const Simclr same = with_identity_head(parameters, 3, negatives);
  EXPECT_NEAR(same.loss_and_gradient({positives}, {g, {}}), 1.58910415952, 1e-5);
  expect_rows_near<float>(g,
                          {{1.473088815, -2.5961325, 0.8751128235},
                           {1.734376098, -1.593021971, -3.867007689},
                           {-5.49191289, 1.068131498, 1.143759198}},
                          1e-6);
  parameters.denominator_temperature = 1;
  const Simclr apart = with_identity_head(parameters, 3, negatives);
  EXPECT_NEAR(apart.loss_and_gradient({positives}, {g, {}}), -5.64524427791, 1e-5);
  expect_rows_near<float>(g,
                          {{-0.551987498, -0.7665689336, -4.676359824},
                           {-1.152004909, -6.948526171, 0.566878275},
                           {-6.284885399, 1.504282105, 0.8860195413}},
                          1e-6);
}

TEST(Simclr, EmbeddingGradientMatchesTheComplexStep) {
  SimclrParameters parameters;
  parameters.width = 13;
  parameters.negatives = 7;
  for (const auto& [tau, tau_d] : {std::pair(0.07, 0.07), {0.07, 1.0}, {0.2, 0.3}}) {
    parameters.temperature = tau, parameters.denominator_temperature = tau_d;
    Simclr objective(parameters, 20, 3);
    EXPECT_FALSE(objective.ready());
    const Rows<double> support = random_rows(7 * 4, 20, 5);
    Matrix<float> kept(support.size(), objective.support_width(20));
    objective.reduce_support(matrix_of<float>(support), kept);
    Pool pool(1);
    objective.prepare(kept, 4, pool);
    EXPECT_TRUE(objective.ready());

    const std::vector<NamedMatrix> state = objective.state();
    const Rows<double> w = rows_of(state_named(state, "head.weight")),
                       c = rows_of(state_named(state, "head.bias"));
    Rows<double> negatives;
    for (const auto& row : support) negatives.push_back(affine(w, c[0], row));
    const Rows<double> e = random_rows(6, 20, 8);
    const auto loss_of = [&, t = tau, t_d = tau_d](const auto& x) {
      auto latents = x;
      for (auto& row : latents) row = affine(w, c[0], row);
      return simclr(latents, negatives, t, t_d);
    };
    const Matrix<float> embeddings = matrix_of<float>(e);
    Matrix<float> g(6, 20);
    const double loss = objective.loss_and_gradient({embeddings}, {g, {}});
    EXPECT_NEAR(loss, loss_of(e), 1e-5);
    expect_rows_near<float>(g, gradient(e, [&](const Rows<Complex>& x) { return loss_of(x); }),
                            1e-5);
  }
}

TEST(Simclr, NeedsNegativesAndTwoViews) {
  Simclr objective(SimclrParameters{}, 6, 1);
  Matrix<float> e(2, 6), g(2, 6);
  EXPECT_THROW(objective.loss_and_gradient({e}, {g, {}}), Error);
  Pool pool(1);
  EXPECT_THROW(objective.prepare(Matrix<float>(0, 96), 49, pool), Error);
  const Simclr ready = with_identity_head(SimclrParameters{}, 6, random_rows(3, 6, 1));
  Matrix<float> one(1, 6), one_g(1, 6);
  EXPECT_THROW(ready.loss_and_gradient({one}, {one_g, {}}), Error);
}

TEST(Simclr, RestoredStateGivesTheSameBytes) {
  SimclrParameters parameters;
  parameters.width = 10;
  Simclr one(parameters, 12, 1), two(parameters, 12, 99);
  Pool pool(1);
  Matrix<float> kept(6, 10);
  one.reduce_support(matrix_of<float>(random_rows(6, 12, 2)), kept);
  one.prepare(kept, 2, pool);
  ASSERT_EQ(one.notes(2).size(), 1u);
  EXPECT_NE(one.notes(2)[0].find("negatives from 3 training samples instead of 256"),
            std::string::npos)
      << one.notes(2)[0];
  EXPECT_TRUE(two.notes(2).empty());
  two.restore(one.state());
  EXPECT_EQ(two.notes(2), one.notes(2)) << "later runs have the same negatives";
  EXPECT_TRUE(two.notes(4).empty()) << "six views are none of whole samples: they were given";
  const Matrix<float> e = matrix_of<float>(random_rows(5, 12, 4));
  Matrix<float> g1(5, 12), g2(5, 12);
  EXPECT_EQ(one.loss_and_gradient({e}, {g1, {}}), two.loss_and_gradient({e}, {g2, {}}));
  EXPECT_EQ(std::memcmp(g1.data(), g2.data(), 5 * 12 * sizeof(float)), 0);

  std::vector<NamedMatrix> head_alone;
  head_alone.push_back({"head.weight", Matrix<float>(10, 12)});
  head_alone.push_back({"head.bias", Matrix<float>(1, 10)});
  two.restore(head_alone);
  EXPECT_FALSE(two.ready()) << "negatives seen through another head must not be used";
  std::vector<NamedMatrix> wrong;
  wrong.push_back({"negatives", Matrix<float>(4, 11)});
  EXPECT_THROW(two.restore(wrong), Error);
  std::vector<NamedMatrix> longer = one.state();  // as the references keep them
  for (NamedMatrix& m : longer)
    for (size_t c = 0; m.name == "negatives" && c < m.values.cols(); ++c) m.values(2, c) *= 5;
  EXPECT_THROW(two.restore(longer), Error);
}

}  // namespace
}  // namespace fungi
