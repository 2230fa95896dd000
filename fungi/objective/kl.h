// SPDX-License-Identifier: Apache-2.0
// KL: how far the softmax of one view's latent is from uniform (SPEC 2.1). One evaluation view, no
// augmentation.
#pragma once

#include "fungi/objective/head.h"
#include "fungi/objective/objective.h"
#include "fungi/objective/parameters.h"

namespace fungi {

struct KlParameters {
  enum class Direction {
    uniform_first,  // KL(U || q) / D, which made the published numbers
    model_first,    // KL(q || U), the paper's formula
  };
  double temperature = 15;
  size_t width = 768;
  bool width_stated = false;  // by the user: given heads of another width are refused
  LatentParameters latent = {};
  Direction direction = Direction::uniform_first;
  ViewPlan views = WholeImage{};

  void visit(ParameterVisitor& visitor);
};

// Loss of z [width]; writes kl_gradient_scale() times its gradient. The constants 1/D and 1/τ are
// left out because at τ = 15 the true gradient is some 1e-10 per component.
double kl_loss(KlParameters::Direction direction, double temperature, size_t width, const double* z,
               double* gradient);
double kl_gradient_scale(KlParameters::Direction direction, double temperature, size_t width);

class Kl final : public Objective {
 public:
  Kl(const KlParameters& parameters, size_t embedding_width, uint64_t seed,
     std::string name = "kl");

  std::string name() const override { return name_; }
  std::vector<ViewRequest> views() const override;
  double loss_and_gradient(const Latents& latents, LatentGradients gradients) const override;
  double gradient_scale() const override;
  std::vector<NamedMatrix> state() const override;
  void restore(const std::vector<NamedMatrix>& state) override;
  std::vector<Parameter> parameters() const override { return list_parameters(parameters_); }

 private:
  std::string name_;
  KlParameters parameters_;
  Head head_;
};

}  // namespace fungi
