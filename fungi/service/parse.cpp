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

// What one field says, in JSON or in a form.
class Said {
 public:
  virtual ~Said() = default;
  virtual std::string text() const = 0;
  virtual size_t number(size_t least, size_t most) const = 0;
  virtual std::vector<std::string> texts(size_t most) const = 0;  // a form says one at a time
  virtual std::string bytes() const = 0;                          // of a file
};

class SaidInJson final : public Said {
 public:
  SaidInJson(const std::string& param, const Json& value) : param_(param), value_(value) {}
  std::string text() const override { return text_of(value_, param_); }
  size_t number(size_t least, size_t most) const override {
    return number_of(value_, param_, least, most);
  }
  std::vector<std::string> texts(size_t most) const override {
    return texts_of(value_, param_, most);
  }
  std::string bytes() const override { return read_base64(text(), param_); }

 private:
  const std::string& param_;
  const Json& value_;
};

class SaidInForm final : public Said {
 public:
  explicit SaidInForm(const FormField& field) : field_(field) {}
  std::string text() const override {
    require_utf8(field_.value, field_.name);
    return std::string(field_.value);
  }
  size_t number(size_t least, size_t most) const override {
    return parse_number(text(), field_.name, least, most);
  }
  std::vector<std::string> texts(size_t) const override { return {text()}; }
  std::string bytes() const override { return std::string(field_.value); }

 private:
  const FormField& field_;
};

// Takes field after field; a second question is refused.
class Asked {
 public:
  void take(const std::string& key, const Said& said) {
    SearchRequest& s = to_.search;
    if (key == "row")
      put(Kind::row, key).row = said.number(0, kMostRows);
    else if (key == "id")
      put(Kind::row, key), to_.row_id = said.text();
    else if (key == "text")
      put(Kind::text, key).bytes = said.text();
    else if (key == "image" || key == "file")
      put(Kind::image, key).bytes = said.bytes(), to_.any_file = key == "file";
    else if (key == "sound")
      put(Kind::sound, key).bytes = said.bytes();
    else if (key == "name")
      s.question.id = said.text();
    else if (key == "store")
      s.store = said.text();
    else if (key == "k")
      s.k = said.number(1, kMostNeighbours);
    else if (key == "features")
      add(s.features, said, key, kMostSearches);
    else if (key == "classes")
      add(s.classes, said, key, kMostClasses);
    else if (key == "effort")
      s.search.effort = said.number(0, kMostEffort);
    else if (key == "probes")
      s.search.probes = said.number(0, kMostEffort);
    else
      refuse(fmt::format("there is no field '{}'", key.substr(0, 40)), key.substr(0, 40),
             "/openapi.json has those there are");
  }
  // Of a file in a form, unless it is given another.
  void name(const std::string& file) {
    if (to_.search.question.id.empty()) to_.search.question.id = file;
  }
  ParsedSearch result() && {
    if (first_.empty())
      refuse("expected a question, found none", "body",
             "send one of row, id, text, image, sound and file");
    std::vector<std::string>& features = to_.search.features;
    if (features.empty()) features = {""};
    for (std::string& one : features) one = features_expression(one);
    return std::move(to_);
  }

 private:
  Question& put(Kind kind, const std::string& param) {
    if (!first_.empty())
      refuse(fmt::format("expected one question, found '{}' and '{}'", first_, param), param,
             "send one of row, id, text, image, sound and file");
    first_ = param;
    to_.search.question.kind = kind;
    return to_.search.question;
  }
  static void add(std::vector<std::string>& to, const Said& said, const std::string& param,
                  size_t most) {
    for (std::string& one : said.texts(most)) to.push_back(std::move(one));
    if (to.size() > most) refuse(fmt::format("expected at most {}, found more", most), param);
  }

  ParsedSearch to_{.search = {.features = {}}};
  std::string first_;
};

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
  Asked asked;
  const std::string type = media_type(request.content_type);
  if (type == "multipart/form-data") {
    for (const FormField& field : read_multipart(request.content_type, request.body)) {
      require_utf8(field.name, "body");
      require_utf8(field.file_name, field.name);
      asked.take(field.name, SaidInForm(field));
      if (field.is_file) asked.name(field.file_name);
    }
  } else if (type == "application/json") {
    const Json body = parse_object(request);
    for (const auto& [key, value] : body.items()) asked.take(key, SaidInJson(key, value));
  } else {
    throw Refused(415, "expected application/json or multipart/form-data, found another type",
                  "say so with Content-Type", 0, "body");
  }
  return std::move(asked).result();
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
