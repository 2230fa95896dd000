// SPDX-License-Identifier: Apache-2.0
// DeepCluster: each crop must predict the prototypes to which other crops of its sample were
// assigned; the prototypes are centroids of the training set, found once before the extraction
// (SPEC 2.5).
#pragma once

#include "fungi/objective/head.h"
#include "fungi/objective/objective.h"
#include "fungi/objective/parameters.h"

namespace fungi {

struct DeepClusterParameters {
  size_t width = 128;
  bool width_stated = false;  // by the user: given heads of another width are refused
  size_t prototypes = 3000;   // per set; at most as many as there are training samples are used
  size_t prototype_sets = 3;
  size_t iterations = 10;
  double temperature = 0.1;
  ViewPlan views = ImageCrops{.global_crops = 2,
                              .local_crops = 6,
                              .global_area = {0.14f, 1.0f},
                              .local_area = {0.05f, 0.14f},
                              .bilinear = true};
  size_t assignment_crops = 2;  // set h is clustered and assigned by crop h mod assignment_crops

  void visit(ParameterVisitor& visitor);
};

class DeepCluster final : public Objective {
 public:
  DeepCluster(const DeepClusterParameters& parameters, size_t embedding_width, uint64_t seed,
              std::string name = "deepcluster");

  std::string name() const override { return name_; }
  // The crops of the loss, then the crops that decide the assignment. A training sample is shown
  // the same assignment crops here and in the clustering, so its assignment is the clustering's
  // final one.
  std::vector<ViewRequest> views() const override;
  double loss_and_gradient(const Latents& latents, LatentGradients gradients) const override;

  Support support() const override;
  size_t support_width(size_t) const override { return head_.width(); }
  void reduce_support(View<const float> embeddings, View<float> kept) const override;
  void prepare(View<const float> kept, size_t views_per_sample, Pool& pool) override;
  bool ready() const override { return !prototypes_.empty(); }
  size_t prototypes_used() const { return prototypes_.rows() / parameters_.prototype_sets; }

  std::vector<NamedMatrix> state() const override;
  void restore(const std::vector<NamedMatrix>& state) override;
  std::vector<Parameter> parameters() const override { return list_parameters(parameters_); }
  std::vector<std::string> notes(size_t support_views) const override;

 private:
  void set_prototypes(Matrix<float> prototypes);

  std::string name_;
  DeepClusterParameters parameters_;
  ViewCounts counts_;
  uint64_t seed_;
  Head head_;
  Matrix<float> prototypes_;  // [sets · k, width], set after set
  kernel::PackedMatrix packed_, packed_transposed_;
};

}  // namespace fungi
