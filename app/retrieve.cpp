// SPDX-License-Identifier: Apache-2.0
// fungi retrieve DATABASE QUERIES --truth FILE: mean average precision, by the revisited
// Oxford/Paris rules (SPEC 5.5) or a plain list of relevant ids; without a truth file, rows of the
// same class are relevant.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "app/features.h"
#include "fungi/evaluate/retrieval.h"
#include "fungi/search/gradient_search.h"

namespace fungi::app {
namespace {

struct Arguments {
  std::string database, queries, truth, metric = "inner_product";
  FeatureOptions features;
};

// Which rows are ranked for which queries, and what counts as right. No rows: all.
struct Task {
  RevisitedRows rows = {};
  std::vector<std::pair<std::string, std::vector<Relevance>>> relevances;
};

// Where a store is searched for its own rows, none is its own answer; but what a list names,
// counts.
void leave_out_own_rows(std::vector<Relevance>& relevance) {
  for (size_t q = 0; q < relevance.size(); ++q) {
    const std::vector<uint32_t>& right = relevance[q].positive;
    if (std::find(right.begin(), right.end(), uint32_t(q)) == right.end())
      relevance[q].junk.push_back(uint32_t(q));
  }
}

std::vector<Relevance> same_class(const Store& database, const Store& queries, bool same_store) {
  for (const Store* store : {&database, &queries})  // some without a label are right for nobody
    if (std::all_of(store->labels().begin(), store->labels().end(),
                    [](int64_t label) { return label < 0; }))
      require_labels(*store);
  const std::vector<int64_t> labels = align_labels(database.classes(), queries);
  std::unordered_map<int64_t, std::vector<uint32_t>> members;
  for (size_t i = 0; i < database.rows(); ++i)
    if (database.labels()[i] >= 0) members[database.labels()[i]].push_back(uint32_t(i));
  std::vector<Relevance> out(labels.size());
  for (size_t q = 0; q < out.size(); ++q) {
    std::vector<uint32_t>& right = out[q].positive;
    if (const auto found = members.find(labels[q]); found != members.end()) right = found->second;
    if (same_store) std::erase(right, uint32_t(q));
  }
  return out;
}

Task read_task(const Arguments& a, const Store& database, const Store& queries) {
  std::error_code unknown;
  const bool same_store = std::filesystem::equivalent(database.folder(), queries.folder(), unknown);
  if (!a.truth.empty() && !a.truth.ends_with(".jsonl")) {
    const RevisitedTruth truth = read_revisited(a.truth);
    return {rows_of(truth, queries.ids(), database.ids(), a.truth),
            {{"medium", relevance_of(truth, Difficulty::medium)},
             {"hard", relevance_of(truth, Difficulty::hard)}}};
  }
  std::vector<Relevance> relevance =
      a.truth.empty()
          ? same_class(database, queries, same_store)
          : resolve(read_relevance_list(a.truth), queries.ids(), database.ids(), a.truth);
  if (same_store) leave_out_own_rows(relevance);
  return {.relevances = {{a.truth.empty() ? "class" : "list", std::move(relevance)}}};
}

int run(const Arguments& a) {
  const Store database = Store::open(a.database), queries = Store::open(a.queries);
  Pool pool(a.features.threads.count());
  RetrievalOptions options;
  options.metric = parse_metric(a.metric);
  const Task task = read_task(a, database, queries);
  const bool exact = a.features.exact_gradients;
  nlohmann::json list = nlohmann::json::array();
  std::vector<std::vector<std::string>> table;
  for (const std::string& features : a.features.combinations(database)) {
    require_comparable(database, queries, features, !exact);
    std::optional<GradientSearch> search;
    std::optional<RankedRows> rows;
    if (exact)
      search.emplace(database, queries, features, pool,
                     GradientSearchOptions{.metric = options.metric,
                                           .database_rows = task.rows.database,
                                           .query_rows = task.rows.queries});
    else
      rows = load_ranked(database, queries, features, task.rows, a.features, pool);
    const auto keys = [&](size_t first, View<double> out) { search->keys(first, out, pool); };
    for (const auto& [name, relevance] : task.relevances) {
      const RetrievalScore score =
          exact ? evaluate_retrieval(search->rows(), search->queries(), keys, relevance, options,
                                     pool)
                : evaluate_retrieval(rows->database, rows->queries, relevance, options, pool);
      list.push_back({{"features", features},
                      {"relevance", name},
                      {"map", score.map},
                      {"precision_at", options.precision_at},
                      {"precision", score.precision},
                      {"queries", score.queries},
                      {"pca", a.features.pca},
                      {"pca_applied", rows && rows->shrunk}});
      if (exact) list.back()["exact_gradients"] = true;
      table.push_back({features, name, percent(score.map), percent(score.precision[0]),
                       percent(score.precision[1]), percent(score.precision[2])});
    }
  }
  if (a.features.json)
    print_json(list);
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
      ->capture_default_str()
      ->check(metric_name());
  a->features.add_to(*self);
  a->features.add_exact_gradients(*self);
  return [a] { return run(*a); };
}

}  // namespace fungi::app
