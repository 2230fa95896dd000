// SPDX-License-Identifier: Apache-2.0
// Oracles: the vectors of SPEC 7.2 and 7.5, what the published loss gives (torch), complex steps of
// SPEC 2.3.3, and the loss of few views.
#include "fungi/objective/patch_simclr.h"

#include "fungi/objective/presets.h"
#include "fungi/objective/simclr.h"
#include "reference.h"
#include "tests/support/errors.h"

namespace fungi {
namespace {

using namespace reference;

TEST(PatchSimclr, SpecificationVectors) {
  const Matrix<float> positives = matrix_of<float>({{1, .5, -.2}, {.8, -.1, .4}, {.3, .9, .6}}),
                      negatives = matrix_of<float>({{-.5, .2, 1}, {.1, -1, .3}});
  Matrix<float> g(3, 3);
  EXPECT_NEAR(info_nce(positives, negatives, 0.07, 0.07, g), 1.58910415952, 1e-5);
  expect_rows_near<float>(g,
                          {{1.473088815, -2.5961325, 0.8751128235},
                           {1.734376098, -1.593021971, -3.867007689},
                           {-5.49191289, 1.068131498, 1.143759198}},
                          1e-6);
  EXPECT_NEAR(info_nce(positives, negatives, 0.07, 1, g), -5.645244598388672, 1e-5);
  expect_rows_near<float>(g,
                          {{-0.5519875288009644, -0.7665689587593079, -4.6763596534729},
                           {-1.1520047187805176, -6.948525905609131, 0.5668779611587524},
                           {-6.284885406494141, 1.5042822360992432, 0.8860194683074951}},
                          1e-6);
}

TEST(PatchSimclr, GradientMatchesTheComplexStep) {
  for (const auto& [p, n, tau, tau_d] : {std::tuple{70, 45, 0.07, 1.0},
                                         {70, 45, 0.07, 0.07},
                                         {33, 0, 0.3, 0.2},
                                         {2, 1, 1.0, 0.03}}) {
    const Rows<double> latents = random_rows(size_t(p), 9, 4),
                       others = random_rows(size_t(n), 9, 5);
    Matrix<float> g(size_t(p), 9), negatives(size_t(n), 9);
    if (n > 0) negatives = matrix_of<float>(others);
    const double loss = info_nce(matrix_of<float>(latents), negatives, tau, tau_d, g);
    const auto reference_loss = [&, t = tau, t_d = tau_d](const Rows<Complex>& z) {
      return simclr(z, others, t, t_d);
    };
    Rows<Complex> z;
    for (const auto& row : latents) z.emplace_back(row.begin(), row.end());
    EXPECT_NEAR(loss, reference_loss(z).real(), 2e-6 * std::max(1.0, std::abs(loss))) << p;
    double difference = 0, square = 0;
    for (size_t i = 0; i < z.size(); i += 7)  // every seventh row is enough
      for (size_t c = 0; c < 9; ++c) {
        constexpr double kStep = 1e-20;
        z[i][c] += Complex(0, kStep);
        const double truth = reference_loss(z).imag() / kStep;
        z[i][c] = latents[i][c];
        difference += (g(i, c) - truth) * (g(i, c) - truth), square += truth * truth;
      }
    EXPECT_LT(std::sqrt(difference / square), 1e-5) << p << " " << tau_d;
  }
}

// A thousand latents against the loss that was written for few, in f64 sums.
TEST(PatchSimclr, IsSimclrOfAllTokens) {
  constexpr size_t kTokens = 1025, kWidth = 24, kNegatives = 301;
  const Matrix<float> tokens = matrix_of<float>(random_rows(kTokens, kWidth, 8));
  const Rows<double> negatives = random_rows(kNegatives, kWidth, 9);
  for (const double tau_d : {1.0, 0.07}) {
    PatchSimclrParameters own{.width = 16, .denominator_temperature = tau_d};
    PatchSimclr patches(own, kWidth, 5);
    SimclrParameters few{.width = 16, .denominator_temperature = tau_d};
    Simclr simclr(few, kWidth, 5);
    std::vector<NamedMatrix> head;
    for (NamedMatrix& m : patches.state())
      head.push_back({"head" + m.name.substr(5), std::move(m.values)});
    simclr.restore(head);
    Matrix<float> kept(kNegatives, 16);
    simclr.reduce_support(matrix_of<float>(negatives), kept);
    Pool pool(1);
    simclr.prepare(kept, 1, pool);
    Matrix<float> found(kTokens, kWidth), expected(kTokens, kWidth);
    const double loss = patches.loss_and_gradient(tokens, matrix_of<float>(negatives), found);
    EXPECT_NEAR(loss, simclr.loss_and_gradient({tokens}, {expected, {}}), 1e-5);
    double difference = 0, square = 0;
    for (size_t i = 0; i < kTokens * kWidth; ++i) {
      const double d = double(found.data()[i]) - expected.data()[i];
      difference += d * d, square += double(expected.data()[i]) * expected.data()[i];
    }
    EXPECT_LT(std::sqrt(difference / square), 2e-5);
  }
}

TEST(PatchSimclr, HeadsAreAveraged) {
  const Matrix<float> tokens = matrix_of<float>(random_rows(40, 12, 3)),
                      negatives = matrix_of<float>(random_rows(20, 12, 4));
  PatchSimclr three({.width = 8, .heads = 3}, 12, 5);
  Matrix<float> found(40, 12), sum(40, 12), one(40, 12);
  const double loss = three.loss_and_gradient(tokens, negatives, found);
  double losses = 0;
  const std::vector<NamedMatrix> state = three.state();
  ASSERT_EQ(state.size(), 6u);
  for (size_t h = 0; h < 3; ++h) {
    PatchSimclr alone({.width = 8}, 12, 99);
    std::vector<NamedMatrix> head;
    head.push_back({"head0.weight", state[2 * h].values.copy()});
    head.push_back({"head0.bias", state[2 * h + 1].values.copy()});
    alone.restore(head);
    losses += alone.loss_and_gradient(tokens, negatives, one);
    for (size_t i = 0; i < 40 * 12; ++i) sum.data()[i] += one.data()[i];
  }
  EXPECT_NEAR(loss, losses / 3, 1e-9);
  for (size_t i = 0; i < 40 * 12; ++i)
    EXPECT_NEAR(found.data()[i], sum.data()[i] / 3, 1e-6 * std::abs(sum.data()[i]) + 1e-9);
  EXPECT_NE(state[0].values(0, 0), state[2].values(0, 0));
}

TEST(PatchSimclr, ScrambledNeighbours) {  // SPEC 7.5
  const Matrix<float> v = matrix_of<float>({{1, 2, 3}, {4, 5, 6}});
  std::vector<float> row(3);
  scramble_neighbours(v, 0, row.data());
  EXPECT_EQ(row, (std::vector<float>{1, 3, 5}));
  scramble_neighbours(v, 1, row.data());
  EXPECT_EQ(row, (std::vector<float>{2, 4, 6}));
}

TEST(PatchSimclr, NegativesAreNeighboursOfWhichHalfIsDropped) {
  constexpr size_t kTokens = 1000;
  Matrix<float> support(50, 3);
  for (size_t i = 0; i < 50; ++i) support(i, 0) = float(i), support(i, 2) = 1;
  Matrix<uint32_t> nearest(kTokens, 5);
  for (size_t t = 0; t < kTokens; ++t)
    for (size_t k = 0; k < 5; ++k) nearest(t, k) = uint32_t((t + 10 * k) % 50);
  const auto firsts = [&](const PatchSimclr& loss, const char* id) {
    const Matrix<float> rows = loss.negatives(support, nearest, id);
    std::vector<float> first;
    for (size_t i = 0; i < rows.rows(); ++i) first.push_back(rows(i, 0));
    return first;
  };
  const PatchSimclr all({.neighbours = 5, .drop = 0}, 3, 1), half({.neighbours = 5}, 3, 1),
      none({.drop = 1}, 3, 1);
  const std::vector<float> every = firsts(all, "a");
  ASSERT_EQ(every.size(), 2 * kTokens);
  for (size_t t = 0; t < kTokens; ++t)
    for (size_t n = 0; n < 2; ++n) EXPECT_EQ(every[2 * t + n], float((t + 10 * n) % 50));
  const std::vector<float> some = firsts(half, "a");
  EXPECT_NEAR(double(some.size()), double(kTokens), 100);
  EXPECT_EQ(some, firsts(half, "a"));
  EXPECT_NE(some, firsts(half, "b"));
  EXPECT_TRUE(firsts(none, "a").empty());
  const PatchSimclr mixed({.neighbours = 5, .drop = 0, .scrambled = true}, 3, 1);
  const std::vector<float> first = firsts(mixed, "a");
  EXPECT_EQ(first[2 * 7 + 0], 7);  // number 0 of the flat block, and number 1
  EXPECT_EQ(first[2 * 7 + 1], 0);
}

TEST(PatchSimclr, RefusesWhatCannotBe) {
  EXPECT_ERROR("neighbours", PatchSimclr({.negatives = 3}, 8, 1));
  EXPECT_ERROR("0.025", PatchSimclr({.denominator_temperature = 0.02}, 8, 1));
  EXPECT_ERROR("support", PatchSimclr({.support = 1}, 8, 1));
  PatchSimclr loss({.width = 4}, 8, 1);
  Matrix<float> one(1, 8);
  EXPECT_ERROR("two tokens", loss.loss_and_gradient(one, {}, one));
  std::vector<NamedMatrix> state;
  state.push_back({"head1.weight", Matrix<float>(4, 8)});
  EXPECT_ERROR("patch_simclr-head0-weight", loss.restore(state));
  EXPECT_TRUE(patch_simclr_parameters(Preset::paper).scrambled);
  EXPECT_FALSE(patch_simclr_parameters(Preset::native).scrambled);
}

}  // namespace
}  // namespace fungi
