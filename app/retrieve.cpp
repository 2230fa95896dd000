// SPDX-License-Identifier: Apache-2.0
// fungi retrieve DATABASE QUERIES --truth FILE: mean average precision, by the revisited
// Oxford/Paris rules (SPEC 5.5) or a plain list of relevant ids; without a truth file, rows of the
// same class are relevant.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/features.h"
#include "app/ranks.h"

namespace fungi::app {
namespace {

struct Arguments {
  std::string database, queries, truth, metric = "inner_product";
  FeatureOptions features;
};

nlohmann::json answer(const Arguments& a, const uint32_t* seed, Pool& pool) {
  const Store database = Store::open(store_path(a.database, seed)),
              queries = Store::open(store_path(a.queries, seed));
  const RankingTask task =
      a.truth.empty() ? same_class_task(database, queries) : read_task(a.truth, database, queries);
  RankingProtocol protocol{.combinations = a.features.combinations("retrieve", seed),
                           .retrieval = {.metric = parse_metric(a.metric)},
                           .exact_gradients = a.features.exact_gradients};
  if (a.features.json) protocol.combinations.note = {};  // they are part of the result
  const RankingResult result =
      evaluate_ranking(database, queries, task, protocol, pool, [](RankingCombination& one) {
        for (auto& [name, score] : one.scores) score.by_query = {};
      });
  nlohmann::json list = nlohmann::json::array();
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
      a.features.tell_reduction(list.back(), one.reduced);
      if (protocol.exact_gradients) list.back()["exact_gradients"] = true;
    }
  return list;
}

void print(const nlohmann::json& list) {
  std::vector<std::vector<std::string>> table;
  std::vector<std::string> scored;  // of each relevance: how many queries
  for (const nlohmann::json& one : list) {
    const nlohmann::json& precision = one["precision"];
    table.push_back({one["features"], one["relevance"], percent(one["map"]), percent(precision[0]),
                     percent(precision[1]), percent(precision[2])});
    if (one["features"] != list[0]["features"]) continue;
    const size_t queries = one["queries"];
    scored.push_back(fmt::format("{}: {} of {} queries have relevant rows and are scored\n",
                                 one["relevance"].get<std::string>(), queries,
                                 queries + one["queries_left_out"].get<size_t>()));
  }
  print_table({"features", "relevant", "mAP %", "mP@1", "mP@5", "mP@10"}, table);
  for (const std::string& line : scored) fmt::print("{}", line);
}

int run(const Arguments& a) {
  Pool pool(a.features.threads.count());
  return a.features.seeds.run(a.features.seeded({a.database, a.queries}, false,
                                                ", or give a random --reduce"),
                              {"features", "relevance"},
                              {{"map", "mAP %"}, {"precision", ""}}, a.features.json,
                              [&](const uint32_t* seed) { return answer(a, seed, pool); }, print);
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
