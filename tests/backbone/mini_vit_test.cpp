// SPDX-License-Identifier: Apache-2.0
// SPEC 7.3: the printed digits from the double reference and complex steps; 1e-5 from the encoder
// in f32.
#include "tests/support/mini_vit.h"

#include <gtest/gtest.h>

#include "fungi/backbone/backbone.h"
#include "tests/objective/reference.h"
#include "tests/support/golden.h"
#include "tests/support/print.h"

namespace fungi {
namespace {

using mini::Vector;
using reference::Complex;

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

const Vector kDinoB{-1.50203547, -1.22682341, -2.41347743, -1.93601959,
                    0.441590564, 2.79303995,  0.211625078, 3.6321003};
const std::pair<size_t, Vector> kPatchFeatures[] = {  // of the tokens 1 and 4
    {1,
     {0.0280271436, -0.333885284, 0.348385701, 0.0153788633, 0.208771349, 0.22229436, -0.415657355,
      -0.0188333415, 0.250690843, -0.576770901, 0.102489109, -0.306570401}},
    {4,
     {-0.0321886882, -0.0561398035, -0.19669313, -0.00484569963, 0.228160366, -0.437503333,
      0.45977765, 0.0473152839, 0.164207233, 0.202835922, -0.628225683, -0.192940573}}};

void expect_digits(const Vector& x, const Vector& printed) {  // nine significant digits
  ASSERT_EQ(x.size(), printed.size());
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(x[i], printed[i], 6e-9 * std::abs(printed[i])) << i;
}

void expect_loss(double x, double printed) {  // twelve
  EXPECT_NEAR(x, printed, 6e-12 * std::abs(printed));
}

template <class T>
std::vector<T> head(const mini::Head& h, const std::vector<T>& x) {
  return mini::affine(x, mini::widen<T>(h.weight), mini::widen<T>(h.bias));
}

// The KL loss of an embedding (SPEC 2.1), on any scalar.
template <class T>
T kl_loss(const mini::Model& m, const std::vector<T>& e) {
  const std::vector<T> z = head(m.kl, reference::unit(e));
  const double size = double(z.size());
  T sum = 0, mean = 0;
  for (const T& x : z) sum += std::exp(x / 15.0), mean += x / 15.0 / size;
  return (std::log(sum) - mean - std::log(size)) / size;
}

TEST(MiniVit, TheStream) {
  TorchRandom random(123);
  for (const double printed : {0.29611194, 0.51656228, 0.25167072, 0.68855679})
    EXPECT_NEAR(random.uniform(), printed, 5e-9);
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
    expect_digits(head(m.kl, reference::unit(tokens[0])),
                  {0.219254468, 0.105652442, -0.155044732, 0.171680647, 0.123729186, -0.363644487});
    EXPECT_NEAR(kl_loss(m, tokens[0]), 1.58975635338e-05, 1e-15);
  }
}

// What a loss looks at: the class tokens of several images, or all tokens of the first.
enum class Look { one_image, three_images, tokens };

template <class T>
mini::Rows<T> rows_seen(const mini::Model& m, Look look, const std::vector<T>& proj,
                        const std::vector<T>& bias) {
  if (look == Look::tokens) return mini::run<T>(m, m.images[0], proj, bias);
  mini::Rows<T> rows;
  for (size_t i = 0; i < (look == Look::one_image ? 1 : 3); ++i)
    rows.push_back(mini::run<T>(m, m.images[i], proj, bias)[0]);
  return rows;
}

template <class T>
mini::Rows<T> rows_seen(const mini::Model& m, Look look) {
  return rows_seen(m, look, mini::widen<T>(m.blocks[1].proj),
                   mini::widen<T>(m.blocks[1].proj_bias));
}

// ∂loss/∂[proj, proj bias] of the last block, [8, 9], through one of the rows that the loss sees;
// after that projection no token meets another, so the rows add up to the whole gradient.
template <class Loss>
mini::Rows<double> gradients(const mini::Model& m, Look look, const Loss& loss) {
  const auto proj = mini::widen<Complex>(m.blocks[1].proj),
             bias = mini::widen<Complex>(m.blocks[1].proj_bias);
  auto rows = rows_seen<Complex>(m, look);
  mini::Rows<double> out(rows.size());
  for (size_t i = 0; i < 8; ++i)
    for (size_t j = 0; j < 9; ++j) {
      auto w = proj, c = bias;
      (j < 8 ? w[i * 8 + j] : c[i]) += Complex(0, 1e-30);
      mini::Rows<Complex> stepped = rows_seen(m, look, w, c);
      for (size_t r = 0; r < rows.size(); ++r) {
        std::swap(rows[r], stepped[r]);
        out[r].push_back(loss(rows).imag() / 1e-30);
        std::swap(rows[r], stepped[r]);
      }
    }
  return out;
}

Vector sum(const mini::Rows<double>& rows) {
  Vector total(rows[0].size());
  for (const Vector& row : rows)
    for (size_t i = 0; i < row.size(); ++i) total[i] += row[i];
  return total;
}

Vector last_column(const Vector& m) {  // ∂L/∂(proj bias) is b
  Vector b;
  for (size_t i = 0; i < 8; ++i) b.push_back(m[i * 9 + 8]);
  return b;
}

double norm(const Vector& x) { return std::sqrt(reference::dot(x, x)); }

Vector projected(const Vector& m) {  // R 4×72 of ±1 (SPEC 1.5), times ½
  TorchRandom random(42);
  Vector y(4);
  for (double& sum : y)
    for (const double x : m) sum += random.uniform() > 0.5f ? x / 2 : -x / 2;
  return y;
}

Vector unit_projected(const Vector& m) { return reference::unit(projected(m)); }

TEST(MiniVit, ComplexStepsThroughKl) {
  const mini::Model m;
  const Vector g = gradients(m, Look::one_image,
                             [&](const mini::Rows<Complex>& e) { return kl_loss(m, e[0]); })[0];
  expect_digits(last_column(g), kKlB);
  expect_digits({norm(g)}, {3.34718305e-05});
  expect_digits(projected(g), {7.09051723e-06, 8.70909262e-06, -2.47106738e-05, 6.31972366e-06});
  expect_digits(unit_projected(g), {0.254423279, 0.312501307, -0.886673067, 0.226765518});
}

TEST(MiniVit, ComplexStepsThroughDino) {
  const mini::Model m;
  const mini::Rows<double> e = rows_seen<double>(m, Look::three_images);
  const mini::Rows<double> teacher{
      // no gradient passes through it
      head(m.teacher, reference::unit(e[0])), head(m.teacher, reference::unit(e[1]))};
  const auto loss = [&](const auto& rows) {
    std::decay_t<decltype(rows)> student;
    for (const auto& row : rows) student.push_back(head(m.student, reference::unit(row)));
    return reference::dino(student, teacher, 0.1, 0.07, false);
  };
  expect_loss(loss(e), 15.3385399971);
  const mini::Rows<double> g = gradients(m, Look::three_images, loss);
  expect_digits(last_column(g[0]), kDinoB);
  expect_digits({norm(sum(g))}, {27.2489581});
  expect_digits(unit_projected(sum(g)), {0.480994914, -0.69293406, 0.48384556, -0.233194671});
}

// InfoNCE over the rows seen, against the latents of the two negative images.
auto simclr_loss(const mini::Model& m, double tau_d) {
  mini::Rows<double> negatives;
  for (size_t i : {3, 4})
    negatives.push_back(head(
        m.simclr, mini::run<double>(m, m.images[i], m.blocks[1].proj, m.blocks[1].proj_bias)[0]));
  return [&m, tau_d, negatives](const auto& rows) {
    std::decay_t<decltype(rows)> latents;
    for (const auto& row : rows) latents.push_back(head(m.simclr, row));
    return reference::simclr(latents, negatives, 0.07, tau_d);
  };
}

TEST(MiniVit, ComplexStepsThroughSimclr) {
  const mini::Model m;
  const mini::Rows<double> e = rows_seen<double>(m, Look::three_images);
  expect_digits(head(m.simclr, e[0]), {-0.473706829, -0.117107602, 0.516497605, 0.426511591});
  struct Printed {
    double tau_d, loss, norm;
    Vector feature;
  };
  for (const Printed& p :
       {Printed{
            0.07, 1.0636910857, 1.48425389, {0.195284588, 0.377909808, -0.853578718, -0.300751523}},
        Printed{1,
                -11.1142504839,
                2.85506126,
                {0.836144587, -0.178323481, -0.0176813328, -0.518411358}}}) {
    const auto loss = simclr_loss(m, p.tau_d);
    expect_loss(loss(e), p.loss);
    const Vector g = sum(gradients(m, Look::three_images, loss));
    expect_digits({norm(g)}, {p.norm});
    expect_digits(unit_projected(g), p.feature);
  }
}

TEST(MiniVit, ComplexStepsThroughPatchSimclr) {
  const mini::Model m;
  const auto loss = simclr_loss(m, 1);
  const mini::Rows<double> tokens = rows_seen<double>(m, Look::tokens);
  expect_loss(loss(tokens), -3.16592599218);
  const mini::Rows<double> g = gradients(m, Look::tokens, loss);
  for (const auto& [token, printed] : kPatchFeatures) {
    Vector feature = reference::unit(tokens[token]);
    for (const double y : unit_projected(g[token])) feature.push_back(y);
    expect_digits(reference::unit(feature), printed);
  }
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
