// SPDX-License-Identifier: Apache-2.0
#include "fungi/objective/factory.h"

#include <fmt/format.h>

#include <algorithm>

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

std::vector<Parameter> default_parameters(std::string_view name, Preset preset) {
  if (name == "kl") return list_parameters(kl_parameters(preset));
  if (name == "dino") return list_parameters(dino_parameters(preset));
  if (name == "simclr") return list_parameters(simclr_parameters(preset));
  if (name == "deepcluster") return list_parameters(deepcluster_parameters(preset));
  if (name == "ibot") return list_parameters(ibot_parameters(preset));
  fail_unknown(name);
}

}  // namespace fungi
