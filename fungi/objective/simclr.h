// SPDX-License-Identifier: Apache-2.0
// SimCLR: the views of one sample attract each other and are told apart from a fixed bank of
// negatives, the views of random training samples (SPEC 2.3). The temperature of the attraction and
// that of the log-sum-exp are two parameters.
#pragma once

#include "fungi/objective/head.h"
#include "fungi/objective/objective.h"
#include "fungi/objective/parameters.h"

namespace fungi {

struct SimclrParameters {
  size_t width = 96;
  bool width_stated = false;              // by the user: given heads of another width are refused
  LatentParameters latent = {.normalise = false};
  double temperature = 0.07;              // divides the similarities of the positive term
  double denominator_temperature = 0.07;  // divides those inside the log-sum-exp
  size_t negatives = 256;     // training samples
  size_t negative_views = 0;  // of each of them; 0: as many as a sample has positive ones
  ViewPlan views = ImagePatches{};

  void visit(ParameterVisitor& visitor);
};

class Simclr final : public Objective {
 public:
  Simclr(const SimclrParameters& parameters, size_t embedding_width, uint64_t seed,
         std::string name = "simclr");

  std::string name() const override { return name_; }
  std::vector<ViewRequest> views() const override;
  double loss_and_gradient(const Latents& latents, LatentGradients gradients) const override;

  Support support() const override;
  size_t support_width(size_t) const override { return head_.width(); }
  void reduce_support(View<const float> embeddings, View<float> kept) const override;
  void prepare(View<const float> kept, size_t views_per_sample, Pool& pool) override;
  bool ready() const override { return !negatives_.empty(); }

  std::vector<NamedMatrix> state() const override;
  void restore(const std::vector<NamedMatrix>& state) override;
  std::vector<Parameter> parameters() const override { return list_parameters(parameters_); }
  std::vector<std::string> notes(size_t support_views) const override;

 private:
  void set_negatives(Matrix<float> unit);

  std::string name_;
  SimclrParameters parameters_;
  Head head_;
  Matrix<float> negatives_;  // [N, width], unit rows
  kernel::PackedMatrix packed_, packed_transposed_;
};

}  // namespace fungi
