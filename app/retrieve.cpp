// SPDX-License-Identifier: Apache-2.0
// fungi retrieve DATABASE QUERIES --truth FILE: mean average precision, by the revisited
// Oxford/Paris rules (SPEC 5.5) or a plain list of relevant ids; without a truth file, rows of the
// same class are relevant.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "app/features.h"
#include "fungi/evaluate/retrieval.h"
#include "fungi/retrieve/gradient_search.h"

namespace fungi::app {
namespace {

struct Arguments {
  std::string database, queries, truth, metric = "inner_product";
  FeatureOptions features;
};

// Which rows are ranked for which queries, and what counts as right. No rows: all.
struct Task {
  RevisitedRows rows = {};
  std::vector<std::pair<std::string, RelevanceOf>> relevances = {};
  std::vector<std::string> notes = {};
};

RelevanceOf in_lists(std::vector<Relevance> relevance) {
  return [lists = std::make_shared<const std::vector<Relevance>>(std::move(relevance))](size_t q) {
    return (*lists)[q];
  };
}

// Where a store is searched for its own rows, none is its own answer; but what a list names,
// counts.
void leave_out_own_rows(std::vector<Relevance>& relevance) {
  for (size_t q = 0; q < relevance.size(); ++q) {
    const std::vector<uint32_t>& right = relevance[q].positive;
    if (std::find(right.begin(), right.end(), uint32_t(q)) == right.end())
      relevance[q].junk.push_back(uint32_t(q));
  }
}

// The rows of each class of the database, once for all queries: a list for each of them would be
// quadratic in the rows.
struct ClassRows {
  std::vector<int64_t> query_labels;  // in the numbering of the database, others after its own
  std::unordered_map<int64_t, std::vector<uint32_t>> members;
  bool same_store;
  std::string first_stranger = {};  // name of the first class that the database lacks

  Relevance of(size_t query) const {
    Relevance out;
    if (const auto found = members.find(query_labels[query]); found != members.end())
      out.positive = found->second;
    if (!same_store) return out;
    std::erase(out.positive, uint32_t(query));
    out.junk = {uint32_t(query)};
    return out;
  }

  // Queries that no row can answer; they would be missed in silence otherwise.
  std::vector<std::string> notes() const {
    size_t unlabelled = 0, strange = 0, alone = 0;
    std::set<int64_t> strangers;
    for (const int64_t label : query_labels) {
      const auto found = members.find(label);
      if (label < 0)
        ++unlabelled;
      else if (found == members.end())
        ++strange, strangers.insert(label);
      else if (same_store && found->second.size() == 1)
        ++alone;
    }
    const size_t all = query_labels.size();
    std::vector<std::string> notes;
    if (strange == all && !first_stranger.empty())
      fail(fmt::format("none of the queries is of a class of the database: there is no '{}' there",
                       first_stranger),
           "queries", "use splits of the same data set, or say what is relevant with --truth");
    if (strange)
      notes.push_back(fmt::format(
          "{} of {} queries are of {} classes without rows in the database: they are left out",
          strange, all, strangers.size()));
    if (unlabelled)
      notes.push_back(
          fmt::format("{} of {} queries have no label: they are left out", unlabelled, all));
    if (alone)
      notes.push_back(fmt::format(
          "{} of {} queries are the only row of their class: they are left out", alone, all));
    return notes;
  }
};

ClassRows same_class(const Store& database, const Store& queries, bool same_store) {
  for (const Store* store : {&database, &queries})  // some without a label are right for nobody
    if (std::all_of(store->labels().begin(), store->labels().end(),
                    [](int64_t label) { return label < 0; }))
      require_labels(*store);
  ClassRows out{align_labels(database.classes(), queries, true), {}, same_store};
  for (size_t q = 0; q < queries.rows(); ++q)
    if (out.query_labels[q] < 0 && queries.labels()[q] >= 0) {
      out.query_labels[q] = int64_t(database.classes().size()) + queries.labels()[q];
      if (out.first_stranger.empty()) out.first_stranger = queries.class_name(q);
    }
  for (size_t i = 0; i < database.rows(); ++i)
    if (database.labels()[i] >= 0) out.members[database.labels()[i]].push_back(uint32_t(i));
  return out;
}

Task read_task(const Arguments& a, const Store& database, const Store& queries) {
  std::error_code unknown;
  const bool same_store = std::filesystem::equivalent(database.folder(), queries.folder(), unknown);
  if (a.truth.empty()) {
    const auto rows = std::make_shared<const ClassRows>(same_class(database, queries, same_store));
    return {.relevances = {{"class", [rows](size_t query) { return rows->of(query); }}},
            .notes = rows->notes()};
  }
  if (!a.truth.ends_with(".jsonl")) {
    const RevisitedTruth truth = read_revisited(a.truth);
    return {.rows = rows_of(truth, queries.ids(), database.ids(), a.truth),
            .relevances = {{"medium", in_lists(relevance_of(truth, Difficulty::medium))},
                           {"hard", in_lists(relevance_of(truth, Difficulty::hard))}}};
  }
  std::vector<Relevance> relevance =
      resolve(read_relevance_list(a.truth), queries.ids(), database.ids(), a.truth);
  if (same_store) leave_out_own_rows(relevance);
  return {.relevances = {{"list", in_lists(std::move(relevance))}}};
}

int run(const Arguments& a) {
  const Store database = Store::open(a.database), queries = Store::open(a.queries);
  Pool pool(a.features.threads.count());
  RetrievalOptions options;
  options.metric = parse_metric(a.metric);
  const Task task = read_task(a, database, queries);
  if (!a.features.json)
    for (const std::string& note : task.notes) say("note: {}\n", note);
  const bool exact = a.features.exact_gradients;
  nlohmann::json list = nlohmann::json::array();
  std::vector<std::vector<std::string>> table;
  std::map<std::string, std::string> scored;  // by relevance: how many queries
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
                      {"queries_left_out", score.by_query.size() - score.queries},
                      {"notes", task.notes},
                      {"pca", a.features.pca},
                      {"pca_applied", rows && rows->shrunk}});
      if (exact) list.back()["exact_gradients"] = true;
      scored[name] = fmt::format("{}: {} of {} queries have relevant rows and are scored\n", name,
                                 score.queries, score.by_query.size());
      table.push_back({features, name, percent(score.map), percent(score.precision[0]),
                       percent(score.precision[1]), percent(score.precision[2])});
    }
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
  return [a] { return run(*a); };
}

}  // namespace fungi::app
