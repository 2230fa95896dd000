// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/ground_truth.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "fungi/base/error.h"
#include "fungi/checkpoint/file_bytes.h"
#include "fungi/checkpoint/pickle.h"

namespace fungi {
namespace {

using Json = nlohmann::json;

constexpr const char* kShape =
    "expected {\"imlist\": [...], \"qimlist\": [...], \"gnd\": [{\"easy\", \"hard\", \"junk\"}, "
    "...]}";

// The few Python values that such a file is made of, as JSON. Depth is bounded by the shape asked
// for.
Json to_json(const Pickle& pickle, uint32_t at, size_t depth) {
  const PickleValue& value = pickle[at];
  switch (value.kind) {
    case PickleValue::Kind::integer:
      return value.integer;
    case PickleValue::Kind::text:
      return std::string(value.text);
    case PickleValue::Kind::sequence: {
      Json out = Json::array();
      if (depth > 0)
        for (uint32_t item : value.items) out.push_back(to_json(pickle, item, depth - 1));
      return out;
    }
    case PickleValue::Kind::dict: {
      Json out = Json::object();
      for (size_t i = 0; depth > 0 && i + 1 < value.items.size(); i += 2)
        if (pickle[value.items[i]].kind == PickleValue::Kind::text)
          out[std::string(pickle[value.items[i]].text)] =
              to_json(pickle, value.items[i + 1], depth - 1);
      return out;
    }
    default:
      return nullptr;
  }
}

std::vector<std::string> names(const Json& from, const char* key, const std::string& place) {
  if (!from.contains(key)) fail(fmt::format("{}; '{}' is missing", kShape, key), place, "");
  std::vector<std::string> out;
  for (const Json& item : from[key]) {
    if (!item.is_string()) fail(fmt::format("expected names in '{}'", key), place, "");
    out.push_back(item.get<std::string>());
  }
  return out;
}

std::vector<uint32_t> numbers(const Json& from, const char* key, size_t limit, size_t record,
                              const std::string& place) {
  if (!from.contains(key) || !from[key].is_array())
    fail(fmt::format("expected a list '{}' in record {}", key, record), place,
         "numpy arrays are not read from a pickle: save the record with plain lists, or as JSON");
  std::vector<uint32_t> out;
  for (const Json& item : from[key]) {
    if (!item.is_number_integer() || item.get<int64_t>() < 0 ||
        size_t(item.get<int64_t>()) >= limit)
      fail(fmt::format("expected image numbers below {} in '{}' of record {}, found {}", limit, key,
                       record, item.dump()),
           place, "");
    out.push_back(uint32_t(item.get<int64_t>()));
  }
  return out;
}

Json parse(std::string_view text, const std::string& place) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) fail("expected JSON, found something else", place, "");
  return json;
}

std::string stem(const std::string& id) { return std::filesystem::path(id).stem().string(); }

std::vector<uint32_t> translate(const std::vector<uint32_t>& rows,
                                const std::vector<uint32_t>& to) {
  std::vector<uint32_t> out;
  for (uint32_t row : rows) out.push_back(to[row]);
  return out;
}

}  // namespace

RevisitedTruth read_revisited(const std::filesystem::path& path) {
  const auto file = FileBytes::map(path);
  const std::string place = path.string();
  const std::string_view text = file->text();
  const size_t start = text.find_first_not_of(" \t\r\n");
  const bool is_json = start != std::string_view::npos && text[start] == '{';
  Json json;
  if (is_json) {
    json = parse(text, place);
  } else {
    const Pickle pickle = unpickle(text, place);
    json = to_json(pickle, pickle.root, 4);
  }
  if (!json.is_object() || !json.contains("gnd") || !json["gnd"].is_array())
    fail(kShape, place, "");
  RevisitedTruth truth;
  truth.database = names(json, "imlist", place);
  truth.queries = names(json, "qimlist", place);
  for (const Json& record : json["gnd"]) {
    const size_t number = truth.records.size(), limit = truth.database.size();
    if (!record.is_object()) fail(fmt::format("{}; record {} is none", kShape, number), place, "");
    truth.records.push_back({numbers(record, "easy", limit, number, place),
                             numbers(record, "hard", limit, number, place),
                             numbers(record, "junk", limit, number, place)});
  }
  if (truth.records.size() != truth.queries.size())
    fail(fmt::format("expected a record for each of {} queries, found {}", truth.queries.size(),
                     truth.records.size()),
         place, "");
  return truth;
}

std::vector<Relevance> relevance_of(const RevisitedTruth& truth, Difficulty difficulty) {
  std::vector<Relevance> out;
  for (const RevisitedRecord& record : truth.records) {
    Relevance r{{}, record.junk};
    const auto add = [](std::vector<uint32_t>& to, const std::vector<uint32_t>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    add(difficulty == Difficulty::hard ? r.junk : r.positive, record.easy);
    add(difficulty == Difficulty::easy ? r.junk : r.positive, record.hard);
    out.push_back(std::move(r));
  }
  return out;
}

RelevanceList read_relevance_list(const std::filesystem::path& path) {
  const auto file = FileBytes::map(path);
  RelevanceList list;
  std::string_view rest = file->text();
  for (size_t line = 1; !rest.empty(); ++line) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view text = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string place = fmt::format("{}:{}", path.string(), line);
    const Json json = parse(text, place);
    if (!json.is_object() || !json.contains("query") || !json["query"].is_string())
      fail("expected {\"query\": \"name\", \"positive\": [...], \"junk\": [...]}", place, "");
    list.queries.push_back(json["query"].get<std::string>());
    list.positive.push_back(names(json, "positive", place));
    list.junk.push_back(json.contains("junk") ? names(json, "junk", place)
                                              : std::vector<std::string>{});
  }
  if (list.queries.empty()) fail("expected at least one query, found none", path.string(), "");
  return list;
}

std::vector<uint32_t> rows_of(const std::vector<std::string>& wanted,
                              const std::vector<std::string>& ids, const std::string& place) {
  std::unordered_map<std::string, uint32_t> by_id;
  std::unordered_multimap<std::string, uint32_t> by_stem;
  for (size_t i = 0; i < ids.size(); ++i) {
    by_id.emplace(ids[i], uint32_t(i));
    by_stem.emplace(stem(ids[i]), uint32_t(i));
  }
  std::vector<uint32_t> rows;
  for (const std::string& name : wanted) {
    if (const auto exact = by_id.find(name); exact != by_id.end()) {
      rows.push_back(exact->second);
      continue;
    }
    const auto [begin, end] = by_stem.equal_range(stem(name));
    const auto matches = std::distance(begin, end);
    if (matches != 1)
      fail(fmt::format("expected one row named '{}', found {}", name, matches), place,
           "names are sample ids, or file names without folder and extension");
    rows.push_back(begin->second);
  }
  return rows;
}

std::vector<Relevance> resolve(const RelevanceList& list, const std::vector<std::string>& query_ids,
                               const std::vector<std::string>& database_ids,
                               const std::string& place) {
  std::vector<Relevance> out(query_ids.size());
  const std::vector<uint32_t> queries = rows_of(list.queries, query_ids, place);
  for (size_t i = 0; i < queries.size(); ++i)
    out[queries[i]] = {rows_of(list.positive[i], database_ids, place),
                       rows_of(list.junk[i], database_ids, place)};
  return out;
}

std::vector<Relevance> resolve(const RevisitedTruth& truth, Difficulty difficulty,
                               const std::vector<std::string>& query_ids,
                               const std::vector<std::string>& database_ids,
                               const std::string& place) {
  std::vector<Relevance> out(query_ids.size());
  const std::vector<uint32_t> queries = rows_of(truth.queries, query_ids, place);
  const std::vector<uint32_t> database = rows_of(truth.database, database_ids, place);
  const std::vector<Relevance> relevance = relevance_of(truth, difficulty);
  for (size_t i = 0; i < queries.size(); ++i)
    out[queries[i]] = {translate(relevance[i].positive, database),
                       translate(relevance[i].junk, database)};
  return out;
}

}  // namespace fungi
