// SPDX-License-Identifier: Apache-2.0
#include "fungi/input/text_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "fungi/base/error.h"
#include "fungi/base/json.h"
#include "fungi/base/utf8.h"
#include "fungi/input/dataset_parts.h"

namespace fungi::dataset {
namespace {

constexpr size_t kRowsLookedAt = 1000, kBytesLookedAt = size_t(1) << 22;

std::string trimmed(std::string_view cell) {
  const size_t first = cell.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  return std::string(cell.substr(first, cell.find_last_not_of(" \t") + 1 - first));
}

// The number of a \uXXXX at `at`; 0 where there is none.
unsigned escaped_unit(std::string_view line, size_t at) {
  unsigned value = 0;
  if (line.substr(std::min(at, line.size()), 2) != "\\u") return 0;
  const char* digits = line.data() + at + 2;
  const auto result =
      std::from_chars(digits, std::min(digits + 4, line.data() + line.size()), value, 16);
  return result.ptr == digits + 4 ? value : 0;
}

// JSON whose texts hold something else than characters, with a question mark in each such place:
// bytes that are no UTF-8, control characters, and halves of the pairs of escapes that make one
// character. `what` is the first of them.
std::string mended(std::string_view line, std::string& what) {
  const auto is_half = [](unsigned unit, unsigned first) {
    return unit >= first && unit < first + 0x400;
  };
  std::string out;
  bool quoted = false;
  for (size_t at = 0; at < line.size();) {
    if (line[at] == '"') quoted = !quoted;
    const unsigned unit = escaped_unit(line, at);
    const bool high = is_half(unit, 0xD800), low = is_half(unit, 0xDC00);
    const bool pair = high && is_half(escaped_unit(line, at + 6), 0xDC00);
    const size_t length = pair               ? 12
                          : line[at] == '\\' ? std::min<size_t>(2, line.size() - at)
                                             : utf8_length(line.substr(at));
    const bool control = quoted && static_cast<unsigned char>(line[at]) < 0x20;
    const bool half = (high && !pair) || low;
    if (what.empty() && length == 0) what = describe_bad_byte(line, at);
    if (what.empty() && control)
      what = fmt::format("expected characters, found the control character {}", int(line[at]));
    if (what.empty() && half)
      what = fmt::format("expected characters, found half of one: {}", line.substr(at, 6));
    const bool bad = length == 0 || control || half;
    out += bad ? std::string_view("?") : line.substr(at, length);
    at += half ? 6 : bad ? 1 : length;
  }
  return out;
}

nlohmann::json object_of(std::string_view record, const std::string& place,
                         std::vector<std::string>* keys, std::string& bad) {
  const auto parsed = [&](std::string_view text) {
    return keys ? parse_json(text, *keys) : parse_json(text);
  };
  nlohmann::json object = parsed(record);
  if (object.is_discarded()) object = parsed(mended(record, bad));
  if (!object.is_object())
    fail("expected a JSON object", place,
         record.starts_with('[') ? "write one object in each line, and no list around them"
                                 : "write one object in each line");
  return object;
}

// What stands there as a label or an id. Empty: nothing.
std::string name_of(const nlohmann::json& object, const std::string& key,
                    const std::string& place) {
  const auto value = object.find(key);
  if (value == object.end() || value->is_null()) return "";
  if (value->is_string()) return trimmed(value->get_ref<const std::string&>());
  if (value->is_number_integer() || value->is_boolean()) return value->dump();
  fail(fmt::format("expected a name or a whole number as '{}', found {}", key, value->type_name()),
       place, "`label_column` and `id_column` state other keys");
}

TextRow row_of_json(std::string_view record, const TextLayout& layout, const std::string& place) {
  TextRow row;
  const nlohmann::json object = object_of(record, place, nullptr, row.bad);
  const auto& [columns, keys] = std::tie(layout.columns, layout.keys);
  if (columns.label) row.label = name_of(object, keys[*columns.label], place);
  if (columns.id) row.id = name_of(object, keys[*columns.id], place);
  const auto text = object.find(keys[columns.text]);
  if (text != object.end() && text->is_string())
    row.text = text->get<std::string>();
  else if (row.bad.empty())
    row.bad = fmt::format("expected a text as '{}', found {}", keys[columns.text],
                          text == object.end() ? "nothing" : text->type_name());
  if (!row.bad.empty()) row.text = record;
  return row;
}

// A writer that has nothing more to say may leave empty cells behind, as spreadsheets do.
void require_cells(std::vector<std::string>& cells, size_t count, const Dialect& dialect,
                   const std::string& place) {
  while (cells.size() > count && cells.back().empty()) cells.pop_back();
  if (cells.size() == count) return;
  fail(
      fmt::format("expected {} cells as in the first line, found {}", count, cells.size()), place,
      dialect.format == TextFormat::quoted
          ? "put a cell that holds the separator, a quote or a line break into double quotes"
          : "a cell of a .tsv may hold no tab and no line break: write the file as .csv or .jsonl");
}

// The separator of a .csv, by its first line.
char separator_of(std::string_view line, const std::string& place) {
  const auto has = [&](char c) { return line.find(c) != std::string_view::npos; };
  if (has(';') && !has(',') && !has('\t'))
    fail(fmt::format("the first line '{}' seems to be separated by semicolons", line), place,
         "separate columns by commas or tabs");
  return has('\t') && !has(',') ? '\t' : ',';
}

Dialect dialect_of(const TextFile& file, const std::string& extension) {
  if (extension == "jsonl" || extension == "ndjson") return {TextFormat::json};
  if (extension != "csv" && extension != "tsv" && extension != "tab") return {TextFormat::lines};
  TextRecords lines(file, {TextFormat::lines});
  if (!lines.next()) return {TextFormat::tabs};
  if (extension == "csv") return {TextFormat::quoted, separator_of(lines.record(), lines.place())};
  // Where even the first cells are quoted, all are that need it.
  bool all_quoted = lines.record().find('\t') != std::string_view::npos;
  for (std::string_view rest = lines.record(); all_quoted && !rest.empty();) {
    const std::string_view cell = rest.substr(0, rest.find('\t'));
    all_quoted = cell.size() >= 2 && cell.front() == '"' && cell.back() == '"';
    rest.remove_prefix(std::min(rest.size(), cell.size() + 1));
  }
  if (all_quoted) return {TextFormat::quoted, '\t'};
  return {TextFormat::tabs};
}

std::vector<std::string> cells_of_json(const nlohmann::json& object,
                                       const std::vector<std::string>& keys) {
  std::vector<std::string> cells;
  for (const std::string& key : keys) {
    const auto value = object.find(key);
    cells.push_back(value == object.end() || value->is_null() ? ""
                    : value->is_string()                      ? value->get<std::string>()
                                                              : value->dump());
  }
  return cells;
}

}  // namespace

TextLayout layout_of(const TextFile& file, const std::string& extension,
                     const DatasetOptions& options) {
  TextLayout layout;
  layout.dialect = dialect_of(file, extension);
  if (layout.dialect.format == TextFormat::lines) {
    if (states_columns(options))
      refuse_columns("plain lines have no columns", file.name(),
                     ", or give the file the name .tsv, .csv or .jsonl");
    return layout;
  }
  TableSample sample;
  sample.place = file.name();
  TextRecords records(file, layout.dialect);
  while (sample.rows.size() < kRowsLookedAt && records.offset() < kBytesLookedAt &&
         records.next()) {
    const std::string place = records.place();
    if (layout.dialect.format == TextFormat::json) {
      std::string bad;
      const bool first = sample.rows.empty();
      const auto object = object_of(records.record(), place, first ? &sample.keys : nullptr, bad);
      if (sample.keys.empty()) fail("the first line has no keys", place, "give it a key 'text'");
      sample.rows.push_back(cells_of_json(object, sample.keys));
    } else {
      sample.rows.push_back(cells_of(records.record(), layout.dialect, place));
      require_cells(sample.rows.back(), sample.rows.front().size(), layout.dialect, place);
    }
  }
  if (sample.rows.empty()) fail("expected texts, found an empty file", file.name());
  layout.columns = choose_columns(sample, options);
  layout.keys = std::move(sample.keys);
  return layout;
}

TextRow row_of(std::string_view record, const TextLayout& layout, const std::string& place) {
  const TextColumns& columns = layout.columns;
  TextRow row;
  if (layout.dialect.format == TextFormat::json) {
    row = row_of_json(record, layout, place);
  } else {
    std::vector<std::string> cells = cells_of(record, layout.dialect, place);
    require_cells(cells, columns.count, layout.dialect, place);
    if (columns.label) row.label = trimmed(cells[*columns.label]);
    if (columns.id) row.id = trimmed(cells[*columns.id]);
    row.text = std::move(cells[columns.text]);
  }
  if (columns.id && (row.id.empty() || row.id.find('\0') != std::string::npos))
    fail("expected an id, found none", place,
         "ids name rows of the result: give each row one, or leave `id_column` out");
  return row;
}

}  // namespace fungi::dataset
