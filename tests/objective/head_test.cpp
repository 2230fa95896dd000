// SPDX-License-Identifier: Apache-2.0
// Oracles: SPEC 7.1 (affine initialisation), SPEC 7.2 (normalise + head), complex step.
#include "fungi/objective/head.h"

#include "reference.h"

namespace fungi {
namespace {

using namespace reference;

TEST(Head, IsDrawnLikeATorchLayer) {
  TorchRandom random(0);
  const Head head = Head::draw(Head::Form::affine, random, 3, 4);
  std::vector<NamedMatrix> state;
  head.save("h", state);
  const float weight[] = {-0.00374341f, 0.26822180f, -0.41152257f, -0.36796951f,
                          -0.19257718f, 0.13407868f, -0.00990659f, 0.39644474f,
                          -0.04437202f, 0.13230628f, -0.15110654f, -0.09828269f};
  const float bias[] = {-0.47767425f, -0.33114105f, -0.20611155f};
  for (size_t i = 0; i < 12; ++i) EXPECT_NEAR(state[0].values.data()[i], weight[i], 1e-8f);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(state[1].values.data()[i], bias[i], 1e-8f);
}

TEST(Head, SpecificationVector) {
  const Head head(Head::Form::affine, matrix_of<float>({{.2, -.1, .4}, {.3, .5, -.2}}),
                  matrix_of<float>({{.05, -.1}}));
  const Matrix<float> e = matrix_of<float>({{3, -4, 1}});
  Matrix<float> unit_row(1, 3), z(1, 2), d_e(1, 3);
  const std::vector<double> norms = normalise_rows(e, unit_row);
  head.forward(unit_row, z);
  expect_rows_near<float>(z, {{0.3245625892, -0.3549509757}}, 1e-6);
  head.backward(matrix_of<float>({{.7, -.3}}), d_e);
  normalise_rows_backward(unit_row, norms, d_e);
  expect_rows_near<float>(d_e, {{-0.02119562845, -0.001810302786, 0.05634567421}}, 1e-6);
}

TEST(Head, GradientsMatchTheComplexStep) {
  constexpr size_t n = 3, inputs = 37, width = 21;  // no multiple of any vector length
  const Rows<double> w = random_rows(width, inputs, 1), c = random_rows(1, width, 2),
                     e = random_rows(n, inputs, 3), g = random_rows(n, width, 4);
  const auto check = [&](const Head& head, const Rows<double>& effective,
                         const std::vector<double>& bias) {
    Matrix<float> u(n, inputs), d(n, inputs);
    const std::vector<double> norms = normalise_rows(matrix_of<float>(e), u);
    head.backward(matrix_of<float>(g), d);
    normalise_rows_backward(u, norms, d);
    const Rows<double> expected = gradient(e, [&](const Rows<Complex>& x) {
      Complex loss = 0;
      for (size_t i = 0; i < n; ++i) loss += dot(affine(effective, bias, unit(x[i])), g[i]);
      return loss;
    });
    expect_rows_near<float>(d, expected, 2e-6);
  };
  check(Head(Head::Form::affine, matrix_of<float>(w), matrix_of<float>(c)), w, c[0]);
  Rows<double> unit_rows;
  for (const auto& row : w) unit_rows.push_back(unit(row));
  check(Head(Head::Form::weight_normed, matrix_of<float>(w), {}), unit_rows, {});
}

TEST(Head, AZeroEmbeddingHasNoGradient) {
  Matrix<float> zero(1, 5), u(1, 5), g(1, 5);
  const std::vector<double> norms = normalise_rows(zero, u);
  for (size_t j = 0; j < 5; ++j) g(0, j) = 1;
  normalise_rows_backward(u, norms, g);
  for (size_t j = 0; j < 5; ++j) EXPECT_EQ(g(0, j), 0);
}

TEST(Head, DependsOnSeedObjectiveAndRole) {
  const auto first = [](uint64_t seed, const char* objective, const char* role) {
    std::vector<NamedMatrix> state;
    Head::random(Head::Form::affine, seed, objective, role, 4, 4).save("h", state);
    return state[0].values(0, 0);
  };
  EXPECT_EQ(first(1, "dino", "student"), first(1, "dino", "student"));
  EXPECT_NE(first(1, "dino", "student"), first(1, "dino", "teacher"));
  EXPECT_NE(first(1, "dino", "student"), first(1, "ibot", "student"));
  EXPECT_NE(first(1, "dino", "student"), first(2, "dino", "student"));
}

TEST(Head, RejectsMatricesThatDoNotFit) {
  TorchRandom random(1);
  Head head = Head::draw(Head::Form::affine, random, 3, 4);
  const auto load = [&](size_t rows, size_t cols, size_t biases) {
    std::vector<NamedMatrix> state;
    state.push_back({"h.weight", Matrix<float>(rows, cols)});
    if (biases) state.push_back({"h.bias", Matrix<float>(1, biases)});
    return head.load("h", state, "kl");
  };
  EXPECT_THROW(load(3, 5, 3), Error);
  EXPECT_THROW(load(3, 4, 2), Error);
  EXPECT_THROW(load(3, 4, 0), Error);
  EXPECT_TRUE(load(7, 4, 7));
  EXPECT_EQ(head.width(), 7u);
  EXPECT_FALSE(head.load("other", {}, "kl"));
}

}  // namespace
}  // namespace fungi
