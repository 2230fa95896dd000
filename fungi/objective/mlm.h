// SPDX-License-Identifier: Apache-2.0
// Masked language modelling: how badly the model guesses words that are hidden from it, by the head
// that it was trained with. No random head, no support: the checkpoint has all that is needed. The
// loss is the mean, over all hidden tokens of all views, of the cross-entropy between the word that
// was there and the guess.
#pragma once

#include <memory>

#include "fungi/base/word_head.h"
#include "fungi/objective/objective.h"
#include "fungi/objective/parameters.h"

namespace fungi {

struct MlmParameters {
  bool width_stated = false;  // there is none: its head is the model's
  ViewPlan views = HiddenWords{};

  void visit(ParameterVisitor& visitor);
};

class Mlm final : public Objective {
 public:
  // Without a head it can tell what it wants to see, and compute nothing.
  Mlm(const MlmParameters& parameters, std::shared_ptr<const WordHead> head,
      std::string name = "mlm");

  std::string name() const override { return name_; }
  std::vector<ViewRequest> views() const override;
  bool wants_tokens() const override { return true; }
  bool wants_word_head() const override { return true; }
  double loss_and_gradient(const Latents& latents, LatentGradients gradients) const override;
  std::vector<Parameter> parameters() const override { return list_parameters(parameters_); }

 private:
  double guess(const Latents& latents, std::span<const size_t> rows, View<float> d_tokens) const;

  std::string name_;
  MlmParameters parameters_;
  std::shared_ptr<const WordHead> head_;
};

}  // namespace fungi
