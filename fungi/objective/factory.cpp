// SPDX-License-Identifier: Apache-2.0
#include "fungi/objective/factory.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/random.h"

namespace fungi {
namespace {

[[noreturn]] void fail_unknown(std::string_view name) {
  fail(fmt::format("there is no objective '{}'", name), "objective",
       fmt::format("choose from: {}", list_names(objective_names())));
}

bool has(const Overrides& overrides, std::string_view name) {
  return std::any_of(overrides.begin(), overrides.end(),
                     [&](const auto& pair) { return pair.first == name; });
}

// An objective under a name of its own; see make_objective().
class Labelled final : public Objective {
 public:
  Labelled(std::unique_ptr<Objective> inner, std::string name)
      : inner_(std::move(inner)), name_(std::move(name)) {}

  std::string name() const override { return name_; }
  std::vector<ViewRequest> views() const override { return inner_->views(); }
  bool wants_tokens() const override { return inner_->wants_tokens(); }
  double loss_and_gradient(const Latents& latents, LatentGradients gradients) const override {
    return inner_->loss_and_gradient(latents, gradients);
  }
  double gradient_scale() const override { return inner_->gradient_scale(); }
  Support support() const override { return inner_->support(); }
  size_t support_width(size_t embedding_width) const override {
    return inner_->support_width(embedding_width);
  }
  void reduce_support(View<const float> embeddings, View<float> kept) const override {
    inner_->reduce_support(embeddings, kept);
  }
  void prepare(View<const float> kept, size_t views_per_sample, Pool& pool) override {
    inner_->prepare(kept, views_per_sample, pool);
  }
  bool ready() const override { return inner_->ready(); }
  std::vector<NamedMatrix> state() const override { return inner_->state(); }
  void restore(const std::vector<NamedMatrix>& state) override { inner_->restore(state); }
  std::vector<Parameter> parameters() const override { return inner_->parameters(); }
  std::vector<std::string> notes() const override { return inner_->notes(); }

 private:
  std::unique_ptr<Objective> inner_;
  std::string name_;
};

std::unique_ptr<Objective> make_kind(const std::string& name, std::string_view rest,
                                     const ObjectiveContext& context);

}  // namespace

std::vector<std::string> objective_names() {
  return {"kl", "dino", "simclr", "deepcluster", "ibot"};
}

std::unique_ptr<Objective> make_objective(std::string_view specification,
                                          const ObjectiveContext& context) {
  if (context.embedding_width == 0) fail("the embedding width must be above 0", "objective");
  const size_t colon = std::min(specification.find(':'), specification.size());
  const std::string name(specification.substr(0, colon));
  const std::string_view rest = specification.substr(std::min(colon + 1, specification.size()));
  const size_t underscore = name.find('_');
  if (underscore == std::string::npos) return make_kind(name, rest, context);
  const std::string label = name.substr(underscore + 1);
  if (label.empty() ||
      label.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") != std::string::npos)
    fail(fmt::format("'{}' is no label for an objective", label), name,
         "use small letters and digits after the underscore, as in dino_b");
  ObjectiveContext own = context;
  own.seed = mix64(context.seed ^ fnv1a64("label/" + label));
  return std::make_unique<Labelled>(make_kind(name.substr(0, underscore), rest, own), name);
}

namespace {

std::unique_ptr<Objective> make_kind(const std::string& name, std::string_view rest,
                                     const ObjectiveContext& context) {
  const Overrides overrides = parse_overrides(rest, name);
  const size_t width = context.embedding_width;
  const uint64_t seed = context.seed;
  if (name == "kl") {
    KlParameters parameters = kl_parameters(context.preset);
    read_parameters(overrides, name, parameters);
    return std::make_unique<Kl>(parameters, width, seed);
  }
  if (name == "dino") {
    DinoParameters parameters = dino_parameters(context.preset);
    read_parameters(overrides, name, parameters);
    return std::make_unique<Dino>(parameters, width, seed);
  }
  if (name == "simclr") {
    SimclrParameters parameters = simclr_parameters(context.preset);
    const bool follow = parameters.denominator_temperature == parameters.temperature &&
                        !has(overrides, "denominator_temperature");
    read_parameters(overrides, name, parameters);
    if (follow) parameters.denominator_temperature = parameters.temperature;
    return std::make_unique<Simclr>(parameters, width, seed);
  }
  if (name == "deepcluster") {
    DeepClusterParameters parameters = deepcluster_parameters(context.preset);
    read_parameters(overrides, name, parameters);
    return std::make_unique<DeepCluster>(parameters, width, seed);
  }
  if (name == "ibot") {
    IbotParameters parameters = ibot_parameters(context.preset);
    read_parameters(overrides, name, parameters);
    return std::make_unique<Ibot>(parameters, width, context.token_width, seed);
  }
  fail_unknown(name);
}

}  // namespace

std::vector<Parameter> default_parameters(std::string_view name, Preset preset) {
  if (name == "kl") return list_parameters(kl_parameters(preset));
  if (name == "dino") return list_parameters(dino_parameters(preset));
  if (name == "simclr") return list_parameters(simclr_parameters(preset));
  if (name == "deepcluster") return list_parameters(deepcluster_parameters(preset));
  if (name == "ibot") return list_parameters(ibot_parameters(preset));
  fail_unknown(name);
}

}  // namespace fungi
