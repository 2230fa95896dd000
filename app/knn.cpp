// SPDX-License-Identifier: Apache-2.0
// fungi knn TRAIN TEST: nearest-neighbour classification of the test rows (SPEC 5.2), for each
// combination of blocks.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/features.h"
#include "app/ranks.h"

namespace fungi::app {
namespace {

struct Arguments {
  std::string train, test, vote = "uniform", metric = "euclidean", sampling = "first";
  VotersOption voters;
  size_t shots = 0;
  FeatureOptions features;
};

std::string few_shot_note(const Arguments& a, size_t rows) {
  if (!a.shots) return "";
  return a.sampling == "first" ? fmt::format(", {} shots per class", a.shots)
                               : fmt::format(", {} training rows, a stratified draw", rows);
}

nlohmann::json answer(const Arguments& a, const uint32_t* seed, Pool& pool) {
  const Store train = Store::open(store_path(a.train, seed)),
              test = Store::open(store_path(a.test, seed));
  KnnProtocol protocol{.combinations = a.features.combinations("knn", seed),
                       .k = a.voters.asked(),
                       .vote = a.vote == "uniform" ? Vote::uniform : Vote::distance,
                       .metric = parse_metric(a.metric),
                       .shots = a.shots,
                       .sampling = parse_sampling(a.sampling),
                       .exact_gradients = a.features.exact_gradients};
  if (seed) protocol.sampling_seed = *seed;
  const KnnResult result = evaluate_knn(train, test, protocol, pool, [](KnnCombination& one) {
    one.score.votes = {};  // of every test row
  });
  nlohmann::json list = nlohmann::json::array();
  for (const KnnCombination& one : result.combinations) {
    list.push_back({{"features", one.features},
                    {"accuracy", one.score.accuracy},
                    {"mean_per_class_accuracy", one.score.mean_per_class},
                    {"k", result.k},
                    {"pca", a.features.pca},
                    {"pca_applied", one.pca_applied},
                    {"shots", a.shots},
                    {"columns", one.columns},
                    {"train_rows", result.train_rows},
                    {"test_rows", result.test_rows},
                    {"standard_error", one.standard_error}});
    a.features.tell_reduction(list.back(), one.reduced);
    if (protocol.exact_gradients) list.back()["exact_gradients"] = true;
    if (a.shots) list.back()["sampling"] = a.sampling;
    if (one.score.auc) list.back()["auc"] = *one.score.auc;
  }
  return list;
}

void print(const Arguments& a, const nlohmann::json& list) {
  std::vector<std::vector<std::string>> table;
  for (const nlohmann::json& one : list)
    table.push_back({one["features"], one["columns"].dump(), percent(one["accuracy"]),
                     percent(one["standard_error"]), percent(one["mean_per_class_accuracy"]),
                     one.contains("auc") ? fmt::format("{:.4f}", one["auc"].get<double>()) : "-"});
  print_table({"features", "columns", "top-1 %", "± %", "per class %", "AUC"}, table);
  std::vector<std::pair<std::string, double>> accuracies;
  for (const nlohmann::json& one : list) accuracies.emplace_back(one["features"], one["accuracy"]);
  print_layer_curves(accuracies);
  fmt::print("k = {}{}, {} test rows; ± is the binomial standard error\n",
             list[0]["k"].get<size_t>(), few_shot_note(a, list[0]["train_rows"]),
             list[0]["test_rows"].get<size_t>());
}

int run(const Arguments& a) {
  Pool pool(a.features.threads.count());
  const bool draws = a.shots > 0 && a.sampling == "stratified";
  return a.features.seeds.run(
      a.features.seeded({a.train, a.test}, draws,
                        ", draw few shots (--sampling stratified), or give a random --reduce"),
      {"features", "columns"},
      {{"accuracy", "top-1 %"},
       {"mean_per_class_accuracy", "per class %"},
       {"standard_error", ""},
       {"auc", ""}},
      a.features.json, [&](const uint32_t* seed) { return answer(a, seed, pool); },
      [&](const nlohmann::json& list) { print(a, list); });
}

}  // namespace

Verb add_knn(CLI::App& parent, CLI::App*& self) {
  self = parent.add_subcommand(
      "knn", "Classify the rows of one store by their nearest neighbours in another");
  auto a = std::make_shared<Arguments>();
  self->add_option("train", a->train, "Store with labels")->required();
  self->add_option("test", a->test, "Store to classify, extracted with --like TRAIN")->required();
  a->voters.add_to(*self);
  self->add_option("--shots", a->shots, "Keep so many training rows of each class; 0 = all")
      ->capture_default_str();
  auto* sampling =
      self->add_option("--sampling", a->sampling,
                       "Rows of --shots: first of each class, or a stratified draw of shots times "
                       "classes")
          ->capture_default_str()
          ->check(CLI::IsMember({"first", "stratified"}));
  self->add_option("--vote", a->vote, "uniform, or distance (with --metric euclidean)")
      ->capture_default_str()
      ->check(CLI::IsMember({"uniform", "distance"}));
  self->add_option("--metric", a->metric, "euclidean, inner_product or cosine")
      ->capture_default_str()
      ->check(metric_name());
  a->features.add_to(*self);
  a->features.add_exact_gradients(*self);
  self->final_callback([a, sampling] {
    if (sampling->count() > 0 && a->shots == 0)
      throw CLI::ValidationError("--sampling", "without --shots all rows are kept: give --shots");
    if (a->vote == "distance" && a->metric != "euclidean")
      throw CLI::ValidationError("--vote", "distance needs --metric euclidean, found " + a->metric);
  });
  return [a] {
    return on_equal_ranks([a](Comm* ranks) {
      a->features.ranks = ranks;
      return run(*a);
    });
  };
}

}  // namespace fungi::app
