// SPDX-License-Identifier: Apache-2.0
// fungi linear TRAIN TEST: linear probing with the protocol's penalty grid and validation
// (SPEC 5.3).
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/features.h"
#include "app/ranks.h"

namespace fungi::app {

namespace {

struct Arguments {
  std::string train, test, validation;
  LinearProbeOptions probe;
  FeatureOptions features;
};

nlohmann::json answer(const Arguments& a, const uint32_t* seed, Pool& pool) {
  const Store train = Store::open(store_path(a.train, seed)),
              test = Store::open(store_path(a.test, seed));
  std::optional<Store> validation;
  if (!a.validation.empty()) validation = Store::open(store_path(a.validation, seed));
  LinearProbeOptions probe = a.probe;
  if (seed) probe.seed = *seed;
  const LinearResult result = evaluate_linear(
      train, test, validation ? &*validation : nullptr,
      {.combinations = a.features.combinations("linear", seed), .probe = std::move(probe)}, pool,
      [](LinearCombination& one) {
        one.score.predicted = {};  // of every test row
        one.score.model.weights = {};
      });
  nlohmann::json list = nlohmann::json::array();
  for (const LinearCombination& one : result.combinations) {
    list.push_back({{"features", one.features},
                    {"accuracy", one.score.accuracy},
                    {"standard_error", one.standard_error},
                    {"mean_per_class_accuracy", one.score.mean_per_class},
                    {"columns", one.columns},
                    {"train_rows", one.score.fitted_rows},
                    {"test_rows", result.test_rows},
                    {"lambda", one.score.lambda},
                    {"validation", one.score.validation},
                    {"pca", a.features.pca},
                    {"pca_applied", one.score.pca_applied},
                    {"shots", a.probe.shots},
                    {"converged", one.score.model.converged}});
    a.features.tell_reduction(list.back(), one.reduced);
  }
  return list;
}

void print(const nlohmann::json& list) {
  std::vector<std::vector<std::string>> table;
  for (const nlohmann::json& one : list)
    table.push_back({one["features"], percent(one["accuracy"]),
                     percent(one["mean_per_class_accuracy"]),
                     fmt::format("{:g}", one["lambda"].get<double>())});
  print_table({"features", "top-1 %", "per class %", "lambda"}, table);
}

int run(const Arguments& a) {
  Pool pool(a.features.threads.count());
  return a.features.seeds.run(
      a.features.seeded({a.train, a.test, a.validation}, a.validation.empty(),
                        ", leave out --validation, or give a random --reduce"),
      {"features", "columns"},
      {{"accuracy", "top-1 %"},
       {"mean_per_class_accuracy", "per class %"},
       {"standard_error", ""},
       {"lambda", ""},
       {"validation", ""}},
      a.features.json, [&](const uint32_t* seed) { return answer(a, seed, pool); }, print);
}

}  // namespace

Verb add_linear(CLI::App& parent, CLI::App*& self) {
  self = parent.add_subcommand(
      "linear", "Linear probe: softmax regression on the rows of one store, tested on another");
  auto a = std::make_shared<Arguments>();
  self->add_option("train", a->train, "Store with labels")->required();
  self->add_option("test", a->test, "Store to test on, extracted with --like TRAIN")->required();
  self->add_option("--validation", a->validation,
                   "Store that chooses the penalty; default: a fifth of TRAIN");
  self->add_option("--lambda", a->probe.lambdas, "Penalties to choose from")
      ->capture_default_str()
      ->check(positive_number());
  self->add_option("--shots", a->probe.shots, "Keep so many training rows of each class; 0 = all")
      ->capture_default_str();
  a->features.add_to(*self);
  return [a] {
    return on_equal_ranks([a](Comm* ranks) {
      a->features.ranks = ranks;
      return run(*a);
    });
  };
}

}  // namespace fungi::app
