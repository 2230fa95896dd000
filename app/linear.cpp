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

int run(const Arguments& a) {
  const Store train = Store::open(a.train), test = Store::open(a.test);
  std::optional<Store> validation;
  if (!a.validation.empty()) validation = Store::open(a.validation);
  Pool pool(a.features.threads.count());
  const LinearResult result =
      evaluate_linear(train, test, validation ? &*validation : nullptr,
                      {.combinations = a.features.combinations("linear"), .probe = a.probe}, pool,
                      [](LinearCombination& one) {
                        one.score.predicted = {};  // of every test row
                        one.score.model.weights = {};
                      });
  nlohmann::json list = nlohmann::json::array();
  std::vector<std::vector<std::string>> table;
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
    table.push_back({one.features, percent(one.score.accuracy), percent(one.score.mean_per_class),
                     fmt::format("{:g}", one.score.lambda)});
  }
  if (a.features.json)
    print_json(list);
  else
    print_table({"features", "top-1 %", "per class %", "lambda"}, table);
  return kOk;
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
