// SPDX-License-Identifier: Apache-2.0
// fungi retrieve DATABASE QUERIES --truth FILE: mean average precision, by the revisited
// Oxford/Paris rules (SPEC 5.5) or a plain list of relevant ids; without a truth file, rows of the
// same class are relevant.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "app/features.h"
#include "app/ranks.h"

namespace fungi::app {
namespace {

struct Arguments {
  std::string database, queries, truth, metric = "inner_product";
  FeatureOptions features;
};

int run(const Arguments& a) {
  const Store database = Store::open(a.database), queries = Store::open(a.queries);
  Pool pool(a.features.threads.count());
  const RankingTask task =
      a.truth.empty() ? same_class_task(database, queries) : read_task(a.truth, database, queries);
  RankingProtocol protocol{.combinations = a.features.combinations("retrieve"),
                           .retrieval = {.metric = parse_metric(a.metric)},
                           .exact_gradients = a.features.exact_gradients};
  if (a.features.json) protocol.combinations.note = {};  // they are part of the result
  const RankingResult result =
      evaluate_ranking(database, queries, task, protocol, pool, [](RankingCombination& one) {
        for (auto& [name, score] : one.scores) score.by_query = {};
      });
  nlohmann::json list = nlohmann::json::array();
  std::vector<std::vector<std::string>> table;
  std::map<std::string, std::string> scored;  // by relevance: how many queries
  for (const RankingCombination& one : result.combinations)
    for (const auto& [name, score] : one.scores) {
      list.push_back({{"features", one.features},
                      {"relevance", name},
                      {"map", score.map},
                      {"precision_at", protocol.retrieval.precision_at},
                      {"precision", score.precision},
                      {"queries", score.queries},
                      {"queries_left_out", score.left_out},
                      {"notes", result.notes},
                      {"pca", a.features.pca},
                      {"pca_applied", one.pca_applied}});
      if (protocol.exact_gradients) list.back()["exact_gradients"] = true;
      scored[name] = fmt::format("{}: {} of {} queries have relevant rows and are scored\n", name,
                                 score.queries, score.queries + score.left_out);
      table.push_back({one.features, name, percent(score.map), percent(score.precision[0]),
                       percent(score.precision[1]), percent(score.precision[2])});
    }
  if (a.features.json) {
    print_json(list);
    return kOk;
  }
  print_table({"features", "relevant", "mAP %", "mP@1", "mP@5", "mP@10"}, table);
  for (const auto& [name, relevance] : task.relevances) fmt::print("{}", scored[name]);
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
      ->capture_default_str()
      ->check(metric_name());
  a->features.add_to(*self);
  a->features.add_exact_gradients(*self);
  return [a] {
    return on_equal_ranks([a](Comm* ranks) {
      a->features.ranks = ranks;
      return run(*a);
    });
  };
}

}  // namespace fungi::app
