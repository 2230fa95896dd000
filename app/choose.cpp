// SPDX-License-Identifier: Apache-2.0
// fungi choose TRAIN: which gradients help on this data, and with how much weight; by labels, or by
// what two draws agree on.
#include "fungi/evaluate/choose.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/features.h"
#include "app/progress.h"

namespace fungi::app {
namespace {

struct Arguments {
  std::string train, draw;
  ChooseOptions options;
  ThreadsOption threads;
  bool json = false;
};

nlohmann::json json_of(const WeightedFeatures& f) {
  return {{"features", f.features},
          {"accuracy", f.accuracy},
          {"gain", f.gain},
          {"gain_error", f.gain_error}};
}

nlohmann::json json_of(const StableFeatures& f) {
  return {{"features", f.features},
          {"agreed", f.agreed},
          {"disputed", f.disputed},
          {"gain", f.gain},
          {"gain_error", f.gain_error}};
}

template <class List>
nlohmann::json list_of(const List& best_of_blocks) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& f : best_of_blocks) list.push_back(json_of(f));
  return list;
}

void print_use(const Arguments& a, const std::string& features) {
  fmt::print("  fungi knn {} TEST --features '{}'\n", shown(a.train), features);
}

int run_without_labels(const Arguments& a) {
  const Store train = Store::open(a.train), draw = Store::open(a.draw);
  Pool pool(a.threads.count());
  ChooseOptions options = a.options;
  options.progress = Progress::of_long_work("choose", a.json);
  const StableChoice choice = choose_stable_features(train, draw, options, pool);
  options.progress = {};  // its line ends here
  Notes notes{.shown = !a.json};
  notes.add(choice.notes);
  if (a.json) {
    print_json({{"rows", choice.rows},
                {"k", choice.k},
                {"chosen", json_of(choice.chosen)},
                {"best_of_blocks", list_of(choice.best_of_blocks)},
                {"notes", notes.list}});
    return kOk;
  }
  std::vector<std::vector<std::string>> table;
  for (const StableFeatures& f : choice.best_of_blocks)
    table.push_back({f.features, percent(f.agreed), percent(f.disputed),
                     fmt::format("{:+.2f}", 100 * f.gain), percent(f.gain_error)});
  print_table({"best weights of these blocks", "agreed %", "disputed %", "gain", "± %"}, table);
  fmt::print(
      "k = {}, {} rows; agreed: neighbours that both draws find and the first block does not; "
      "disputed: those of one draw alone\n\n",
      choice.k, choice.rows);
  fmt::print("choose {}\n", choice.chosen.features);
  print_use(a, choice.chosen.features);
  return kOk;
}

int run(const Arguments& a) {
  if (!a.draw.empty()) return run_without_labels(a);
  const Store train = Store::open(a.train);
  Pool pool(a.threads.count());
  ChooseOptions options = a.options;
  options.progress = Progress::of_long_work("choose", a.json);
  const Choice choice = choose_features(train, options, pool);
  options.progress = {};  // its line ends here
  Notes notes{.shown = !a.json};
  notes.add(choice.notes);
  if (a.json) {
    nlohmann::json result{{"rows", choice.rows},
                          {"k", choice.k},
                          {"first", json_of(choice.first)},
                          {"chosen", json_of(choice.chosen)},
                          {"expected_accuracy", choice.expected},
                          {"expected_gain", choice.expected_gain},
                          {"expected_error", choice.expected_error},
                          {"best_of_blocks", list_of(choice.best_of_blocks)},
                          {"notes", notes.list}};
    if (!choice.equal.features.empty()) result["equal"] = json_of(choice.equal);
    print_json(result);
    return kOk;
  }
  std::vector<std::vector<std::string>> table;
  const auto add = [&](const WeightedFeatures& f) {
    table.push_back({f.features, percent(f.accuracy), fmt::format("{:+.2f}", 100 * f.gain),
                     percent(f.gain_error)});
  };
  for (const WeightedFeatures& f : choice.best_of_blocks) add(f);
  print_table({"best weights of these blocks", "top-1 %", "gain", "± %"}, table);
  fmt::print(
      "k = {}, {} rows, each classified by the others; ± is the standard error of the gain\n\n",
      choice.k, choice.rows);
  fmt::print("choose {}\n", choice.chosen.features);
  fmt::print(
      "  choices made without a fifth of the rows gain {:+.2f} ± {:.2f} points on it ({:.2f} "
      "% there)\n",
      100 * choice.expected_gain, 100 * choice.expected_error, 100 * choice.expected);
  if (!choice.equal.features.empty())
    fmt::print("  all blocks with weight 1 gain {:+.2f} ± {:.2f}\n", 100 * choice.equal.gain,
               100 * choice.equal.gain_error);
  print_use(a, choice.chosen.features);
  return kOk;
}

}  // namespace

Verb add_choose(CLI::App& parent, CLI::App*& self) {
  self = parent.add_subcommand(
      "choose", "Which blocks of a store help on its own rows, and with how much weight");
  auto a = std::make_shared<Arguments>();
  self->add_option("train", a->train, "Store with labels, unless --draw is given")->required();
  self->add_option("--draw", a->draw,
                   "Choose without labels: store of the same samples with another --seed");
  self->add_option(
      "--features", a->options.features,
      "Blocks to choose from, 'embedding+kl'; the first one always stays (default: all)");
  self->add_option("--weights", a->options.weights, "Weights to try besides 0")
      ->capture_default_str()
      ->check(positive_number());
  self->add_option("-k", a->options.k, "Neighbours that vote")
      ->capture_default_str()
      ->type_name(kCount);
  self->add_option("--folds", a->options.folds, "Parts of the rows that judge the choice")
      ->capture_default_str()
      ->type_name(kCount);
  self->add_option("--most-rows", a->options.most_rows, "Draw so many rows of larger stores")
      ->capture_default_str()
      ->type_name(kCount);
  self->add_option("--seed", a->options.seed, "Of the folds, and of rows drawn")
      ->capture_default_str();
  a->threads.add_to(*self);
  self->add_flag("--json", a->json, "Print one JSON value");
  return [a] { return run(*a); };
}

}  // namespace fungi::app
