// SPDX-License-Identifier: Apache-2.0
// iBOT: the DINO term plus masked patch prediction (SPEC 2.6). The authors published no code for
// it; our choices:
//  * the student sees the global crops with `mask_ratio` of their patch tokens, chosen
//    independently of each other, replaced by the mask token (zero where the checkpoint has none),
//    and the local crops whole; the teacher sees the same global crops whole;
//  * DINO term as in dino.h: sum over all (teacher, student) pairs of class-token embeddings;
//  * patch term: mean over the masked patches of the cross-entropy between teacher and student at
//    that patch, times `patch_weight`; tokens after the final norm, normalised like the embeddings,
//    through patch heads of their own.
#pragma once

#include "fungi/objective/head.h"
#include "fungi/objective/objective.h"
#include "fungi/objective/parameters.h"

namespace fungi {

struct IbotParameters {
  size_t width = 2048;
  bool width_stated = false;  // by the user: given heads of another width are refused
  double teacher_temperature = 0.07;
  double student_temperature = 0.1;
  bool skip_same_view = false;
  double mask_ratio = 0.3;
  double patch_weight = 1;
  ViewPlan views = ImageCrops{};

  void visit(ParameterVisitor& visitor);
};

// The hidden patch tokens of one view: exactly round(ratio · tokens) ones, a function of the
// arguments alone.
std::vector<uint8_t> token_mask(uint64_t seed, std::string_view draw, uint64_t sample, size_t view,
                                size_t tokens, double ratio);

class Ibot final : public Objective {
 public:
  Ibot(const IbotParameters& parameters, size_t embedding_width, size_t token_width, uint64_t seed,
       std::string name = "ibot");

  std::string name() const override { return name_; }
  // The student's crops, global ones masked, then the teacher's global crops.
  std::vector<ViewRequest> views() const override;
  bool wants_tokens() const override { return true; }
  double loss_and_gradient(const Latents& latents, LatentGradients gradients) const override;
  std::vector<NamedMatrix> state() const override;
  void restore(const std::vector<NamedMatrix>& state) override;
  std::vector<Parameter> parameters() const override { return list_parameters(parameters_); }

 private:
  double patch_term(const Latents& latents, View<float> d_tokens) const;

  std::string name_;
  IbotParameters parameters_;
  ViewCounts counts_;
  Head student_, teacher_, patch_student_, patch_teacher_;
};

}  // namespace fungi
