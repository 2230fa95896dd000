// SPDX-License-Identifier: Apache-2.0
// Lists of files and labels: CSV, TSV, JSON lines, or one path per line. Paths are relative to the
// list.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <unordered_map>

#include "fungi/base/error.h"
#include "fungi/base/json.h"
#include "fungi/input/dataset_parts.h"

namespace fungi::dataset {
namespace {

namespace fs = std::filesystem;

struct Row {
  std::string path, label, fold;
  size_t line = 0;  // where it begins
};

struct Cells {
  std::vector<std::string> row;
  size_t line = 0;
};

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? ""
                                    : text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

// Cuts delimited text into rows of cells (RFC 4180 quoting; a delimiter of 0 keeps lines whole).
// Blanks around a cell vanish unless they are quoted; so do empty lines. Text behind a closing
// quote, as captions have it, belongs to the cell. Lines end as on any system: LF, CR LF (its
// second half ends an empty line), or CR alone.
std::vector<Cells> split_cells(std::string_view text, char delimiter, const std::string& place) {
  std::vector<Cells> rows;
  size_t line = 1, begun = 1;
  std::vector<std::string> row;
  std::string cell;
  bool quoted = false, was_quoted = false;
  size_t closed = 0;  // length of a cell at its closing quote
  const auto end_cell = [&] {
    if (was_quoted && cell.find_first_not_of(" \t", closed) == std::string::npos)
      cell.resize(closed);
    row.push_back(delimiter && !was_quoted ? trimmed(cell) : std::move(cell));
    cell.clear();
    was_quoted = false;
  };
  const auto end_row = [&] {
    const bool blank = row.empty() && trimmed(cell).empty() && !was_quoted;
    end_cell();
    if (!blank) rows.push_back({std::move(row), begun});
    row.clear();
    begun = line;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    line += c == '\n' || (c == '\r' && text.substr(i + 1, 1) != "\n");
    if (quoted) {
      if (c != '"') {
        cell += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        cell += '"';
        ++i;
      } else {
        quoted = false;
        closed = cell.size();
      }
    } else if (c == '\n' || c == '\r') {
      end_row();
    } else if (delimiter && c == delimiter) {
      end_cell();
    } else if (c == '"' && delimiter && !was_quoted &&
               cell.find_first_not_of(' ') == std::string::npos) {
      cell.clear();
      quoted = was_quoted = true;
    } else {
      cell += c;
    }
  }
  if (quoted) fail("a quoted cell is not closed", place, "end it with a double quote");
  end_row();
  return rows;
}

// What a list is of, and where its files are.
struct ListPlace {
  fs::path list, folder;
  SampleKind samples;
  bool is_path(const std::string& name) const {
    return is_sample_extension(samples, extension(name));
  }
  bool is_there(const std::string& name) const {
    std::error_code ignored;
    return fs::is_regular_file(folder / name, ignored);
  }
};

struct Columns {
  bool header = false;
  size_t path = 0, label = 1, fold = size_t(-1);  // a column beyond the last: there is none
};

// What the first line says. It is data when its first cell has an image's extension or is a file,
// else a header, whose names must be known: a guess would make a sample of the header, or drop the
// labels, without a word.
Columns read_columns(const std::vector<std::string>& first, const ListPlace& place) {
  const fs::path& list = place.list;
  // What spreadsheets write where the comma is for decimals. A file may have such a name.
  if (first.size() == 1 && first.front().find(';') != std::string::npos &&
      !place.is_there(first.front()))
    fail(fmt::format("the first line '{}' seems to be separated by semicolons", first.front()),
         list.string(), "separate columns by commas or tabs");
  if (place.is_path(first.front())) return {};
  std::vector<std::string> header;
  for (const std::string& cell : first) header.push_back(lower(trimmed(cell)));
  const auto column = [&](bool (*wanted)(std::string_view)) {
    return size_t(std::find_if(header.begin(), header.end(), wanted) - header.begin());
  };
  Columns named{true, column(is_path_name), column(is_label_name), column(is_fold_name)};
  const size_t count = header.size();
  if (named.path == count && place.is_there(first.front())) return {};
  // ESC-50 has both, a number and a name.
  if (const auto name = std::find(header.begin(), header.end(), "category");
      place.samples == SampleKind::sound && name != header.end())
    named.label = size_t(name - header.begin());
  const std::string found = fmt::format("'{}'", fmt::join(first, "', '"));
  if (named.path == count)
    fail(fmt::format("the first line is {}: the first cell is no {} file, and no column has a "
                     "known name",
                     found, to_string(place.samples)),
         list.string(),
         "separate columns by commas or tabs and name them in the first line: " + known_names());
  const bool others = std::any_of(header.begin(), header.end(), [](const std::string& name) {
    static const std::set<std::string_view> no_labels{"",      "index", "id",
                                                      "split", "width", "height"};
    return !no_labels.count(name) && !name.starts_with("unnamed:") && !is_path_name(name) &&
           !is_fold_name(name);
  });
  if (named.label == count && others)
    fail(fmt::format("the columns are {}: none has a known name for the label", found),
         list.string(),
         fmt::format("rename the one with the label ({}), or leave only '{}' when there is none",
                     known_names(), first[named.path]));
  return named;
}

// A header names all columns; without one there are path and label. What stands beyond them would
// be lost: the rest of a label with a comma, say.
void require_no_more_cells(const Cells& line, size_t columns, bool header, const fs::path& list) {
  const auto empty = [](const std::string& cell) { return cell.empty(); };
  const auto& row = line.row;
  if (row.size() <= columns || std::all_of(row.begin() + std::ptrdiff_t(columns), row.end(), empty))
    return;
  fail(fmt::format("line {} has {} cells, '{}'; {}", line.line, row.size(), fmt::join(row, "', '"),
                   header ? fmt::format("the header names {}", columns)
                          : "a line without a header has two, path and label"),
       list.string(),
       "put a cell that holds the separator into double quotes, or name all columns in the first "
       "line");
}

// "path label", as the lists of ImageNet are: the label is the last word, so that paths may hold
// blanks. A line that ends like an image, or is a file, is a path alone.
bool separated_by_blanks(const std::string& first, const ListPlace& place) {
  const std::string line = trimmed(first);
  const size_t blank = line.rfind(' ');
  if (blank == std::string::npos || place.is_path(line) || place.is_there(line)) return false;
  const std::string path = trimmed(line.substr(0, blank));
  return place.is_path(path) ||
         (is_path_name(lower(path)) && is_label_name(lower(line.substr(blank + 1))));
}

void cut_at_last_blank(Cells& cells, const ListPlace& place) {
  const fs::path& list = place.list;
  const std::string line = trimmed(cells.row.front());
  const size_t blank = line.rfind(' ');
  if (blank == std::string::npos || place.is_path(line))
    fail(fmt::format("line {} has no label: '{}'", cells.line, line), list.string(),
         "the first line has path and label with a blank between them: write all like that, or "
         "separate them by commas or tabs");
  cells.row = {trimmed(line.substr(0, blank)), line.substr(blank + 1)};
  for (size_t at = 0; (at = cells.row[0].find(' ', at)) != std::string::npos; ++at)
    if (place.is_path(cells.row[0].substr(0, at)) && !place.is_path(cells.row[0]))
      fail(fmt::format("line {} has more than a path and a label: '{}'", cells.line, line),
           list.string(), "separate labels of several words from the path by a tab");
}

// What the name of the list says, unless the first line holds the other one alone and is no path.
// 0: none.
char separator(std::string_view first_line, const ListPlace& place) {
  const std::string ext = extension(place.list);
  const auto has = [&](char c) { return first_line.find(c) != std::string_view::npos; };
  if (ext == "csv") return has('\t') && !has(',') ? '\t' : ',';
  if (ext == "tsv")
    return has(',') && !has('\t') && !place.is_path(std::string(first_line)) ? ',' : '\t';
  return has('\t') ? '\t' : has(',') ? ',' : '\0';
}

std::vector<Row> parse_table(std::string_view text, char delimiter, const ListPlace& place) {
  const fs::path& list = place.list;
  auto cells = split_cells(text, delimiter, list.string());
  if (cells.empty()) return {};
  if (!delimiter && separated_by_blanks(cells.front().row.front(), place))
    for (Cells& line : cells) cut_at_last_blank(line, place);
  const Columns columns = read_columns(cells.front().row, place);
  const size_t most = columns.header ? cells.front().row.size() : 2;
  if (columns.header) cells.erase(cells.begin());
  std::vector<Row> rows;
  for (const Cells& cell : cells) {
    require_no_more_cells(cell, most, columns.header, list);
    const auto& [row, line] = cell;
    if (columns.path >= row.size() || row[columns.path].empty())
      fail(fmt::format("line {} has no file name", line), list.string(),
           "columns are path and label, or those named in a header line");
    const auto cell_of = [&row = row](size_t column) {
      return column < row.size() ? row[column] : std::string();
    };
    rows.push_back({row[columns.path], cell_of(columns.label), cell_of(columns.fold), line});
  }
  return rows;
}

// `others`: keys that name neither file nor label.
std::vector<Row> parse_json_lines(std::string_view text, const std::string& place,
                                  std::set<std::string>& others) {
  std::vector<Row> rows;
  std::vector<std::string> keys;
  for (const auto& [cells, number] : split_cells(text, 0, place)) {
    const auto object = parse_json(cells.front(), keys);
    if (!object.is_object()) fail(fmt::format("line {} is no JSON object", number), place);
    Row row{.path = "", .label = "", .fold = "", .line = number};
    for (const std::string& key : keys) {
      if (is_fold_name(lower(key)) && row.fold.empty())
        row.fold = object[key].is_string() ? object[key].get<std::string>() : object[key].dump();
      else if (!is_path_name(lower(key)) && !is_label_name(lower(key)))
        others.insert(key);
      if (is_path_name(lower(key)) && row.path.empty() && object[key].is_string())
        row.path = object[key].get<std::string>();
    }
    for (const std::string& key : keys) {
      const auto& value = object[key];
      if (!is_label_name(lower(key)) || value.is_null() || !row.label.empty()) continue;
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

void require_different(const std::vector<Row>& rows, const std::string& place) {
  std::unordered_map<std::string_view, size_t> lines;
  for (const Row& row : rows)
    if (const auto [at, fresh] = lines.emplace(row.path, row.line); !fresh)
      fail(fmt::format("sample id '{}' occurs twice, in the lines {} and {}", row.path, at->second,
                       row.line),
           place, "ids name rows of the result: remove the second one");
}

// `fold`: the one that is wanted, or "!" and the one that is not.
void take_fold(std::vector<Row>& rows, const std::string& fold, const std::string& place) {
  if (fold.empty()) return;
  const bool others = fold.starts_with('!');
  const std::string wanted = fold.substr(others);
  std::set<std::string> found;
  for (const Row& row : rows)
    if (!row.fold.empty()) found.insert(row.fold);
  if (found.empty())
    fail("the list has no folds", place, "name a column 'fold' or 'split', or leave out `fold`");
  if (!found.contains(wanted))
    fail(fmt::format("there is no fold '{}'; there are {}", wanted, fmt::join(found, ", ")), place);
  std::erase_if(rows, [&](const Row& row) { return (row.fold == wanted) == others; });
  if (rows.empty()) fail(fmt::format("no row is left of the folds but '{}'", wanted), place);
}

class ListDataset final : public Dataset {
 public:
  ListDataset(const fs::path& list, const DatasetOptions& options, const fs::path& folder)
      : folder_(folder.empty() ? list.parent_path() : folder) {
    samples_ = options.samples, seconds_ = options.seconds;
    const ListPlace place{list, folder_, samples_};
    const std::vector<uint8_t> bytes = read_file_bytes(list);
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // byte order mark
    if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff") ||
        text.substr(0, 2).find('\0') != std::string_view::npos)
      fail("expected UTF-8 text, found UTF-16", list.string(),
           "save it as UTF-8: 'iconv -f UTF-16 -t UTF-8 LIST > NEW'");
    const std::string ext = extension(list);
    const std::string_view first_line = text.substr(0, text.find_first_of("\r\n"));
    std::vector<Row> rows;
    std::set<std::string> other_keys;
    if (ext == "jsonl" || ext == "ndjson" || first_line.starts_with('{'))
      rows = parse_json_lines(text, list.string(), other_keys);
    else
      rows = parse_table(text, separator(first_line, place), place);
    if (rows.empty()) fail("the list names no files", list.string());
    require_different(rows, list.string());
    std::vector<std::string> all_labels;  // of all folds: their classes are the same
    for (const Row& row : rows) all_labels.push_back(row.label);
    take_fold(rows, options.fold, list.string());
    const auto unlabelled = [](const Row& row) { return row.label.empty(); };
    if (!other_keys.empty() && std::all_of(rows.begin(), rows.end(), unlabelled))
      notes_.push_back(
          fmt::format("no line gives a label: of the keys '{}' none has a known name ({})",
                      fmt::join(other_keys, "', '"), known_names()));
    std::vector<std::string> texts;
    for (Row& row : rows) {
      ids_.push_back(std::move(row.path));
      texts.push_back(std::move(row.label));
    }
    std::vector<std::string> names = options.class_names;
    if (std::vector<int> numbers; names.empty() && !options.fold.empty())
      names = number_labels(all_labels, {}, list.string(), numbers);
    class_names_ = number_labels(
        texts, names,
        [&](size_t i) { return fmt::format("{}, line {}", list.string(), rows[i].line); }, labels_);
    finish(DatasetKind::list, list);
  }

  std::vector<uint8_t> read(size_t i) const override { return read_sample(folder_ / id(i)); }
  std::optional<uint64_t> stored_bytes(size_t i) const override {
    return size_of_file(folder_ / id(i));
  }
  fs::path file(size_t i) const override { return folder_ / id(i); }

 private:
  fs::path folder_;
};

}  // namespace

std::unique_ptr<Dataset> open_list(const fs::path& path, const DatasetOptions& options,
                                   const fs::path& folder) {
  if (!options.split.empty())
    fail(fmt::format("a list has no split '{}'", options.split), path.string(),
         "give one list per split");
  return std::make_unique<ListDataset>(path, options, folder);
}

}  // namespace fungi::dataset
