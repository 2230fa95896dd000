// SPDX-License-Identifier: Apache-2.0
#include "fungi/objective/kl.h"

#include <cmath>

#include "fungi/objective/softmax.h"

namespace fungi {

void KlParameters::visit(ParameterVisitor& visitor) {
  visitor.positive("temperature", temperature);
  latent.visit(visitor, true, width);
  visitor.one_of("direction", direction, {"uniform_first", "model_first"});
  visitor.views(views);
}

double kl_loss(KlParameters::Direction direction, double temperature, size_t width, const double* z,
               double* gradient) {
  const double d = static_cast<double>(width);
  std::vector<double> q(width);
  // lse - ln D, so that ln(D q_j) = z_j/τ - shift: near 0 for a flat softmax, where q_j - 1/D would
  // cancel.
  const double shift = softmax(width, z, temperature, q.data()) - std::log(d);
  if (direction == KlParameters::Direction::uniform_first) {
    double sum = 0;
    for (size_t j = 0; j < width; ++j) {
      const double log_ratio = z[j] / temperature - shift;
      sum -= log_ratio;
      gradient[j] = std::expm1(log_ratio);
    }
    return sum / (d * d);
  }
  double loss = 0;
  for (size_t j = 0; j < width; ++j) loss += q[j] * (z[j] / temperature - shift);
  for (size_t j = 0; j < width; ++j) gradient[j] = d * q[j] * (z[j] / temperature - shift - loss);
  return loss;
}

double kl_gradient_scale(KlParameters::Direction direction, double temperature, size_t width) {
  const double d = static_cast<double>(width);
  return direction == KlParameters::Direction::uniform_first ? d * d * temperature
                                                             : d * temperature;
}

Kl::Kl(const KlParameters& parameters, size_t embedding_width, uint64_t seed, std::string name)
    : name_(std::move(name)),
      parameters_(parameters),
      head_(parameters.latent.draw_head(seed, "kl", "head", parameters.width, embedding_width)) {}

std::vector<ViewRequest> Kl::views() const { return {{.plan = parameters_.views}}; }

double Kl::loss_and_gradient(const Latents& latents, LatentGradients gradients) const {
  FUNGI_ASSERT(latents.pooled.rows == 1 && latents.pooled.cols == head_.inputs());
  const size_t width = head_.width();
  const HeadInput input(latents.pooled, parameters_.latent.normalise);
  Matrix<float> latent(1, width);
  head_.forward(input.rows(), latent);

  std::vector<double> z(latent.data(), latent.data() + width), g(width);
  const double loss =
      kl_loss(parameters_.direction, parameters_.temperature, width, z.data(), g.data());

  std::copy(g.begin(), g.end(), latent.data());
  head_.backward(latent, gradients.pooled);
  input.backward(gradients.pooled);
  return loss;
}

double Kl::gradient_scale() const {
  return kl_gradient_scale(parameters_.direction, parameters_.temperature, head_.width());
}

std::vector<NamedMatrix> Kl::state() const {
  std::vector<NamedMatrix> state;
  head_.save("head", state);
  return state;
}

void Kl::restore(const std::vector<NamedMatrix>& state) {
  check_state_names(state, {"head.weight", "head.bias"}, name());
  if (head_.load("head", state, name(), parameters_.width_stated))
    parameters_.width = head_.width();
}

}  // namespace fungi
