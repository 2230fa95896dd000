// SPDX-License-Identifier: Apache-2.0
// Lists of files and labels: CSV, TSV, JSON lines, or one path per line. Paths are relative to the
// list.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fungi/base/error.h"
#include "fungi/input/dataset_parts.h"

namespace fungi::dataset {
namespace {

namespace fs = std::filesystem;

struct Row {
  std::string path, label;
};

// Cuts delimited text into rows of cells (RFC 4180 quoting; a delimiter of 0 keeps lines whole).
// Empty lines vanish.
std::vector<std::vector<std::string>> split_cells(std::string_view text, char delimiter,
                                                  const std::string& place) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> row;
  std::string cell;
  bool quoted = false, was_quoted = false;
  const auto end_cell = [&] {
    row.push_back(std::move(cell));
    cell.clear();
    was_quoted = false;
  };
  const auto end_row = [&] {
    const bool blank = row.empty() && cell.empty() && !was_quoted;
    end_cell();
    if (!blank) rows.push_back(std::move(row));
    row.clear();
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"') {
        cell += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        cell += '"';
        ++i;
      } else {
        quoted = false;
      }
    } else if (c == '"' && delimiter && cell.empty() && !was_quoted) {
      quoted = was_quoted = true;
    } else if (delimiter && c == delimiter) {
      end_cell();
    } else if (c == '\n') {
      end_row();
    } else if (c != '\r' || (i + 1 < text.size() && text[i + 1] != '\n')) {
      cell += c;
    }
  }
  if (quoted) fail("a quoted cell is not closed", place, "end it with a double quote");
  end_row();
  return rows;
}

std::vector<Row> parse_table(std::string_view text, char delimiter, const std::string& place) {
  auto cells = split_cells(text, delimiter, place);
  if (cells.empty()) return {};
  size_t path_column = 0, label_column = 1;
  std::vector<std::string> header = cells.front();
  std::transform(header.begin(), header.end(), header.begin(), lower);
  const auto path_at = std::find_if(header.begin(), header.end(), is_path_name);
  if (path_at != header.end()) {
    path_column = size_t(path_at - header.begin());
    label_column =
        size_t(std::find_if(header.begin(), header.end(), is_label_name) - header.begin());
    cells.erase(cells.begin());
  }
  std::vector<Row> rows;
  for (const auto& row : cells) {
    if (path_column >= row.size() || row[path_column].empty())
      fail(fmt::format("row {} has no file name", rows.size() + 1), place,
           "columns are path and label, or those named in a header line");
    rows.push_back({row[path_column], label_column < row.size() ? row[label_column] : ""});
  }
  return rows;
}

std::vector<Row> parse_json_lines(std::string_view text, const std::string& place) {
  std::vector<Row> rows;
  size_t number = 0;
  for (const auto& line : split_cells(text, 0, place)) {
    ++number;
    const auto object = nlohmann::json::parse(line.front(), nullptr, false);
    if (!object.is_object()) fail(fmt::format("line {} is no JSON object", number), place);
    Row row;
    for (const auto& [key, value] : object.items()) {
      if (is_path_name(lower(key)) && value.is_string()) row.path = value.get<std::string>();
      if (!is_label_name(lower(key)) || value.is_null()) continue;
      if (!value.is_string() && !value.is_number_integer())
        fail(fmt::format("line {}: expected a name or a whole number as '{}', found {}", number,
                         key, value.type_name()),
             place);
      row.label = value.is_string() ? value.get<std::string>() : value.dump();
    }
    if (row.path.empty())
      fail(fmt::format("line {} names no file", number), place,
           "give it a key 'path', 'file' or 'image'");
    rows.push_back(std::move(row));
  }
  return rows;
}

class ListDataset final : public Dataset {
 public:
  ListDataset(const fs::path& list, const DatasetOptions& options) : folder_(list.parent_path()) {
    const std::vector<uint8_t> bytes = read_file_bytes(list);
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // byte order mark
    const std::string ext = extension(list);
    const std::string_view first_line = text.substr(0, text.find('\n'));
    const auto has = [&](char c) { return first_line.find(c) != std::string_view::npos; };
    std::vector<Row> rows;
    if (ext == "jsonl" || ext == "ndjson" || first_line.starts_with('{'))
      rows = parse_json_lines(text, list.string());
    else
      rows = parse_table(text,
                         ext == "csv"                ? ','
                         : ext == "tsv" || has('\t') ? '\t'
                         : has(',')                  ? ','
                                                     : '\0',
                         list.string());
    if (rows.empty()) fail("the list names no files", list.string());
    std::vector<std::string> texts;
    for (Row& row : rows) {
      ids_.push_back(std::move(row.path));
      texts.push_back(std::move(row.label));
    }
    class_names_ = number_labels(texts, options.class_names, list.string(), labels_);
    finish(DatasetKind::list, list);
  }

  std::vector<uint8_t> read(size_t i) const override { return read_file_bytes(folder_ / id(i)); }
  std::optional<uint64_t> stored_bytes(size_t i) const override {
    return size_of_file(folder_ / id(i));
  }

 private:
  fs::path folder_;
};

}  // namespace

std::unique_ptr<Dataset> open_list(const fs::path& path, const DatasetOptions& options) {
  if (!options.split.empty())
    fail(fmt::format("a list has no split '{}'", options.split), path.string(),
         "give one list per split");
  return std::make_unique<ListDataset>(path, options);
}

}  // namespace fungi::dataset
