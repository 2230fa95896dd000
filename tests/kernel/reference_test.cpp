// SPDX-License-Identifier: Apache-2.0
// The truth itself: every gradient in reference.h against the complex step of its own
// forward formula.
#include "tests/kernel/reference.h"

#include <gtest/gtest.h>

#include <random>

namespace fungi::kernel::reference {
namespace {

using Complex = std::complex<double>;
constexpr double kStep = 1e-30;

std::vector<double> random_vector(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> v(n);
  for (double& x : v) x = normal(random);
  return v;
}

std::vector<Complex> lifted(const std::vector<double>& v) { return {v.begin(), v.end()}; }

double weighted(const std::vector<Complex>& y, const std::vector<double>& weights) {
  double total = 0;
  for (size_t i = 0; i < y.size(); ++i) total += weights[i] * y[i].imag();
  return total / kStep;
}

TEST(Reference, ActivationSlopes) {
  for (Activation f : {Activation::none, Activation::relu, Activation::gelu, Activation::gelu_tanh,
                       Activation::quick_gelu, Activation::silu})
    for (double x : {-9.0, -3.1, -1.0, -0.2, 0.3, 0.75, 2.5, 8.0}) {
      const double truth = activation(f, Complex(x, kStep)).imag() / kStep;
      EXPECT_NEAR(activation_slope(f, x), truth, 1e-10) << int(f) << " at " << x;
    }
}

TEST(Reference, KnownValues) {
  EXPECT_NEAR(activation(Activation::gelu, 1.0), 0.8413447460685429, 1e-15);
  EXPECT_NEAR(activation(Activation::gelu_tanh, 1.0), 0.8411919906082768, 1e-15);
  EXPECT_NEAR(activation(Activation::quick_gelu, 1.0), 0.8457957659328212, 1e-15);
  EXPECT_NEAR(activation(Activation::silu, 1.0), 0.7310585786300049, 1e-15);
  std::vector<double> row{std::log(1.0), std::log(2.0), std::log(5.0)};
  EXPECT_NEAR(softmax(3, row.data()), std::log(8.0), 1e-15);
  EXPECT_NEAR(row[2], 5.0 / 8, 1e-15);
}

TEST(Reference, NormGradient) {
  for (bool rms : {false, true})
    for (size_t d : {1, 2, 7, 32}) {
      const auto x = random_vector(d, 1), gamma = random_vector(d, 2), beta = random_vector(d, 3);
      const auto d_y = random_vector(d, 4);
      std::vector<double> d_x(d);
      norm_backward(rms, d, x.data(), gamma.data(), 1e-3, d_y.data(), d_x.data());
      for (size_t i = 0; i < d; ++i) {
        auto moved = lifted(x);
        moved[i] += Complex(0, kStep);
        std::vector<Complex> y(d);
        norm(rms, d, moved.data(), lifted(gamma).data(), lifted(beta).data(), 1e-3, y.data());
        EXPECT_NEAR(d_x[i], weighted(y, d_y), 1e-10) << "rms " << rms << " d " << d;
      }
    }
}

TEST(Reference, AttentionGradient) {
  AttentionProblem<double> a{3, 5, 2, 4, 0.7, {}, {}, {}, {}};
  a.q = random_vector(a.queries * a.width(), 1);
  a.k = random_vector(a.tokens * a.width(), 2);
  a.v = random_vector(a.tokens * a.width(), 3);
  a.bias = random_vector(a.heads * a.queries * a.tokens, 4);
  for (size_t i = 4; i < a.bias.size(); i += a.tokens) a.bias[i] -= 1e4;  // as a mask would
  const auto d_out = random_vector(a.queries * a.width(), 5);
  const AttentionGradient<double> gradient = attention_backward(a, d_out);

  const AttentionProblem<Complex> still{a.queries,   a.tokens,    a.heads,     a.head_dim, a.scale,
                                        lifted(a.q), lifted(a.k), lifted(a.v), a.bias};
  auto check = [&](std::vector<Complex> AttentionProblem<Complex>::*input,
                   const std::vector<double>& found) {
    for (size_t i = 0; i < found.size(); ++i) {
      auto moved = still;
      (moved.*input)[i] += Complex(0, kStep);
      EXPECT_NEAR(found[i], weighted(attention(moved), d_out), 1e-10) << i;
    }
  };
  check(&AttentionProblem<Complex>::q, gradient.q);
  check(&AttentionProblem<Complex>::k, gradient.k);
  check(&AttentionProblem<Complex>::v, gradient.v);
}

}  // namespace
}  // namespace fungi::kernel::reference
