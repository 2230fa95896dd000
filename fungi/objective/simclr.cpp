// SPDX-License-Identifier: Apache-2.0
#include "fungi/objective/simclr.h"

#include <fmt/format.h>

#include <cmath>

namespace fungi {
namespace {

// The similarity that stands for a view with itself. Its exponential is 0 at any sensible
// temperature.
constexpr double kSelfSimilarity = -1e4;

// Ẑ Ẑᵀ, in f64.
Matrix<double> similarities(View<const float> unit) {
  Matrix<double> s(unit.rows, unit.rows);
  for (size_t i = 0; i < unit.rows; ++i)
    for (size_t j = 0; j <= i; ++j) {
      double sum = 0;
      for (size_t c = 0; c < unit.cols; ++c) sum += static_cast<double>(unit(i, c)) * unit(j, c);
      s(i, j) = s(j, i) = sum;
    }
  return s;
}

}  // namespace

void SimclrParameters::visit(ParameterVisitor& visitor) {
  latent.visit(visitor, false, width);
  visitor.positive("temperature", temperature);
  visitor.positive("denominator_temperature", denominator_temperature);
  visitor.count("negatives", negatives, 1);
  if (negative_views) visitor.count("negative_views", negative_views, 1);
  visitor.views(views);
}

Simclr::Simclr(const SimclrParameters& parameters, size_t embedding_width, uint64_t seed,
               std::string name)
    : name_(std::move(name)),
      parameters_(parameters),
      head_(parameters.latent.draw_head(seed, "simclr", "head", parameters.width,
                                        embedding_width)) {}

std::vector<ViewRequest> Simclr::views() const {
  return {{.plan = parameters_.views, .draw = "simclr"}};
}

Support Simclr::support() const {
  ViewRequest request = views()[0];
  request.gradient = false;
  if (parameters_.negative_views) {  // other draws than the positive ones of the same sample
    request.plan = global_views(request.plan, parameters_.negative_views, name());
    request.draw += "-negatives";
  }
  return {parameters_.negatives, request};
}

void Simclr::reduce_support(View<const float> embeddings, View<float> kept) const {
  head_.forward(HeadInput(embeddings, parameters_.latent.normalise).rows(), kept);
}

void Simclr::prepare(View<const float> kept, size_t views_per_sample, Pool&) {
  FUNGI_ASSERT(kept.cols == head_.width() && views_per_sample > 0);
  if (kept.rows == 0)
    fail("no training samples to take negatives from", name(), "give at least one training sample");
  Matrix<float> unit(kept.rows, kept.cols);
  normalise_rows(kept, unit);
  set_negatives(std::move(unit));
}

// Of negatives that are given nobody knows the samples, unless they are as many as whole ones have.
std::vector<std::string> Simclr::notes(size_t support_views) const {
  if (!ready() || support_views == 0 || negatives_.rows() % support_views != 0) return {};
  const size_t samples = negatives_.rows() / support_views;
  if (samples >= parameters_.negatives) return {};
  return {fmt::format(
      "negatives from {} training samples instead of {}: there were no more that could be read",
      samples, parameters_.negatives)};
}

void Simclr::set_negatives(Matrix<float> unit) {
  negatives_ = std::move(unit);
  packed_ = kernel::pack(objective_kernel(), negatives_);
  packed_transposed_ = kernel::pack(objective_kernel(), negatives_, true);
}

double Simclr::loss_and_gradient(const Latents& latents, LatentGradients gradients) const {
  if (!ready())
    fail("the negatives are missing", name(),
         "prepare() the objective with training samples first");
  const size_t p = latents.pooled.rows, n = negatives_.rows(), width = head_.width();
  if (p < 2)
    fail(fmt::format("at least two views are needed, found {}", p), name(),
         "plan more views of a sample");
  const double count = static_cast<double>(p), tau = parameters_.temperature,
               tau_d = parameters_.denominator_temperature;

  Matrix<float> latent(p, width), unit(p, width), scaled(p, width);
  const HeadInput input(latents.pooled, parameters_.latent.normalise);
  head_.forward(input.rows(), latent);
  const std::vector<double> norms = normalise_rows(latent, unit);
  for (size_t i = 0; i < p * width; ++i)
    scaled.data()[i] = static_cast<float>(unit.data()[i] / tau_d);

  // One row of logits per view: the negatives, then the positives.
  Matrix<float> logits(p, n + p);
  multiply(scaled, packed_, nullptr, {logits.data(), p, n, n + p});
  const Matrix<double> s = similarities(unit);
  double loss = 0;
  for (size_t i = 0; i < p; ++i)
    for (size_t j = 0; j < p; ++j) {
      logits(i, n + j) = static_cast<float>((i == j ? kSelfSimilarity : s(i, j)) / tau_d);
      if (i != j) loss -= s(i, j) / (tau * (count - 1));
    }
  std::vector<float> lse(p);
  objective_kernel().softmax(p, n + p, logits.data(), n + p, lse.data());
  for (size_t i = 0; i < p; ++i) loss += lse[i];

  // ∂L/∂Ẑ = B N̂ + (A + Aᵀ) Ẑ; B = probabilities / (P τ_d).
  Matrix<float> gamma(p, width);
  multiply({logits.data(), p, n, n + p}, packed_transposed_, nullptr, gamma);
  std::vector<double> row(width);
  for (size_t i = 0; i < p; ++i) {
    for (size_t c = 0; c < width; ++c) row[c] = gamma(i, c) / (count * tau_d);
    for (size_t j = 0; j < p; ++j) {
      if (i == j) continue;
      const double both = static_cast<double>(logits(i, n + j)) + logits(j, n + i);
      const double a = (both / tau_d - 2 / (tau * (count - 1))) / count;
      for (size_t c = 0; c < width; ++c) row[c] += a * unit(j, c);
    }
    std::copy(row.begin(), row.end(), gamma.row(i));
  }
  normalise_rows_backward(unit, norms, gamma);
  head_.backward(gamma, gradients.pooled);
  input.backward(gradients.pooled);
  return loss / count;
}

std::vector<NamedMatrix> Simclr::state() const {
  std::vector<NamedMatrix> state;
  head_.save("head", state);
  if (ready()) state.push_back({"negatives", negatives_.copy()});
  return state;
}

void Simclr::restore(const std::vector<NamedMatrix>& state) {
  check_state_names(state, {"head.weight", "head.bias", "negatives"}, name());
  if (head_.load("head", state, name(), parameters_.width_stated)) {
    parameters_.width = head_.width();
    negatives_ = {};  // they were seen through the old head
  }
  if (const Matrix<float>* negatives = find_state(state, "negatives")) {
    if (negatives->rows() == 0 || negatives->cols() != head_.width())
      fail(fmt::format("expected negatives of [n, {}], found [{}, {}]", head_.width(),
                       negatives->rows(), negatives->cols()),
           name());
    for (size_t i = 0; i < negatives->rows(); ++i) {
      double square = 0;
      for (size_t c = 0; c < negatives->cols(); ++c)
        square += static_cast<double>((*negatives)(i, c)) * (*negatives)(i, c);
      if (!(std::abs(square - 1) < 1e-3) && square != 0)  // a latent of zeros has no direction
        fail(fmt::format("expected negatives of length 1, found {:.6g} in row {}",
                         std::sqrt(square), i),
             name(), "divide each row by its length");
    }
    set_negatives(negatives->copy());
  }
}

}  // namespace fungi
