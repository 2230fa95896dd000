// SPDX-License-Identifier: Apache-2.0
// fungi linear TRAIN TEST: linear probing with the protocol's penalty grid and validation
// (SPEC 5.3).
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "app/features.h"
#include "app/progress.h"
#include "fungi/evaluate/linear_probe.h"

namespace fungi::app {

Verb add_linear(CLI::App& parent, CLI::App*& self) {
  struct Arguments {
    std::string train, test, validation;
    LinearProbeOptions probe;
    FeatureOptions features;
  };
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
    const Store train = Store::open(a->train), test = Store::open(a->test);
    Pool pool(a->features.threads.count());
    a->probe.pca = a->features.pca;
    a->probe.class_names = train.classes();
    FeatureOptions raw = a->features;  // the probe fits its own PCA, without its validation rows
    raw.pca = 0;
    nlohmann::json list = nlohmann::json::array();
    std::vector<std::vector<std::string>> table;
    for (const std::string& features : a->features.combinations(train)) {
      const TrainTest pair = load_pair(train, test, features, raw, pool);
      if (list.empty()) say_unknown_classes(pair.train.labels, pair.test.labels);
      std::optional<TrainTest> held;
      std::optional<LabelledRows> validation;
      if (!a->validation.empty()) {
        held = load_pair(train, Store::open(a->validation), features, raw, pool);
        validation = LabelledRows{held->test.features, held->test.labels};
      }
      a->probe.progress = Progress::of_long_work("linear " + features, a->features.json);
      const LinearProbeScore score =
          linear_probe({pair.train.features, pair.train.labels}, validation,
                       {pair.test.features, pair.test.labels}, a->probe, pool);
      a->probe.progress = {};  // ends its line
      const size_t tested = pair.test.labels.size(),
                   columns = score.pca_applied ? a->probe.pca : pair.train.features.cols();
      list.push_back(
          {{"features", features},
           {"accuracy", score.accuracy},
           {"standard_error", std::sqrt(score.accuracy * (1 - score.accuracy) / double(tested))},
           {"mean_per_class_accuracy", score.mean_per_class},
           {"columns", columns},
           {"train_rows", score.fitted_rows},
           {"test_rows", tested},
           {"lambda", score.lambda},
           {"validation", score.validation},
           {"pca", a->features.pca},
           {"pca_applied", score.pca_applied},
           {"shots", a->probe.shots},
           {"converged", score.model.converged}});
      if (!score.model.converged)
        say("note: {}: the fit with lambda {:g} did not converge in {} steps: its loss {:.6g} "
            "may be {:.2g} above the smallest; use a larger --lambda\n",
            features, score.lambda, score.model.iterations, score.model.objective, score.model.gap);
      table.push_back({features, percent(score.accuracy), percent(score.mean_per_class),
                       fmt::format("{:g}", score.lambda)});
    }
    if (a->features.json)
      print_json(list);
    else
      print_table({"features", "top-1 %", "per class %", "lambda"}, table);
    return int(kOk);
  };
}

}  // namespace fungi::app
