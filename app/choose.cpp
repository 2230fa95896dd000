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
  SeedsOption seeds;
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

// The library's options; the line of its progress ends with the value.
ChooseOptions options_of(const Arguments& a, const uint32_t* seed) {
  ChooseOptions options = a.options;
  if (seed) options.seed = *seed;
  options.progress = Progress::of_long_work("choose", a.json);
  return options;
}

nlohmann::json notes_of(const Arguments& a, const std::vector<std::string>& found) {
  Notes notes{.shown = !a.json};
  notes.add(found);
  return notes.list;
}

nlohmann::json answer_without_labels(const Arguments& a, const uint32_t* seed, Pool& pool) {
  const Store train = Store::open(store_path(a.train, seed)),
              draw = Store::open(store_path(a.draw, seed));
  const StableChoice choice = choose_stable_features(train, draw, options_of(a, seed), pool);
  nlohmann::json result{{"rows", choice.rows},
                        {"k", choice.k},
                        {"chosen", json_of(choice.chosen)},
                        {"best_of_blocks", list_of(choice.best_of_blocks)},
                        {"notes", notes_of(a, choice.notes)}};
  if (seed) result["gain"] = choice.chosen.gain;  // of which there is a mean
  return result;
}

nlohmann::json answer(const Arguments& a, const uint32_t* seed, Pool& pool) {
  if (!a.draw.empty()) return answer_without_labels(a, seed, pool);
  const Store train = Store::open(store_path(a.train, seed));
  const Choice choice = choose_features(train, options_of(a, seed), pool);
  nlohmann::json result{{"rows", choice.rows},
                        {"k", choice.k},
                        {"first", json_of(choice.first)},
                        {"chosen", json_of(choice.chosen)},
                        {"expected_accuracy", choice.expected},
                        {"expected_gain", choice.expected_gain},
                        {"expected_error", choice.expected_error},
                        {"best_of_blocks", list_of(choice.best_of_blocks)},
                        {"notes", notes_of(a, choice.notes)}};
  if (!choice.equal.features.empty()) result["equal"] = json_of(choice.equal);
  return result;
}

std::string points(const nlohmann::json& share) {
  return fmt::format("{:+.2f}", 100 * share.get<double>());
}

void print_use(const Arguments& a, const nlohmann::json& chosen) {
  fmt::print("  fungi knn {} TEST --features '{}'\n", shown(a.train),
             chosen["features"].get<std::string>());
}

void print_without_labels(const Arguments& a, const nlohmann::json& choice) {
  std::vector<std::vector<std::string>> table;
  for (const nlohmann::json& f : choice["best_of_blocks"])
    table.push_back({f["features"], percent(f["agreed"]), percent(f["disputed"]),
                     points(f["gain"]), percent(f["gain_error"])});
  print_table({"best weights of these blocks", "agreed %", "disputed %", "gain", "± %"}, table);
  fmt::print(
      "k = {}, {} rows; agreed: neighbours that both draws find and the first block does not; "
      "disputed: those of one draw alone\n\n",
      choice["k"].get<size_t>(), choice["rows"].get<size_t>());
  fmt::print("choose {}\n", choice["chosen"]["features"].get<std::string>());
  print_use(a, choice["chosen"]);
}

void print(const Arguments& a, const nlohmann::json& choice) {
  if (!a.draw.empty()) return print_without_labels(a, choice);
  std::vector<std::vector<std::string>> table;
  for (const nlohmann::json& f : choice["best_of_blocks"])
    table.push_back(
        {f["features"], percent(f["accuracy"]), points(f["gain"]), percent(f["gain_error"])});
  print_table({"best weights of these blocks", "top-1 %", "gain", "± %"}, table);
  fmt::print(
      "k = {}, {} rows, each classified by the others; ± is the standard error of the gain\n\n",
      choice["k"].get<size_t>(), choice["rows"].get<size_t>());
  fmt::print("choose {}\n", choice["chosen"]["features"].get<std::string>());
  fmt::print(
      "  choices made without a fifth of the rows gain {} ± {} points on it ({} % there)\n",
      points(choice["expected_gain"]), percent(choice["expected_error"]),
      percent(choice["expected_accuracy"]));
  if (choice.contains("equal"))
    fmt::print("  all blocks with weight 1 gain {} ± {}\n", points(choice["equal"]["gain"]),
               percent(choice["equal"]["gain_error"]));
  print_use(a, choice["chosen"]);
}

// What each seed chose, and what is to be expected of such choices.
void print_over_seeds(const Arguments& a, const nlohmann::json& all) {
  const bool labels = a.draw.empty();
  const char* gain = labels ? "expected_gain" : "gain";
  std::vector<std::vector<std::string>> table;
  for (const nlohmann::json& one : all["by_seed"])
    table.push_back({one["chosen"]["features"], one["seed"].dump(), points(one[gain]),
                     percent(labels ? one["expected_error"] : one["chosen"]["gain_error"])});
  print_table({"choice", "seed", "gain", "± %"}, table);
  fmt::print("mean gain {} ± {}, ", points(all["mean"][gain]), percent(all["deviation"][gain]));
}

int run(const Arguments& a) {
  Pool pool(a.threads.count());
  return a.seeds.run(
      {.stores = names_seed(a.train) || names_seed(a.draw), .draws = true}, {"k"},
      {{"expected_accuracy", ""}, {"expected_gain", ""}, {"gain", ""}}, a.json,
      [&](const uint32_t* seed) { return answer(a, seed, pool); },
      [&](const nlohmann::json& choice) { print(a, choice); },
      [&](const nlohmann::json& all) { print_over_seeds(a, all); });
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
  auto* seed = self->add_option("--seed", a->options.seed, "Of the folds, and of rows drawn")
                   ->capture_default_str();
  a->seeds.add_to(*self)->excludes(seed);
  a->threads.add_to(*self);
  self->add_flag("--json", a->json, "Print one JSON value");
  return [a] { return run(*a); };
}

}  // namespace fungi::app
