// SPDX-License-Identifier: Apache-2.0
#include "fungi/objective/factory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

// A preset's parameters with what was said instead.
template <class Parameters>
Parameters read(Parameters parameters, const Overrides& overrides, const std::string& place) {
  read_parameters(overrides, place, parameters);
  parameters.width_stated = has(overrides, "width");
  if constexpr (requires { parameters.latent; })
    if (parameters.width_stated && !parameters.latent.head)
      fail("a width is that of the head, and head=none leaves it out", place,
           "leave out one of the two");
  return parameters;
}

// Sizes of a preset are those of a model that reads 224 pixels; of another one they are the same
// share of its input, in whole patches.
template <class Parameters>
Parameters fitted(Parameters parameters, const ObjectiveContext& context) {
  constexpr double kUsualInput = 224;
  auto* crops = std::get_if<ImageCrops>(&parameters.views);
  if (!crops || !crops->local_size || !context.input_size || !context.patch_size) return parameters;
  const double share = double(crops->local_size) / kUsualInput * double(context.input_size);
  const auto patches = size_t(std::llround(share / double(context.patch_size)));
  crops->local_size =
      std::min(std::max<size_t>(patches, 1) * context.patch_size, context.input_size);
  return parameters;
}

// `name`: the type's own, or with a label.
std::unique_ptr<Objective> make_one(const std::string& type, const std::string& name,
                                    std::string_view rest, const ObjectiveContext& context) {
  const Overrides overrides = parse_overrides(rest, name);
  const Preset preset = context.preset;
  const SampleKind kind = context.kind;
  const size_t width = context.embedding_width;
  const uint64_t seed = context.seed;
  if (type == "kl")
    return std::make_unique<Kl>(read(kl_parameters(preset, kind), overrides, name), width, seed,
                                name);
  if (type == "dino")
    return std::make_unique<Dino>(
        read(fitted(dino_parameters(preset, kind), context), overrides, name), width, seed, name);
  if (type == "simclr") {
    const SimclrParameters usual = simclr_parameters(preset, kind);
    SimclrParameters parameters = read(usual, overrides, name);
    if (usual.denominator_temperature == usual.temperature &&
        !has(overrides, "denominator_temperature"))
      parameters.denominator_temperature = parameters.temperature;
    return std::make_unique<Simclr>(parameters, width, seed, name);
  }
  if (type == "deepcluster")
    return std::make_unique<DeepCluster>(
        read(deepcluster_parameters(preset, kind), overrides, name), width, seed, name);
  if (type == "ibot")
    return std::make_unique<Ibot>(
        read(fitted(ibot_parameters(preset, kind), context), overrides, name), width,
        context.token_width, seed, name);
  if (type == "mlm")
    return std::make_unique<Mlm>(read(mlm_parameters(preset, kind), overrides, name),
                                 context.word_head, name);
  fail_unknown(type);
}

}  // namespace

std::vector<std::string> objective_names() {
  return {"kl", "dino", "simclr", "deepcluster", "ibot", "mlm"};
}

std::unique_ptr<Objective> make_objective(std::string_view specification,
                                          const ObjectiveContext& context) {
  if (context.embedding_width == 0) fail("the embedding width must be above 0", "objective");
  const size_t colon = std::min(specification.find(':'), specification.size());
  const std::string name(specification.substr(0, colon));
  const std::string_view rest = specification.substr(std::min(colon + 1, specification.size()));
  const size_t underscore = name.find('_');
  if (underscore == std::string::npos) return make_one(name, name, rest, context);
  const std::string label = name.substr(underscore + 1);
  if (label.empty() ||
      label.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") != std::string::npos)
    fail(fmt::format("'{}' is no label for an objective", label), name,
         "use small letters and digits after the underscore, as in dino_b");
  ObjectiveContext own = context;
  own.seed = mix64(context.seed ^ fnv1a64("label/" + label));
  return make_one(name.substr(0, underscore), name, rest, own);
}

std::unique_ptr<Objective> make_objective_of_any_kind(std::string_view specification,
                                                      ObjectiveContext context) {
  for (const SampleKind kind : {SampleKind::text, SampleKind::sound}) try {
      context.kind = kind;
      return make_objective(specification, context);
    } catch (const Error&) {  // what images would say of it is said
    }
  context.kind = SampleKind::image;
  return make_objective(specification, context);
}

std::vector<std::string> split_objectives(std::string_view text) {
  std::vector<std::string> list;
  for (size_t first = 0; first <= text.size();) {
    const size_t comma = std::min(text.find(',', first), text.size());
    const std::string piece(text.substr(first, comma - first));
    first = comma + 1;
    if (piece.empty())
      fail(fmt::format("expected an objective or a parameter between commas, found nothing in '{}'",
                       text),
           "objective", fmt::format("choose from: {}", list_names(objective_names())));
    const size_t equals = piece.find('=');
    if (equals == std::string::npos || piece.find(':') < equals) {
      list.push_back(piece);
    } else if (list.empty()) {
      fail(fmt::format("expected an objective before the parameter '{}'", piece), "objective",
           fmt::format("choose from: {}", list_names(objective_names())));
    } else if (list.back().find(':') == std::string::npos) {
      fail(fmt::format("expected a colon before the first parameter of '{}', found a comma",
                       list.back()),
           "objective", fmt::format("write {}:{}", list.back(), piece));
    } else {
      list.back() += "," + piece;
    }
  }
  return list;
}

std::vector<Parameter> default_parameters(std::string_view name, Preset preset, SampleKind kind) {
  if (name == "kl") return list_parameters(kl_parameters(preset, kind), true);
  if (name == "dino") return list_parameters(dino_parameters(preset, kind), true);
  if (name == "simclr") return list_parameters(simclr_parameters(preset, kind), true);
  if (name == "deepcluster") return list_parameters(deepcluster_parameters(preset, kind), true);
  if (name == "ibot") return list_parameters(ibot_parameters(preset, kind), true);
  if (name == "mlm") return list_parameters(mlm_parameters(preset, kind), true);
  fail_unknown(name);
}

std::vector<std::string> objective_names(SampleKind kind) {
  std::vector<std::string> names = objective_names();
  std::erase_if(names, [kind](const std::string& name) {
    try {
      default_parameters(name, Preset::native, kind);
      return false;
    } catch (const Error&) {
      return true;
    }
  });
  return names;
}

}  // namespace fungi
