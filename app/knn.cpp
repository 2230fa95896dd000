// SPDX-License-Identifier: Apache-2.0
// fungi knn TRAIN TEST: nearest-neighbour classification of the test rows (SPEC 5.2), for each
// combination of blocks.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "app/features.h"
#include "fungi/evaluate/classify.h"
#include "fungi/evaluate/fewshot.h"
#include "fungi/retrieve/gradient_search.h"

namespace fungi::app {
namespace {

struct Arguments {
  std::string train, test, vote = "uniform", metric = "euclidean", sampling = "first";
  VotersOption voters;
  size_t shots = 0;
  FeatureOptions features;
};

// Rows of the training set that a few-shot run keeps: the first of each class, or a stratified draw
// of shots × classes.
std::vector<size_t> few_shot_rows(const Arguments& a, const Store& train) {
  const std::vector<int64_t>& labels = train.labels();
  if (a.sampling == "first") return first_per_class(labels, a.shots, train.classes());
  const size_t drawn = a.shots * classes_of(labels).count();
  std::vector<size_t> rows = stratified_split(labels, drawn, 42, train.classes()).first;
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::string few_shot_note(const Arguments& a, size_t rows) {
  if (!a.shots) return "";
  return a.sampling == "first" ? fmt::format(", {} shots per class", a.shots)
                               : fmt::format(", {} training rows, a stratified draw", rows);
}

int run(const Arguments& a) {
  const Store train_store = Store::open(a.train), test_store = Store::open(a.test);
  Pool pool(a.features.threads.count());
  nlohmann::json list = nlohmann::json::array();
  std::vector<std::vector<std::string>> table;
  std::vector<size_t> rows;  // of the training store; empty: all
  require_labels(train_store);
  if (a.shots) rows = few_shot_rows(a, train_store);
  const size_t k = a.voters.among(a.shots ? rows.size() : train_store.rows());
  const ClassifyOptions options{.k = k,
                                .vote = a.vote == "uniform" ? Vote::uniform : Vote::distance,
                                .metric = parse_metric(a.metric)};
  size_t tested = 0;
  for (const std::string& features : a.features.combinations(train_store)) {
    const bool exact = a.features.exact_gradients;
    if (exact) require_comparable(train_store, test_store, features, false);
    const TrainTest pair =
        exact ? load_pair_labels(train_store, test_store, rows)
              : load_pair(train_store, test_store, features, a.features, pool, rows);
    if (list.empty()) say_unknown_classes(pair.train.labels, pair.test.labels);
    size_t columns = pair.train.features.cols();
    KnnScore score;
    if (exact) {
      const GradientSearch search(train_store, test_store, features, pool,
                                  {.metric = options.metric, .database_rows = rows});
      columns = search.columns();
      score = classify({search.rows(), search.queries()}, pair.train.labels, pair.test.labels,
                       options, [&] { return search.knn(k, pool); });
    } else {
      score = classify(pair.train.features, pair.train.labels, pair.test.features, pair.test.labels,
                       options, pool);
    }
    tested = pair.test.labels.size();
    nlohmann::json row{
        {"features", features},
        {"accuracy", score.accuracy},
        {"mean_per_class_accuracy", score.mean_per_class},
        {"k", k},
        {"pca", a.features.pca},
        {"pca_applied", pair.shrunk},
        {"shots", a.shots},
        {"columns", columns},
        {"train_rows", pair.train.labels.size()},
        {"test_rows", tested},
        {"standard_error", std::sqrt(score.accuracy * (1 - score.accuracy) / double(tested))}};
    if (exact) row["exact_gradients"] = true;
    if (a.shots) row["sampling"] = a.sampling;
    if (score.auc) row["auc"] = *score.auc;
    list.push_back(row);
    table.push_back({features, std::to_string(columns), percent(score.accuracy),
                     percent(row["standard_error"]), percent(score.mean_per_class),
                     score.auc ? fmt::format("{:.4f}", *score.auc) : "-"});
  }
  if (a.features.json)
    print_json(list);
  else {
    print_table({"features", "columns", "top-1 %", "± %", "per class %", "AUC"}, table);
    fmt::print("k = {}{}, {} test rows; ± is the binomial standard error\n", k,
               few_shot_note(a, rows.size()), tested);
  }
  return kOk;
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
  return [a] { return run(*a); };
}

}  // namespace fungi::app
