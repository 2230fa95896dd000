// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/ground_truth.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "fungi/base/error.h"
#include "fungi/checkpoint/file_bytes.h"
#include "fungi/input/name_lists.h"

namespace fungi {
namespace {

using Json = nlohmann::json;

// What evaluate_retrieval() refuses by number, too, in the words of the file.
void require_one_side(const Relevance& relevance, const std::vector<std::string>& rows,
                      const std::string& query, const std::string& place) {
  const std::unordered_set<uint32_t> right(relevance.positive.begin(), relevance.positive.end());
  for (const uint32_t row : relevance.junk)
    if (right.contains(row))
      fail(fmt::format("expected an image to be positive or junk, '{}' of the query '{}' is both",
                       rows[row], query),
           place, "name it in one of the two lists");
}

std::string stem(const std::string& id) { return std::filesystem::path(id).stem().string(); }

}  // namespace

std::vector<Relevance> relevance_of(const RevisitedTruth& truth, Difficulty difficulty) {
  std::vector<Relevance> out;
  for (const RevisitedRecord& record : truth.records) {
    Relevance r{{}, record.junk};
    const auto add = [](std::vector<uint32_t>& to, const std::vector<uint32_t>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    add(difficulty == Difficulty::hard ? r.junk : r.positive, record.easy);
    add(difficulty == Difficulty::easy ? r.junk : r.positive, record.hard);
    require_one_side(r, truth.database, truth.queries[out.size()], "ground truth");
    out.push_back(std::move(r));
  }
  return out;
}

RelevanceList read_relevance_list(const std::filesystem::path& path) {
  const auto file = FileBytes::map(path);
  RelevanceList list;
  std::unordered_map<std::string, size_t> line_of;
  std::string_view rest = file->text();
  for (size_t line = 1; !rest.empty(); ++line) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view text = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string place = fmt::format("{}:{}", path.string(), line);
    const Json json = parse_list(text, place);
    if (!json.is_object() || !json.contains("query") || !json["query"].is_string())
      fail("expected {\"query\": \"name\", \"positive\": [...], \"junk\": [...]}", place, "");
    list.queries.push_back(json["query"].get<std::string>());
    if (const auto [at, fresh] = line_of.emplace(list.queries.back(), line); !fresh)
      fail(fmt::format("expected each query once, '{}' stands in line {}, too", at->first,
                       at->second),
           place, "write all its positives in one line");
    list.positive.push_back(name_list(json, "positive", place));
    list.junk.push_back(json.contains("junk") ? name_list(json, "junk", place)
                                              : std::vector<std::string>{});
  }
  if (list.queries.empty()) fail("expected at least one query, found none", path.string(), "");
  return list;
}

namespace {

// Names to rows of `ids`, which it refers to.
class Finder {
 public:
  Finder(const std::vector<std::string>& ids, const std::string& place) : ids_(ids), place_(place) {
    for (size_t i = 0; i < ids.size(); ++i) {
      by_id_.emplace(ids[i], uint32_t(i));
      by_stem_.emplace(stem(ids[i]), uint32_t(i));
    }
  }

  std::vector<uint32_t> rows(const std::vector<std::string>& names) const {
    std::vector<uint32_t> out;
    for (const std::string& name : names) out.push_back(row(name));
    return out;
  }

  // The same, and an Error where two names mean one row: the second would overwrite the first.
  std::vector<uint32_t> different_rows(const std::vector<std::string>& names) const {
    const std::vector<uint32_t> found = rows(names);
    std::unordered_map<uint32_t, size_t> first;
    for (size_t i = 0; i < found.size(); ++i)
      if (const auto [at, fresh] = first.emplace(found[i], i); !fresh)
        fail(fmt::format("expected names of different rows, '{}' and '{}' both mean '{}'",
                         names[at->second], names[i], ids_[found[i]]),
             place_, "name each query and each database image once");
    return found;
  }

 private:
  uint32_t row(const std::string& name) const {
    if (const auto exact = by_id_.find(name); exact != by_id_.end()) return exact->second;
    // "img.001" may be a name without extension: only where it is none, ".001" is the extension.
    auto [begin, end] = by_stem_.equal_range(std::filesystem::path(name).filename().string());
    if (begin == end) std::tie(begin, end) = by_stem_.equal_range(stem(name));
    const auto matches = std::distance(begin, end);
    if (matches != 1)
      fail(fmt::format("expected one row named '{}', found {}", name, matches), place_,
           "names are sample ids, or file names without folder and extension");
    return begin->second;
  }

  const std::vector<std::string>& ids_;
  const std::string& place_;
  std::unordered_map<std::string_view, uint32_t> by_id_;
  std::unordered_multimap<std::string, uint32_t> by_stem_;
};

}  // namespace

std::vector<uint32_t> rows_of(const std::vector<std::string>& names,
                              const std::vector<std::string>& ids, const std::string& place) {
  return Finder(ids, place).rows(names);
}

std::vector<Relevance> resolve(const RelevanceList& list, const std::vector<std::string>& query_ids,
                               const std::vector<std::string>& database_ids,
                               const std::string& place) {
  std::vector<Relevance> out(query_ids.size());
  const std::vector<uint32_t> queries = Finder(query_ids, place).different_rows(list.queries);
  const Finder database(database_ids, place);
  for (size_t i = 0; i < queries.size(); ++i) {
    out[queries[i]] = {database.rows(list.positive[i]), database.rows(list.junk[i])};
    require_one_side(out[queries[i]], database_ids, list.queries[i], place);
  }
  return out;
}

RevisitedRows rows_of(const RevisitedTruth& truth, const std::vector<std::string>& query_ids,
                      const std::vector<std::string>& database_ids, const std::string& place) {
  const auto rows = [&](const std::vector<std::string>& images,
                        const std::vector<std::string>& ids) {
    const std::vector<uint32_t> numbers = Finder(ids, place).different_rows(images);
    return std::vector<size_t>(numbers.begin(), numbers.end());
  };
  return {rows(truth.database, database_ids), rows(truth.queries, query_ids)};
}

}  // namespace fungi
