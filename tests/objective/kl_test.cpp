// SPDX-License-Identifier: Apache-2.0
// Oracles: SPEC 7.2, complex step of the loss as SPEC 2.1 writes it.
#include "fungi/objective/kl.h"

#include "reference.h"

namespace fungi {
namespace {

using namespace reference;
using Direction = KlParameters::Direction;

struct Vector {
  double tau;
  Direction direction;
  double loss, gradient[4];
};

TEST(Kl, SpecificationVectors) {
  const double z[] = {0.3, -1.2, 2.0, 0.5};
  const Vector vectors[] = {
      {15,
       Direction::uniform_first,
       0.000713544133677,
       {-3.948193113e-05, -4.322354868e-04, 4.558017224e-04, 1.591569549e-05}},
      {15,
       Direction::model_first,
       0.00285142065511,
       {-2.042504741e-04, -1.678585944e-03, 1.866757409e-03, 1.607900897e-05}},
      {1,
       Direction::uniform_first,
       0.145726236562,
       {-0.03092828545, -0.05545539828, 0.1103219045, -0.02393822077}},
      {1,
       Direction::model_first,
       0.480865817399,
       {-0.1469689534, -0.07506081645, 0.3706886315, -0.1486588617}}};
  for (const Vector& expected : vectors) {
    double g[4];
    EXPECT_NEAR(kl_loss(expected.direction, expected.tau, 4, z, g), expected.loss,
                1e-10 * expected.loss + 1e-14);
    const double scale = kl_gradient_scale(expected.direction, expected.tau, 4);
    for (size_t j = 0; j < 4; ++j)
      EXPECT_NEAR(g[j] / scale, expected.gradient[j], 1e-8 * std::abs(expected.gradient[2]));
  }
}

TEST(Kl, LatentGradientMatchesTheComplexStep) {
  for (const double tau : {15.0, 1.0, 0.07}) {
    const Rows<double> z = random_rows(1, 50, 3);
    Matrix<double> g(1, 50);
    for (const Direction direction : {Direction::uniform_first, Direction::model_first}) {
      const bool uniform = direction == Direction::uniform_first;
      const double loss = kl_loss(direction, tau, 50, z[0].data(), g.data());
      EXPECT_NEAR(loss, uniform ? kl_uniform_first(z[0], tau) : kl_model_first(z[0], tau),
                  1e-12 * (1 + loss));
      Rows<double> expected = gradient(z, [&](const Rows<Complex>& x) {
        return uniform ? kl_uniform_first(x[0], tau) : kl_model_first(x[0], tau);
      });
      for (double& value : expected[0]) value *= kl_gradient_scale(direction, tau, 50);
      expect_rows_near<double>(g, expected, 1e-10);
    }
  }
}

TEST(Kl, NearlyFlatLatentsKeepTheirDigits) {  // where q - 1/D would be all rounding error
  const size_t d = 768;
  std::vector<double> z(d), g(d);
  for (size_t j = 0; j < d; ++j) z[j] = 1e-9 * (static_cast<double>(j) - (d - 1) / 2.0);
  kl_loss(Direction::uniform_first, 15, d, z.data(), g.data());
  for (size_t j = 0; j < d; ++j) EXPECT_NEAR(g[j], z[j] / 15, 1e-6 * std::abs(z[0]) / 15);
}

TEST(Kl, EmbeddingGradientMatchesTheComplexStep) {
  KlParameters parameters;
  parameters.width = 33;
  for (const Direction direction : {Direction::uniform_first, Direction::model_first}) {
    parameters.direction = direction;
    const Kl kl(parameters, 20, 7);
    const std::vector<NamedMatrix> state = kl.state();
    const Rows<double> w = rows_of(state_named(state, "head.weight")),
                       c = rows_of(state_named(state, "head.bias"));
    const Rows<double> e = random_rows(1, 20, 9, 4);
    const auto loss_of = [&](const auto& x) {
      const auto z = affine(w, c[0], unit(x[0]));
      return direction == Direction::uniform_first ? kl_uniform_first(z, 15)
                                                   : kl_model_first(z, 15);
    };
    Rows<double> expected = gradient(e, [&](const Rows<Complex>& x) { return loss_of(x); });
    for (double& value : expected[0]) value *= kl.gradient_scale();

    const Matrix<float> embedding = matrix_of<float>(e);
    Matrix<float> g(1, 20);
    const double loss = kl.loss_and_gradient({embedding}, {g, {}});
    EXPECT_NEAR(loss, loss_of(e), 1e-5 * loss);
    expect_rows_near<float>(g, expected, 1e-5);
  }
}

TEST(Kl, AsksForTheEvaluationView) {
  const Kl kl(KlParameters{}, 8, 1);
  ASSERT_EQ(kl.views().size(), 1u);
  EXPECT_EQ(simplest(kl.views()[0].plan), ViewPlan(WholeView{}));
  EXPECT_TRUE(kl.ready());
  EXPECT_EQ(kl.support().samples, 0u);
}

}  // namespace
}  // namespace fungi
