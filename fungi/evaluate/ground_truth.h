// SPDX-License-Identifier: Apache-2.0
// Files that say which rows are relevant to which query: the revisited Oxford/Paris records, as
// published (.pkl) or as JSON, and plain lists for any other data. Nothing in a .pkl is executed
// (checkpoint/pickle.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "fungi/evaluate/retrieval.h"
#include "fungi/input/revisited.h"

namespace fungi {

enum class Difficulty {
  easy,    // positives: easy; junk: junk and hard
  medium,  // positives: easy and hard; junk: junk
  hard,    // positives: hard; junk: junk and easy
};

// The relevance per record, in the numbering of the file.
std::vector<Relevance> relevance_of(const RevisitedTruth& truth, Difficulty difficulty);

// A list of named rows: JSON lines {"query": "name", "positive": ["name", ...], "junk": [...]}
// ("junk" may be absent).
struct RelevanceList {
  std::vector<std::string> queries;
  std::vector<std::vector<std::string>> positive, junk;
};
RelevanceList read_relevance_list(const std::filesystem::path& path);

// Row of each name in `ids`: the id itself, or, where no id is equal, the one whose file name
// without extension is the name, or else the name without its own extension. Error naming the first
// name that matches none or several.
std::vector<uint32_t> rows_of(const std::vector<std::string>& names,
                              const std::vector<std::string>& ids, const std::string& place);

// Relevance for each of query_ids against database_ids; queries that the file does not name get
// nothing. Error where two lines mean the same query.
std::vector<Relevance> resolve(const RelevanceList& list, const std::vector<std::string>& query_ids,
                               const std::vector<std::string>& database_ids,
                               const std::string& place);

// The rows that a revisited set is made of, in the order of the file, which is what relevance_of()
// counts: the database is the images of "imlist" and no others. A store may hold more, e.g. the
// queries; ranked among them, they would count as wrong answers.
struct RevisitedRows {
  std::vector<size_t> database, queries;
};
RevisitedRows rows_of(const RevisitedTruth& truth, const std::vector<std::string>& query_ids,
                      const std::vector<std::string>& database_ids, const std::string& place);

}  // namespace fungi
