// SPDX-License-Identifier: Apache-2.0
// DINO: every crop, seen through the student head, must predict what the teacher head says of the
// global crops (SPEC 2.2). Same backbone for both, gradient through the student only.
// DEVIATION: the paper speaks of DINO's own loss; both code bases, and all presets, leave out its
// centring, keep the pairs in which both see the same crop (skip_same_view leaves them out, too),
// and sum over pairs instead of averaging.
#pragma once

#include "fungi/objective/head.h"
#include "fungi/objective/objective.h"
#include "fungi/objective/parameters.h"

namespace fungi {

struct DinoParameters {
  size_t width = 2048;
  bool width_stated = false;  // by the user: given heads of another width are refused
  LatentParameters latent = {};
  bool shared_heads = false;  // the teacher looks through the student's head
  double teacher_temperature = 0.07;
  double student_temperature = 0.1;
  bool skip_same_view = false;  // leave out pairs whose student and teacher see the same crop
  ViewPlan views = ImageCrops{};

  void visit(ParameterVisitor& visitor);
};

// Σ_g Σ_v cross-entropy of student v [v, D] under teacher g [g, D]; the first g students see the
// teachers' crops. Overwrites gradient [v, D], with respect to the student latents.
double dino_loss(View<const double> student, View<const double> teacher, double student_temperature,
                 double teacher_temperature, bool skip_same_view, View<double> gradient);

class Dino final : public Objective {
 public:
  Dino(const DinoParameters& parameters, size_t embedding_width, uint64_t seed,
       std::string name = "dino");

  std::string name() const override { return name_; }
  std::vector<ViewRequest> views() const override;
  double loss_and_gradient(const Latents& latents, LatentGradients gradients) const override;
  std::vector<NamedMatrix> state() const override;
  void restore(const std::vector<NamedMatrix>& state) override;
  std::vector<Parameter> parameters() const override { return list_parameters(parameters_); }

 private:
  std::string name_;
  DinoParameters parameters_;
  ViewCounts counts_;
  Head student_, teacher_;  // the teacher's is not there where they share one
  const Head& teacher() const { return parameters_.shared_heads ? student_ : teacher_; }
};

// The DINO term by itself, shared with iBOT: embeddings of the student's views and of the teacher's
// (the first rows of the student's views match them); overwrites d_student.
double dino_term(const Head& student_head, const Head& teacher_head, View<const float> student,
                 View<const float> teacher, double student_temperature, double teacher_temperature,
                 bool skip_same_view, View<float> d_student, bool normalise = true);

// Error unless both heads have the same width.
void check_same_width(const Head& student, const Head& teacher, const std::string& objective);

}  // namespace fungi
