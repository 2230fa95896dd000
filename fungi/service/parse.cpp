// SPDX-License-Identifier: Apache-2.0
#include "fungi/service/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "fungi/base/base64.h"
#include "fungi/base/json.h"
#include "fungi/base/text.h"
#include "fungi/base/utf8.h"
#include "fungi/service/multipart.h"
#include "fungi/service/refused.h"

namespace fungi::service {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostNeighbours = 1000, kMostSearches = 8, kMostClasses = 1000, kMostInputs = 256;
constexpr size_t kMostRows = 4'294'967'295, kMostEffort = 100'000;

void require_utf8(std::string_view text, const std::string& param) {
  if (const auto bad = first_bad_byte(text))
    refuse("expected UTF-8, found " + describe_bad_byte(text, *bad), param, "encode it as UTF-8");
  if (text.find('\0') != std::string_view::npos)
    refuse("expected a text, found the character NUL in it", param, "leave it out");
}

size_t parse_number(std::string_view text, const std::string& param, size_t least, size_t most) {
  size_t value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong != std::errc() || end != text.data() + text.size() || value < least || value > most)
    refuse(fmt::format("expected a whole number from {} to {}, found '{}'", least, most,
                       text.substr(0, 40)),
           param);
  return value;
}

Json parse_object(const WebRequest& request) {
  require_utf8(request.body, "body");
  Json body = parse_json(request.body);
  if (!body.is_object())
    refuse(body.is_discarded() ? "expected JSON, nested less than 64 deep, found something else"
                               : "expected a JSON object, found another value",
           "body", "/openapi.json tells what it may hold");
  return body;
}

std::string text_of(const Json& value, const std::string& param) {
  if (!value.is_string()) refuse("expected a string, found another value", param);
  const auto& text = value.get_ref<const std::string&>();
  require_utf8(text, param);
  return text;
}

size_t number_of(const Json& value, const std::string& param, size_t least, size_t most) {
  if (!value.is_number_integer() || value < least || value > most)
    refuse(fmt::format("expected a whole number from {} to {}, found {}", least, most,
                       value.is_number() ? value.dump() : "another value"),
           param);
  return value.get<size_t>();
}

// One string or a list of some.
std::vector<std::string> texts_of(const Json& value, const std::string& param, size_t most) {
  if (value.is_string()) return {text_of(value, param)};
  if (!value.is_array() || value.empty() || value.size() > most)
    refuse(fmt::format("expected a string or a list of 1 to {} strings, found something else", most),
           param);
  std::vector<std::string> list;
  for (const Json& item : value) list.push_back(text_of(item, param));
  return list;
}

using Kind = Question::Kind;

// Puts one question; a second is refused.
class Asked {
 public:
  explicit Asked(ParsedSearch& to) : to_(to) {}
  Question& put(Kind kind, const std::string& param) {
    if (!first_.empty())
      refuse(fmt::format("expected one question, found '{}' and '{}'", first_, param), param,
             "send one of row, id, text, image, sound and file");
    first_ = param;
    to_.search.question.kind = kind;
    return to_.search.question;
  }
  void require() const {
    if (first_.empty())
      refuse("expected a question, found none", "body",
             "send one of row, id, text, image, sound and file");
  }

 private:
  ParsedSearch& to_;
  std::string first_;
};

void parse_json_search(const WebRequest& request, ParsedSearch& to) {
  SearchRequest& s = to.search;
  Asked asked(to);
  std::string name;
  const Json body = parse_object(request);
  for (const auto& [key, value] : body.items()) {
    if (key == "row")
      asked.put(Kind::row, key).row = number_of(value, key, 0, kMostRows);
    else if (key == "id")
      asked.put(Kind::row, key), to.row_id = text_of(value, key);
    else if (key == "text")
      asked.put(Kind::text, key).bytes = text_of(value, key);
    else if (key == "image")
      asked.put(Kind::image, key).bytes = read_base64(text_of(value, key), key);
    else if (key == "sound")
      asked.put(Kind::sound, key).bytes = read_base64(text_of(value, key), key);
    else if (key == "name")
      name = text_of(value, key);
    else if (key == "store")
      s.store = text_of(value, key);
    else if (key == "k")
      s.k = number_of(value, key, 1, kMostNeighbours);
    else if (key == "features")
      s.features = texts_of(value, key, kMostSearches);
    else if (key == "classes")
      s.classes = texts_of(value, key, kMostClasses);
    else if (key == "effort")
      s.search.effort = number_of(value, key, 0, kMostEffort);
    else if (key == "probes")
      s.search.probes = number_of(value, key, 0, kMostEffort);
    else
      refuse(fmt::format("there is no field '{}'", key.substr(0, 40)), key.substr(0, 40),
             "/openapi.json has those there are");
  }
  asked.require();
  s.question.id = name;
}

void parse_form_search(const WebRequest& request, ParsedSearch& to) {
  SearchRequest& s = to.search;
  Asked asked(to);
  s.features.clear();
  for (const FormField& field : read_multipart(request.content_type, request.body)) {
    const std::string& key = field.name;
    require_utf8(key, "body");
    require_utf8(field.file_name, key);
    const bool file = key == "file" || key == "image" || key == "sound";
    if (file) {
      Question& q = asked.put(key == "sound" ? Kind::sound : Kind::image, key);
      to.any_file = key == "file";
      q.bytes = field.value;
      q.id = field.file_name;
      continue;
    }
    require_utf8(field.value, key);
    const std::string value(field.value);
    if (key == "row")
      asked.put(Kind::row, key).row = parse_number(value, key, 0, kMostRows);
    else if (key == "id")
      asked.put(Kind::row, key), to.row_id = value;
    else if (key == "text")
      asked.put(Kind::text, key).bytes = value;
    else if (key == "store")
      s.store = value;
    else if (key == "k")
      s.k = parse_number(value, key, 1, kMostNeighbours);
    else if (key == "features")
      s.features.push_back(value);
    else if (key == "classes")
      s.classes.push_back(value);
    else if (key == "effort")
      s.search.effort = parse_number(value, key, 0, kMostEffort);
    else if (key == "probes")
      s.search.probes = parse_number(value, key, 0, kMostEffort);
    else
      refuse(fmt::format("there is no field '{}'", key.substr(0, 40)), key.substr(0, 40),
             "/openapi.json has those there are");
  }
  asked.require();
  if (s.features.empty()) s.features = {""};
  if (s.features.size() > kMostSearches || s.classes.size() > kMostClasses)
    refuse(fmt::format("expected at most {} features and {} classes, found more", kMostSearches,
                       kMostClasses),
           "features");
}

}  // namespace

std::optional<std::string> word(const WebRequest& request, const std::string& name) {
  const auto [first, last] = request.query.equal_range(name);
  if (first == last) return {};
  require_utf8(first->second, name);
  return first->second;
}

size_t number(const WebRequest& request, const std::string& name, size_t usual, size_t least,
              size_t most) {
  const auto given = word(request, name);
  return given ? parse_number(*given, name, least, most) : usual;
}

std::string features_expression(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == ' ' || c == ','; }, '+');
  return text == "all" ? "" : text;
}

std::string read_base64(std::string_view text, const std::string& param, std::string* type) {
  if (lower(std::string(text.substr(0, 5))) == "data:") {
    const size_t comma = text.find(',');
    const std::string head =
        comma == std::string_view::npos ? "" : lower(std::string(text.substr(5, comma - 5)));
    if (!head.ends_with(";base64"))
      refuse("expected a data URL with ';base64,', found another one", param,
             "such as data:image/png;base64,...");
    if (type) *type = head.substr(0, head.find(';'));
    text.remove_prefix(comma + 1);
  }
  auto bytes = from_base64(text);
  if (!bytes) refuse("expected base64, found a character that is none of it", param);
  if (bytes->empty()) refuse("expected the bytes of a file, found none", param);
  return std::move(*bytes);
}

ParsedSearch parse_search(const WebRequest& request) {
  ParsedSearch to;
  const std::string type = media_type(request.content_type);
  if (type == "multipart/form-data")
    parse_form_search(request, to);
  else if (type == "application/json")
    parse_json_search(request, to);
  else
    throw Refused(415, "expected application/json or multipart/form-data, found another type",
                  "say so with Content-Type", 0, "body");
  for (std::string& features : to.search.features) features = features_expression(features);
  return to;
}

EmbeddingRequest parse_embedding_request(const WebRequest& request) {
  if (media_type(request.content_type) != "application/json")
    throw Refused(415, "expected application/json, found another type",
                  "say so with Content-Type", 0, "body");
  EmbeddingRequest to;
  const Json body = parse_object(request);
  for (const auto& [key, value] : body.items()) {
    if (key == "input") {
      if (value.is_array() && !value.empty() && !value.front().is_string())
        refuse("expected texts, found tokens", key,
               "send strings: this model's tokens are its own");
      to.input = texts_of(value, key, kMostInputs);
    } else if (key == "model") {
      to.model = text_of(value, key);
    } else if (key == "features") {
      to.features = features_expression(text_of(value, key));
    } else if (key == "dimensions") {
      to.dimensions = number_of(value, key, 1, kMostRows);
    } else if (key == "encoding_format") {
      const std::string format = text_of(value, key);
      if (format != "float" && format != "base64")
        refuse(fmt::format("expected float or base64, found '{}'", format.substr(0, 40)), key);
      to.base64 = format == "base64";
    }  // whatever else clients send decides about nothing here
  }
  if (to.input.empty()) refuse("expected a field 'input', found none", "input");
  return to;
}

}  // namespace fungi::service
