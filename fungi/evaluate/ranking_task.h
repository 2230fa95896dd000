// SPDX-License-Identifier: Apache-2.0
// What a retrieval of one store's rows by another's is: which rows are ranked for which queries,
// and what counts as right.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "fungi/evaluate/ground_truth.h"
#include "fungi/evaluate/retrieval.h"
#include "fungi/store/store.h"

namespace fungi {

struct RankingTask {
  RevisitedRows rows = {};                                           // none: all
  std::vector<std::pair<std::string, RelevanceOf>> relevances = {};  // by name
  std::vector<std::string> notes = {};
};

// Rows of the same class are right ("class"). Where a store is searched for its own rows, none is
// its own answer. Notes tell of queries that no row can answer. Errors: a store without labels, no
// query of a class of the database.
RankingTask same_class_task(const Store& database, const Store& queries);

// What a file says: the records of the revisited Oxford and Paris sets ("medium", "hard"), or, of a
// name that ends in .jsonl, a list of ids ("list").
RankingTask read_task(const std::filesystem::path& truth, const Store& database,
                      const Store& queries);

}  // namespace fungi
