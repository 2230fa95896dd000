// SPDX-License-Identifier: Apache-2.0
#include "fungi/input/revisited.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fungi/base/error.h"
#include "fungi/base/json.h"
#include "fungi/checkpoint/file_bytes.h"
#include "fungi/checkpoint/pickle.h"
#include "fungi/input/name_lists.h"

namespace fungi {
namespace {

using Json = nlohmann::json;

// A value as a message shows it.
std::string found(const Json& value) {
  constexpr size_t kMost = 60;
  const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= kMost ? text : fmt::format("{:.{}}...", text, kMost);
}

constexpr const char* kShape =
    "expected {\"imlist\": [...], \"qimlist\": [...], \"gnd\": [{\"easy\", \"hard\", \"junk\"}, "
    "...]}";

// What a file may become: a pickle can name one list a thousand times, and each of its items
// another. The largest published list has some hundred thousand values.
constexpr size_t kMostValues = size_t{1} << 22;
constexpr size_t kTextUnit = 32;  // bytes of text that count as one value more

// The few Python values that such a file is made of, as JSON. Depth is bounded by the shape asked
// for, the size by kMostValues.
class Unfolding {
 public:
  Unfolding(const Pickle& pickle, const std::string& place) : pickle_(pickle), place_(place) {}

  Json value(uint32_t at, size_t depth) {
    const PickleValue& value = pickle_[at];
    count(1 + value.text.size() / kTextUnit);
    switch (value.kind) {
      case PickleValue::Kind::integer:
        return value.integer;
      case PickleValue::Kind::text:
        return std::string(value.text);
      case PickleValue::Kind::sequence: {
        Json out = Json::array();
        if (depth > 0)
          for (uint32_t item : value.items) out.push_back(this->value(item, depth - 1));
        return out;
      }
      case PickleValue::Kind::dict: {
        Json out = Json::object();
        for (size_t i = 0; depth > 0 && i + 1 < value.items.size(); i += 2) {
          const PickleValue& key = pickle_[value.items[i]];
          count(1 + key.text.size() / kTextUnit);
          if (key.kind == PickleValue::Kind::text)
            out[std::string(key.text)] = this->value(value.items[i + 1], depth - 1);
        }
        return out;
      }
      default:
        return nullptr;
    }
  }

 private:
  void count(size_t more) {
    if ((values_ += more) > kMostValues)
      fail(fmt::format("expected at most {} values, found more: lists within lists", kMostValues),
           place_, "use the published file, or write the same as JSON");
  }
  const Pickle& pickle_;
  const std::string& place_;
  size_t values_ = 0;
};

constexpr const char* kNoArrays =
    "numpy arrays are not read: save the record again with .tolist() of each array, or as JSON";

// The reader's advice is about weights. Old protocols write the bytes of an array by _codecs.
Pickle read_pickle(std::string_view text, const std::string& place) {
  try {
    return unpickle(text, place);
  } catch (const Error& e) {
    const bool arrays = e.message().find("'numpy.") != std::string::npos ||
                        e.message().find("'_codecs.encode'") != std::string::npos;
    fail(fmt::format("expected a pickle of plain lists, names and numbers: {}", e.message()),
         e.place(), arrays ? kNoArrays : "use the published file, or write the same as JSON");
  }
}

std::vector<uint32_t> numbers(const Json& from, const char* key, size_t limit, size_t record,
                              const std::string& place) {
  if (!from.contains(key) || !from[key].is_array())
    fail(fmt::format("expected a list '{}' in record {}", key, record), place, kNoArrays);
  std::vector<uint32_t> out;
  for (const Json& item : from[key]) {
    if (!item.is_number_integer() || item.get<int64_t>() < 0 ||
        size_t(item.get<int64_t>()) >= limit)
      fail(fmt::format("expected image numbers below {} in '{}' of record {}, found {}", limit, key,
                       record, found(item)),
           place, "");
    out.push_back(uint32_t(item.get<int64_t>()));
  }
  return out;
}

}  // namespace

std::vector<std::string> name_list(const Json& from, const char* key, const std::string& place) {
  if (!from.contains(key)) fail(fmt::format("expected a list '{}', found none", key), place, "");
  if (!from[key].is_array())
    fail(fmt::format("expected a list of names in '{}', found {}", key, found(from[key])), place,
         "write [\"name\", ...]");
  std::vector<std::string> out;
  for (const Json& item : from[key]) {
    if (!item.is_string())
      fail(fmt::format("expected names in '{}', found {}", key, found(item)), place,
           "write [\"name\", ...]");
    out.push_back(item.get<std::string>());
  }
  return out;
}

nlohmann::json parse_list(std::string_view text, const std::string& place) {
  Json json = parse_json(text);
  if (json.is_discarded()) fail("expected JSON, found something else", place, "");
  return json;
}

RevisitedTruth read_revisited(const std::filesystem::path& path) {
  const auto file = FileBytes::map(path);
  const std::string place = path.string();
  const std::string_view text = file->text();
  const size_t start = text.find_first_not_of(" \t\r\n");
  const bool is_json = start != std::string_view::npos && text[start] == '{';
  Json json;
  if (is_json) {
    json = parse_list(text, place);
  } else {
    const Pickle pickle = read_pickle(text, place);
    json = Unfolding(pickle, place).value(pickle.root, 4);
  }
  if (!json.is_object() || !json.contains("gnd") || !json["gnd"].is_array())
    fail(kShape, place, "");
  RevisitedTruth truth;
  truth.database = name_list(json, "imlist", place);
  truth.queries = name_list(json, "qimlist", place);
  if (truth.database.empty() || truth.queries.empty())
    fail(fmt::format("expected database and query images, found {} and {}", truth.database.size(),
                     truth.queries.size()),
         place, kShape);
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

}  // namespace fungi
