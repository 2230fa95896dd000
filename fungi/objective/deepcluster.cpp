// SPDX-License-Identifier: Apache-2.0
#include "fungi/objective/deepcluster.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/random.h"
#include "fungi/search/kmeans.h"

namespace fungi {

void DeepClusterParameters::visit(ParameterVisitor& visitor) {
  visitor.count("width", width, 2);
  visitor.count("prototypes", prototypes, 1);
  visitor.count("prototype_sets", prototype_sets, 1);
  visitor.count("iterations", iterations, 0);
  visitor.positive("temperature", temperature);
  visitor.count("assignment_crops", assignment_crops, 1);
  visitor.views(views);
}

DeepCluster::DeepCluster(const DeepClusterParameters& parameters, size_t embedding_width,
                         uint64_t seed, std::string name)
    : name_(std::move(name)),
      parameters_(parameters),
      counts_(view_counts(parameters.views, name_)),
      seed_(seed),
      head_(Head::random(Head::Form::weight_normed, seed, "deepcluster", "head", parameters.width,
                         embedding_width)) {}

std::vector<ViewRequest> DeepCluster::views() const {
  return {{.plan = parameters_.views, .draw = "deepcluster"},
          {.plan = global_views(parameters_.views, parameters_.assignment_crops, name()),
           .draw = "deepcluster/assignment",
           .gradient = false}};
}

Support DeepCluster::support() const { return {Support::kAll, views()[1]}; }

void DeepCluster::reduce_support(View<const float> embeddings, View<float> kept) const {
  head_.forward(embeddings, kept);
  normalise_rows(kept, kept);
}

void DeepCluster::prepare(View<const float> kept, size_t views_per_sample, Pool& pool) {
  FUNGI_ASSERT(kept.cols == head_.width() && views_per_sample == parameters_.assignment_crops);
  const size_t samples = kept.rows / views_per_sample;
  if (samples == 0)
    fail("no training samples to cluster", name(), "give at least one training sample");
  const size_t k = std::min(parameters_.prototypes, samples);
  Matrix<float> all(parameters_.prototype_sets * k, head_.width());
  for (size_t h = 0; h < parameters_.prototype_sets; ++h) {
    const View<const float> points(kept.row(h % views_per_sample), samples, kept.cols,
                                   kept.stride * views_per_sample);
    TorchRandom random(static_cast<uint32_t>(RandomStream(seed_, "deepcluster/start", h).bits(0)));
    const std::vector<uint32_t> order = random.permutation(static_cast<uint32_t>(samples));
    const Matrix<float> start =
        gather(points, std::vector<size_t>(order.begin(), order.begin() + std::ptrdiff_t(k)));
    const KMeans set = kmeans(points,
                              {.clusters = k,
                               .iterations = parameters_.iterations,
                               .rows_per_cluster = 0,
                               .initial = start,
                               .metric = Metric::inner_product,
                               .empty = EmptyClusters::keep},
                              pool);
    std::copy_n(set.centres.data(), k * head_.width(), all.row(h * k));
  }
  set_prototypes(std::move(all));
}

std::vector<std::string> DeepCluster::notes(size_t) const {
  if (!ready() || prototypes_used() >= parameters_.prototypes) return {};
  return {fmt::format("{} prototypes instead of {}: there were no more training samples",
                      prototypes_used(), parameters_.prototypes)};
}

void DeepCluster::set_prototypes(Matrix<float> prototypes) {
  prototypes_ = std::move(prototypes);
  packed_ = kernel::pack(objective_kernel(), prototypes_);
  packed_transposed_ = kernel::pack(objective_kernel(), prototypes_, true);
}

double DeepCluster::loss_and_gradient(const Latents& latents, LatentGradients gradients) const {
  if (!ready())
    fail("the prototypes are missing", name(),
         "prepare() the objective with training samples first");
  const size_t crops = counts_.all(), sets = parameters_.prototype_sets, k = prototypes_used();
  const size_t views = crops + parameters_.assignment_crops;
  FUNGI_ASSERT(latents.pooled.rows == views && latents.pooled.cols == head_.inputs());
  const double terms = static_cast<double>(sets * crops), tau = parameters_.temperature;

  Matrix<float> unit(views, head_.width()), scores(views, sets * k);
  head_.forward(latents.pooled, unit);
  std::vector<double> norms = normalise_rows(unit, unit);
  norms.resize(crops);
  multiply(unit, packed_, nullptr, scores);

  double loss = 0;
  std::vector<float> lse(crops);
  for (size_t h = 0; h < sets; ++h) {
    const float* deciding = scores.row(crops + h % parameters_.assignment_crops) + h * k;
    const size_t assigned =
        h * k + static_cast<size_t>(std::max_element(deciding, deciding + k) - deciding);
    for (size_t c = 0; c < crops; ++c) {
      float* row = scores.row(c);
      for (size_t j = h * k; j < (h + 1) * k; ++j) row[j] = static_cast<float>(row[j] / tau);
      loss -= row[assigned];
    }
    objective_kernel().softmax(crops, k, scores.data() + h * k, scores.stride(), lse.data());
    for (size_t c = 0; c < crops; ++c) {
      loss += lse[c];
      scores(c, assigned) -= 1;  // softmax - onehot
    }
  }

  Matrix<float> gamma(crops, head_.width());
  multiply(scores.view().slice(0, crops), packed_transposed_, nullptr, gamma);
  normalise_rows_backward(unit.view().slice(0, crops), norms, gamma);
  for (size_t i = 0; i < crops * head_.width(); ++i)
    gamma.data()[i] = static_cast<float>(gamma.data()[i] / (terms * tau));
  head_.backward(gamma, gradients.pooled.slice(0, crops));
  return loss / terms;
}

std::vector<NamedMatrix> DeepCluster::state() const {
  std::vector<NamedMatrix> state;
  head_.save("head", state);
  if (ready()) state.push_back({"prototypes", prototypes_.copy()});
  return state;
}

void DeepCluster::restore(const std::vector<NamedMatrix>& state) {
  check_state_names(state, {"head.weight", "prototypes"}, name());
  if (head_.load("head", state, name(), parameters_.width_stated)) {
    parameters_.width = head_.width();
    prototypes_ = {};  // they were seen through the old head
  }
  if (const Matrix<float>* prototypes = find_state(state, "prototypes")) {
    if (prototypes->rows() == 0 || prototypes->rows() % parameters_.prototype_sets != 0 ||
        prototypes->cols() != head_.width())
      fail(fmt::format("expected prototypes of [{} sets x k, {}], found [{}, {}]",
                       parameters_.prototype_sets, head_.width(), prototypes->rows(),
                       prototypes->cols()),
           name());
    set_prototypes(prototypes->copy());
  }
}

}  // namespace fungi
