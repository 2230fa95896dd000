// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/ranking_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <unordered_map>

namespace fungi {
namespace {

bool is_same(const Store& database, const Store& queries) {
  std::error_code unknown;
  return std::filesystem::equivalent(database.folder(), queries.folder(), unknown);
}

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
           "queries", "use splits of the same data set, or say what is relevant with `truth`");
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

ClassRows class_rows(const Store& database, const Store& queries, bool same_store) {
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

}  // namespace

RankingTask same_class_task(const Store& database, const Store& queries) {
  const auto rows =
      std::make_shared<const ClassRows>(class_rows(database, queries, is_same(database, queries)));
  return {.relevances = {{"class", [rows](size_t query) { return rows->of(query); }}},
          .notes = rows->notes()};
}

RankingTask read_task(const std::filesystem::path& truth, const Store& database,
                      const Store& queries) {
  const std::string place = truth.string();
  if (!place.ends_with(".jsonl")) {
    const RevisitedTruth revisited = read_revisited(truth);
    return {.rows = rows_of(revisited, queries.ids(), database.ids(), place),
            .relevances = {{"medium", in_lists(relevance_of(revisited, Difficulty::medium))},
                           {"hard", in_lists(relevance_of(revisited, Difficulty::hard))}}};
  }
  std::vector<Relevance> relevance =
      resolve(read_relevance_list(truth), queries.ids(), database.ids(), place);
  if (is_same(database, queries)) leave_out_own_rows(relevance);
  return {.relevances = {{"list", in_lists(std::move(relevance))}}};
}

}  // namespace fungi
