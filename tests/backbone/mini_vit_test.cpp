// SPDX-License-Identifier: Apache-2.0
// SPEC 7.3: the printed digits from the double reference and complex steps; 1e-5 from the encoder
// in f32.
#include "tests/support/mini_vit.h"

#include <gtest/gtest.h>

#include "fungi/backbone/backbone.h"
#include "tests/support/golden.h"
#include "tests/support/print.h"

namespace fungi {
namespace {

using mini::Vector;

const Vector kEmbedding[3] = {{-0.857016434, -0.156606439, -0.277880769, 0.611821003, -1.16125214,
                               -0.659238876, 1.55575167, 0.979214085},
                              {-0.779479477, 0.0932107101, -0.318577658, 1.07502904, -1.10638214,
                               -1.04181001, 1.2908487, 0.842700488},
                              {-0.770103799, -0.7698098, 0.306480268, 1.03809901, -0.365603399,
                               -1.33614243, 1.63027525, 0.248668968}};
const Vector kContext{1.35466837,    -0.267734552, 0.233711676,   -0.15212028,
                      -0.0217032776, -0.773031673, -0.0030605807, -0.0689254825};
const Vector kKlB{7.31197522e-06, 1.52673477e-06,  -3.05305299e-06, 7.98551358e-06,
                  4.11638027e-06, -9.84767703e-06, 2.91697639e-07,  -8.33157145e-06};

void expect_digits(const Vector& x, const Vector& printed) {  // nine significant digits
  ASSERT_EQ(x.size(), printed.size());
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(x[i], printed[i], 6e-9 * std::abs(printed[i])) << i;
}

// The KL loss of an embedding (SPEC 2.1), on any scalar.
template <class T>
T kl_loss(const mini::Model& m, const std::vector<T>& e) {
  T norm = 0;
  for (const T& x : e) norm += x * x;
  std::vector<T> unit;
  for (const T& x : e) unit.push_back(x / std::sqrt(norm));
  const std::vector<T> z =
      mini::affine(unit, mini::widen<T>(m.kl.weight), mini::widen<T>(m.kl.bias));
  const double size = double(z.size());
  T sum = 0, mean = 0;
  for (const T& x : z) sum += std::exp(x / 15.0), mean += x / 15.0 / size;
  return (std::log(sum) - mean - std::log(size)) / size;
}

TEST(MiniVit, ReferencePrintsTheDigits) {
  const mini::Model m;
  const Vector &proj = m.blocks[1].proj, &bias = m.blocks[1].proj_bias;
  for (size_t i = 0; i < 3; ++i) {
    Vector context;
    const auto tokens = mini::run<double>(m, m.images[i], proj, bias, &context);
    expect_digits(tokens[0], kEmbedding[i]);
    if (i > 0) continue;
    expect_digits(context, kContext);
    EXPECT_NEAR(kl_loss(m, tokens[0]), 1.58975635338e-05, 1e-15);
  }
}

TEST(MiniVit, ComplexStepGivesB) {  // ∂L/∂(proj bias) is b
  using C = std::complex<double>;
  const mini::Model m;
  const auto proj = mini::widen<C>(m.blocks[1].proj);
  Vector b;
  for (size_t i = 0; i < 8; ++i) {
    auto bias = mini::widen<C>(m.blocks[1].proj_bias);
    bias[i] += C(0, 1e-30);
    b.push_back(kl_loss(m, mini::run<C>(m, m.images[0], proj, bias)[0]).imag() / 1e-30);
  }
  expect_digits(b, kKlB);
}

class MiniVitOn : public testing::TestWithParam<Isa> {};

TEST_P(MiniVitOn, EncoderAgrees) {
  const mini::Model m;
  Pool pool(1);
  const Backbone backbone =
      Backbone::assemble(mini::architecture(), mini::Tensors(m),
                         {.isa = GetParam(), .precision = Precision::f32}, pool);
  Matrix<float> pixels(3, 192), e(3, 8);
  for (size_t i = 0; i < 3; ++i) std::copy(m.images[i].begin(), m.images[i].end(), pixels.row(i));
  Workspace workspace;
  backbone.forward(Inputs::images(pixels), workspace, e);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_LT(golden::relative_error(e.row(i), kEmbedding[i].data(), 8), 1e-5);

  // ∂L/∂e of the KL loss by complex step, then the encoder's own backward to b.
  Matrix<float> d_e(3, 8);
  for (size_t j = 0; j < 8; ++j) {
    std::vector<std::complex<double>> x(kEmbedding[0].begin(), kEmbedding[0].end());
    x[j] += std::complex<double>(0, 1e-30);
    d_e(0, j) = float(kl_loss(m, x).imag() / 1e-30);
  }
  LayerGradient g;
  backbone.backward(d_e, workspace, g);
  ASSERT_EQ(g.offsets, (std::vector<size_t>{0, 1, 2, 3}));  // rank one per view
  EXPECT_LT(golden::relative_error(g.a.row(0), kContext.data(), 8), 1e-5);
  EXPECT_LT(golden::relative_error(g.b.row(0), kKlB.data(), 8), 1e-5);
  double norm = 0;
  for (size_t i = 0; i < 8; ++i)
    for (size_t j = 0; j < 9; ++j)
      norm += std::pow(double(g.b(0, i)) * (j < 8 ? g.a(0, j) : 1.0f), 2);
  EXPECT_NEAR(std::sqrt(norm), 3.34718305e-05, 1e-5 * 3.3e-05);
}

INSTANTIATE_TEST_SUITE_P(, MiniVitOn, testing::ValuesIn(supported_isas()),
                         [](const auto& p) { return to_string(p.param); });

}  // namespace
}  // namespace fungi
