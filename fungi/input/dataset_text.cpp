// SPDX-License-Identifier: Apache-2.0
// Texts: tables whose cells are the texts, plain lines, .txt files and archives of them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unordered_map>

#include "fungi/base/error.h"
#include "fungi/base/random.h"
#include "fungi/input/dataset_parts.h"
#include "fungi/input/text_rows.h"

namespace fungi::dataset {
namespace {

namespace fs = std::filesystem;

// Opening goes through the file once and keeps of each row where it begins, a sum of its text, its
// label and its id.
class TextDataset final : public Dataset {
 public:
  TextDataset(const fs::path& path, const DatasetOptions& options)
      : file_(path), layout_(layout_of(file_, extension(path), options)) {
    samples_ = SampleKind::text;
    notes_ = layout_.columns.notes;
    index(options.class_names);
    if (layout_.columns.id) require_different();
    if (ids_.empty())
      fail("expected texts, found a file without any", file_.name(),
           layout_.columns.header ? "write rows below the header" : "write one in each line");
    finish(DatasetKind::list, path);
  }

  std::vector<uint8_t> read(size_t i) const override {
    id(i);  // an Error where there is none
    const std::string bytes = file_.read(offsets_[i], offsets_[i + 1]);
    const auto length = record_length(bytes, layout_.dialect, /*last=*/true);
    const TextRow row = row_again(std::string_view(bytes).substr(0, length.value_or(0)), i);
    if (fnv1a64(row.text) != sums_[i]) fail_changed();
    return {row.text.begin(), row.text.end()};
  }
  Sample decode(size_t i, std::span<const uint8_t> bytes, const DecodeOptions&) const override {
    if (const auto bad = bad_.find(i); bad != bad_.end())
      fail(line_says(i, bad->second), id(i), "write it anew");
    Text text{std::string(bytes.begin(), bytes.end())};
    try {
      check(text, id(i));
    } catch (const Error& error) {
      throw Error(line_says(i, error.message()), error.place(), error.hint());
    }
    return text;
  }
  std::string key(size_t i) const override {
    id(i);
    return sum_key(sums_[i]);
  }

 private:
  // A label by the first row that has it.
  struct Labels {
    std::vector<std::string> texts;
    std::vector<uint64_t> lines;
    std::unordered_map<std::string, int> numbers;
    int number(std::string text, uint64_t line) {
      const auto [at, fresh] = numbers.emplace(std::move(text), int(texts.size()));
      if (fresh) texts.push_back(at->first), lines.push_back(line);
      return at->second;
    }
  };

  void index(const std::vector<std::string>& class_names) {
    TextRecords records(file_, layout_.dialect);
    Labels labels;
    size_t empty = 0;
    bool header = layout_.columns.header;
    while (records.next()) {
      if (std::exchange(header, false)) continue;
      TextRow row = row_of(records.record(), layout_, records.place());
      if (!row.bad.empty()) bad_.emplace(offsets_.size(), std::move(row.bad));
      offsets_.push_back(records.offset());
      sums_.push_back(fnv1a64(row.text));
      empty += row.text.empty();
      if (layout_.columns.label) labels_.push_back(labels.number(row.label, records.line()));
      if (layout_.columns.id) lines_.push_back(records.line());
      ids_.push_back(layout_.columns.id ? std::move(row.id) : std::to_string(records.line()));
    }
    offsets_.push_back(records.offset());
    if (empty) notes_.push_back(fmt::format("{} text(s) are empty", empty));
    if (layout_.dialect.format == TextFormat::lines && records.left_out())
      notes_.push_back(fmt::format("{} blank line(s) were left out", records.left_out()));
    number(labels, class_names);
  }

  void number(const Labels& labels, const std::vector<std::string>& class_names) {
    if (!layout_.columns.label) {
      labels_.assign(ids_.size(), -1);
      return;
    }
    std::vector<int> numbers;
    class_names_ = number_labels(
        labels.texts, class_names,
        [&](size_t k) { return fmt::format("{}, line {}", file_.name(), labels.lines[k]); },
        numbers);
    for (int& label : labels_) label = numbers[size_t(label)];
  }

  void require_different() const {
    std::unordered_map<std::string_view, size_t> rows;
    for (size_t i = 0; i < ids_.size(); ++i)
      if (const auto [at, fresh] = rows.emplace(ids_[i], i); !fresh)
        fail(fmt::format("sample id '{}' occurs twice, in the lines {} and {}", ids_[i],
                         lines_[at->second], lines_[i]),
             file_.name(),
             "ids name rows of the result: give each row another, or leave out "
             "`id_column`");
  }

  // What was a row when the file was opened is one still, unless the file has changed.
  TextRow row_again(std::string_view record, size_t i) const try {
    return row_of(record, layout_, line_says(i, file_.name()));
  } catch (const Error&) {
    fail_changed();
  }
  [[noreturn]] void fail_changed() const {
    throw Exhausted("the file has changed since it was opened", file_.name(),
                    "repeat the command: rows whose text is the same are kept");
  }

  std::string line_says(size_t i, const std::string& what) const {
    return fmt::format("line {}: {}", lines_.empty() ? id(i) : std::to_string(lines_[i]), what);
  }

  TextFile file_;
  TextLayout layout_;
  std::vector<uint64_t> offsets_;  // of each row, and of the end
  std::vector<uint64_t> sums_;
  std::vector<uint64_t> lines_;                  // where ids are not the lines
  std::unordered_map<size_t, std::string> bad_;  // rows without a text, and why
};

bool is_table(const fs::path& file) {
  const std::string ext = extension(file);
  return ext == "csv" || ext == "tsv" || ext == "tab" || ext == "jsonl" || ext == "ndjson";
}

// Of a folder that holds lists, the one that is meant.
std::optional<fs::path> list_inside(const fs::path& folder, const std::string& split) {
  std::vector<fs::path> lists, of_split;
  for (const fs::directory_entry& entry : list_folder(folder)) {
    if (!is_table(entry.path()) || entry.is_directory()) continue;
    lists.push_back(entry.path());
    if (entry.path().stem() == split) of_split.push_back(entry.path());
  }
  std::vector<std::string> names;
  for (const fs::path& list : lists) names.push_back(list.filename().string());
  const auto& chosen = split.empty() ? lists : of_split;
  if (lists.empty() || (chosen.empty() && fs::is_directory(folder / split))) return {};
  if (chosen.size() == 1) return chosen.front();
  fail(split.empty() ? fmt::format("expected one list of texts, found {}: {}", lists.size(),
                                   fmt::join(names, ", "))
                     : fmt::format("expected one list '{}', found {} among {}", split,
                                   chosen.size(), fmt::join(names, ", ")),
       folder.string(), "give one of the files, or its name without the ending as `split`");
}

DatasetKind kind_of(const fs::path& path) {
  const std::string ext = extension(path), name = path.filename().string();
  if (fs::is_directory(path)) {
    if (contains_sample(path, SampleKind::text)) return DatasetKind::automatic;
    for (const fs::directory_entry& entry : list_folder(path))
      if (is_tar_extension(extension(entry.path()))) return DatasetKind::tar;
    return DatasetKind::automatic;
  }
  if (is_tar_extension(ext)) return DatasetKind::tar;
  if (is_table(path) || ext == "txt" || ext == "lst" || path == kStandardInput ||
      !fs::is_regular_file(path))
    return DatasetKind::list;
  fail(fmt::format("expected a data set of texts, found a file '{}' of unknown kind", name),
       path.string(),
       "give a .tsv, .csv or .jsonl file, plain lines (.txt; of another name with `kind=list`), a "
       "folder of .txt files or .tar shards");
}

}  // namespace

std::unique_ptr<Dataset> open_texts(const fs::path& path, const DatasetOptions& options) {
  DatasetOptions chosen = options;
  const bool maybe_list =
      options.kind == DatasetKind::automatic || options.kind == DatasetKind::list;
  if (maybe_list && fs::is_directory(path))
    if (const auto list = list_inside(path, options.split)) {
      chosen.split.clear();
      return open_texts(*list, chosen);
    }
  if (chosen.kind == DatasetKind::automatic) chosen.kind = kind_of(path);
  if (chosen.kind == DatasetKind::list) {
    refuse_split(path, options.split);
    return std::make_unique<TextDataset>(path, options);
  }
  if (states_columns(options)) refuse_columns("only lists have columns", path.string());
  if (chosen.kind == DatasetKind::tar) return open_tar(path, chosen);
  if (chosen.kind == DatasetKind::cifar || chosen.kind == DatasetKind::idx)
    fail(fmt::format("data sets of the kind {} hold pictures, and the model reads texts",
                     to_string(chosen.kind)),
         path.string(), "leave out `kind`");
  return open_folder(path, chosen);
}

}  // namespace fungi::dataset
