// SPDX-License-Identifier: Apache-2.0
#include "fungi/service/multipart.h"

#include <fmt/format.h>

#include <optional>

#include "fungi/base/text.h"
#include "fungi/service/refused.h"

namespace fungi::service {
namespace {

constexpr size_t kMostFields = 2048;
constexpr std::string_view kEnd = "\r\n";
constexpr char kDashes[] = {'-', '-', 0};

[[noreturn]] void broken(const std::string& what) {
  refuse("expected a body of multipart/form-data, " + what, "body",
         "send it as a browser or 'curl -F' does");
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// name=value or name="value" behind a ";".
std::optional<std::string> parameter(std::string_view header, std::string_view name) {
  size_t at = header.find(';');
  while (at != std::string_view::npos) {
    std::string_view rest = trimmed(header.substr(at + 1));
    const size_t equals = rest.find('=');
    if (equals == std::string_view::npos) return {};
    const std::string key = lower(std::string(trimmed(rest.substr(0, equals))));
    rest = trimmed(rest.substr(equals + 1));
    std::string value;
    size_t end = 0;
    if (rest.starts_with('"')) {
      // A file name may hold anything; a backslash stands before quotes alone, as browsers have it.
      for (end = 1; end < rest.size() && rest[end] != '"'; ++end) {
        if (rest[end] == '\\' && end + 1 < rest.size() && rest[end + 1] == '"') ++end;
        value += rest[end];
      }
      if (end == rest.size()) return {};
      end = rest.find(';', end);
    } else {
      end = rest.find(';');
      value = trimmed(rest.substr(0, end));
    }
    if (key == name) return value;
    at = end == std::string_view::npos ? end : size_t(rest.data() - header.data()) + end;
  }
  return {};
}

void read_headers(std::string_view head, FormField& field) {
  bool named = false;
  while (!head.empty()) {
    const size_t end = head.find(kEnd);
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end == std::string_view::npos ? head.size() : end + kEnd.size());
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) broken("found a part whose head has a line without ':'");
    std::string name = lower(std::string(trimmed(line.substr(0, colon))));
    if (name.compare("content-disposition") != 0) continue;
    const std::string_view value = line.substr(colon + 1);
    if (const auto said = parameter(value, "name")) field.name = *said, named = true;
    if (const auto said = parameter(value, "filename")) field.file_name = *said, field.is_file = true;
  }
  if (!named) broken("found a part without a name");
}

}  // namespace

std::string media_type(std::string_view content_type) {
  return lower(std::string(trimmed(content_type.substr(0, content_type.find(';')))));
}

std::vector<FormField> read_multipart(std::string_view content_type, std::string_view body) {
  const auto boundary = parameter(content_type, "boundary");
  if (!boundary || boundary->empty() || boundary->size() > 200) broken("found no boundary");
  const std::string mark = kDashes + *boundary, next = "\r\n" + mark;
  if (!body.starts_with(mark)) {
    const size_t first = body.find(next);
    if (first == std::string_view::npos) broken("found none of its boundaries");
    body.remove_prefix(first + kEnd.size());
  }
  body.remove_prefix(mark.size());
  std::vector<FormField> fields;
  while (!body.starts_with(kDashes)) {
    if (fields.size() == kMostFields)
      broken(fmt::format("found more than {} fields", kMostFields));
    while (body.starts_with(' ') || body.starts_with('\t')) body.remove_prefix(1);
    if (!body.starts_with(kEnd)) broken("found no end of the line behind a boundary");
    const size_t head = body.find("\r\n\r\n");
    if (head == std::string_view::npos) broken("found a part without an end of its head");
    FormField field;
    read_headers(head < kEnd.size() ? std::string_view() : body.substr(kEnd.size(), head - kEnd.size()),
                 field);
    body.remove_prefix(head + 4);
    const size_t end = body.find(next);
    if (end == std::string_view::npos) broken("found a part without an end: it was cut off");
    field.value = body.substr(0, end);
    fields.push_back(std::move(field));
    body.remove_prefix(end + next.size());
  }
  return fields;
}

}  // namespace fungi::service
