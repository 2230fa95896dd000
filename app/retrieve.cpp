// SPDX-License-Identifier: Apache-2.0
// fungi retrieve DATABASE QUERIES --truth FILE: mean average precision, by the revisited
// Oxford/Paris rules (SPEC 5.5) or a plain list of relevant ids; without a truth file, rows of the
// same class are relevant.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/features.h"
#include "fungi/evaluate/ground_truth.h"
#include "fungi/evaluate/retrieval.h"
#include "fungi/search/gradient_search.h"

namespace fungi::app {
namespace {

struct Arguments {
  std::string database, queries, truth, metric = "inner_product";
  FeatureOptions features;
};

std::vector<std::pair<std::string, std::vector<Relevance>>> relevances(const Arguments& a,
                                                                       const TrainTest& pair) {
  if (a.truth.ends_with(".jsonl"))
    return {
        {"list", resolve(read_relevance_list(a.truth), pair.test.ids, pair.train.ids, a.truth)}};
  if (!a.truth.empty()) {
    const RevisitedTruth truth = read_revisited(a.truth);
    return {{"medium", resolve(truth, Difficulty::medium, pair.test.ids, pair.train.ids, a.truth)},
            {"hard", resolve(truth, Difficulty::hard, pair.test.ids, pair.train.ids, a.truth)}};
  }
  std::vector<Relevance> same_class(pair.test.ids.size());
  for (size_t q = 0; q < same_class.size(); ++q)
    for (size_t i = 0; i < pair.train.ids.size(); ++i)
      if (pair.test.labels[q] >= 0 && pair.train.labels[i] == pair.test.labels[q])
        same_class[q].positive.push_back(uint32_t(i));
  return {{"class", same_class}};
}

int run(const Arguments& a) {
  const Store database = Store::open(a.database), queries = Store::open(a.queries);
  Pool pool(a.features.thread_count());
  RetrievalOptions options;
  options.metric = parse_metric(a.metric);
  nlohmann::json list = nlohmann::json::array();
  std::vector<std::vector<std::string>> table;
  for (const std::string& features : a.features.combinations(database)) {
    const bool exact = a.features.exact_gradients;
    if (exact) require_same_making(database, queries, false);
    const TrainTest pair = exact ? load_pair_labels(database, queries)
                                 : load_pair(database, queries, features, a.features, pool);
    std::optional<GradientSearch> search;
    if (exact)
      search.emplace(database, queries, features, pool,
                     GradientSearchOptions{.metric = options.metric});
    const auto keys = [&](size_t first, View<double> out) { search->keys(first, out, pool); };
    for (const auto& [name, relevance] : relevances(a, pair)) {
      const RetrievalScore score = exact
                                       ? evaluate_retrieval(search->rows(), search->queries(), keys,
                                                            relevance, options, pool)
                                       : evaluate_retrieval(pair.train.features, pair.test.features,
                                                            relevance, options, pool);
      list.push_back({{"features", features},
                      {"relevance", name},
                      {"map", score.map},
                      {"precision_at", options.precision_at},
                      {"precision", score.precision},
                      {"queries", score.queries},
                      {"pca", a.features.pca},
                      {"pca_applied", pair.shrunk}});
      if (exact) list.back()["exact_gradients"] = true;
      table.push_back({features, name, percent(score.map), percent(score.precision[0]),
                       percent(score.precision[1]), percent(score.precision[2])});
    }
  }
  if (a.features.json)
    fmt::print("{}\n", list.dump(2));
  else
    print_table({"features", "relevant", "mAP %", "mP@1", "mP@5", "mP@10"}, table);
  return kOk;
}

}  // namespace

Verb add_retrieve(CLI::App& parent, CLI::App*& self) {
  self = parent.add_subcommand("retrieve",
                               "Rank a database for each query and print mean average precision");
  auto a = std::make_shared<Arguments>();
  self->add_option("database", a->database, "Store that is searched")->required();
  self->add_option("queries", a->queries, "Store of queries, extracted with --like DATABASE")
      ->required();
  self->add_option("--truth", a->truth,
                   "gnd_*.pkl or .json (revisited Oxford/Paris), or .jsonl of query/positive/junk; "
                   "default: same class");
  self->add_option("--metric", a->metric, "inner_product, cosine or euclidean")
      ->capture_default_str();
  a->features.add_to(*self);
  a->features.add_exact_gradients(*self);
  return [a] { return run(*a); };
}

}  // namespace fungi::app
