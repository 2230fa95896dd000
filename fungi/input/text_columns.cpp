// SPDX-License-Identifier: Apache-2.0
// Columns are found by what the caller states, else by known names in the first row, else by the
// shape of the first rows: texts are long and differ, labels are few.
#include "fungi/input/text_columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <span>

#include "fungi/base/error.h"
#include "fungi/base/text.h"

namespace fungi::dataset {
namespace {

// The first of them that is there counts.
constexpr std::string_view kTextNames[] = {
    "text",     "sentence", "content",     "utterance", "question", "query",
    "review",   "tweet",    "document",    "comment",   "message",  "body",
    "headline", "title",    "description", "abstract",  "passage",  "phrase",
    "prompt",   "input",    "sms",         "sentence1", "question1"};
constexpr std::string_view kTextLabelNames[] = {
    "label", "labels",    "class",   "category", "intent",       "target",     "cls",
    "topic", "sentiment", "emotion", "polarity", "coarse_label", "fine_label", "label_text"};
constexpr std::string_view kNone = "none";

std::string plain(std::string_view cell) {
  const size_t first = cell.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  return lower(std::string(cell.substr(first, cell.find_last_not_of(" \t") + 1 - first)));
}

// What is to be said of a column.
struct Shape {
  double length = 0;    // mean, in bytes
  size_t distinct = 0;  // cells that differ
};

class Chooser {
 public:
  Chooser(const TableSample& sample, const DatasetOptions& options) : sample_(sample) {
    const auto& first = sample.keys.empty() ? sample.rows.front() : sample.keys;
    for (const std::string& cell : first) names_.push_back(plain(cell));
    columns_.count = names_.size();
    columns_.header = sample.keys.empty() && has_header(options);
    text_ = find("text_column", options.text_column);
    if (plain(options.label_column) != kNone)
      columns_.label = find("label_column", options.label_column);
    if (plain(options.id_column) != kNone) columns_.id = find("id_column", options.id_column);
    require_different();
    measure();
    const bool guess_text = !text_, guess_label = options.label_column.empty();
    const bool by_shape = guess_text && !choose_text_by_name();
    if (by_shape) choose_text_by_shape();
    columns_.text = *text_;
    if (guess_label && !choose_label_by_name() && (by_shape || !has_names()))
      choose_label_by_shape();
    if (guess_text || guess_label) note(by_shape);
  }

  TextColumns columns() && { return std::move(columns_); }

 private:
  bool has_names() const { return columns_.header || !sample_.keys.empty(); }
  bool is_taken(size_t column) const {
    return column == text_ || column == columns_.label || column == columns_.id;
  }
  std::string found() const {
    const auto& first = sample_.keys.empty() ? sample_.rows.front() : sample_.keys;
    constexpr size_t kShown = 20;
    std::string list;
    for (const std::string& cell : std::span(first).first(std::min(first.size(), kShown)))
      list += fmt::format("{}'{}'", list.empty() ? "" : ", ",
                          cell.size() > 40 ? cell.substr(0, 37) + "..." : cell);
    if (first.size() > kShown) list += fmt::format(" and {} more", first.size() - kShown);
    return list;
  }
  std::string said(size_t column) const {
    return has_names() ? fmt::format("'{}'", names_[column]) : fmt::format("{}", column + 1);
  }

  std::optional<size_t> named(std::string_view stated) const {
    const auto at = std::find(names_.begin(), names_.end(), plain(stated));
    if (stated.empty() || at == names_.end()) return {};
    return size_t(at - names_.begin());
  }
  static std::optional<size_t> number(const std::string& stated) {
    size_t value = 0;
    const char* end = stated.data() + stated.size();
    const auto result = std::from_chars(stated.data(), end, value);
    if (result.ec != std::errc() || result.ptr != end) return {};
    return value;
  }

  std::optional<size_t> find(const char* option, const std::string& stated) const {
    if (stated.empty()) return {};
    if (has_names())
      if (const auto at = named(stated)) return at;
    const auto at = number(stated);
    if (at && *at >= 1 && *at <= columns_.count && sample_.keys.empty()) return *at - 1;
    fail(
        fmt::format("there is no column '{}'; the first line is {}", stated, found()),
        sample_.place,
        fmt::format(
            "give `{}` a name of the first line{}", option,
            sample_.keys.empty() ? fmt::format(", or a number from 1 to {}", columns_.count) : ""));
  }

  void require_different() const {
    const std::optional<size_t> all[] = {text_, columns_.label, columns_.id};
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = 0; j < i; ++j)
        if (all[i] && all[i] == all[j])
          fail(fmt::format("the column {} is stated twice", said(*all[i])), sample_.place,
               "`text_column`, `label_column` and `id_column` are three different ones");
  }

  // A header is a first row that has a stated name, or a known one for the text where not all of
  // its known names occur again below; or one of words that do not occur again, above rows that
  // have texts. A class may be called "question": its name does occur again.
  bool has_header(const DatasetOptions& options) const {
    for (const std::string* stated :
         {&options.text_column, &options.label_column, &options.id_column})
      if (named(*stated) && !(plain(*stated) == kNone)) return true;
    bool names_text = false, differs = false;
    for (size_t c = 0; c < names_.size(); ++c) {
      const bool of_text = std::ranges::count(kTextNames, names_[c]) > 0;
      const bool of_label = std::ranges::count(kTextLabelNames, names_[c]) > 0;
      names_text = names_text || of_text;
      differs = differs || ((of_text || of_label) && !recurs(c));
    }
    if (names_text && differs) return true;
    constexpr size_t kRows = 3, kLongest = 30;
    if (names_.size() < 2 || sample_.rows.size() <= kRows) return false;
    for (size_t c = 0; c < names_.size(); ++c) {
      const std::string& name = names_[c];
      const auto in_names = [](char x) {
        return (x >= 'a' && x <= 'z') || (x >= '0' && x <= '9') || x == '_' || x == '-' || x == '.';
      };
      if (name.empty() || name.size() > kLongest || name[0] < 'a' || name[0] > 'z' ||
          !std::all_of(name.begin(), name.end(), in_names) || recurs(c))
        return false;
    }
    const auto has_text = [](const std::vector<std::string>& row) {
      return std::any_of(row.begin(), row.end(),
                         [](const auto& cell) { return cell.find(' ') != std::string::npos; });
    };
    return 2 * size_t(std::count_if(sample_.rows.begin() + 1, sample_.rows.end(), has_text)) >=
           sample_.rows.size();
  }
  bool recurs(size_t column) const {
    for (size_t r = 1; r < sample_.rows.size(); ++r)
      if (plain(sample_.rows[r][column]) == names_[column]) return true;
    return false;
  }

  void measure() {
    const size_t first = columns_.header ? 1 : 0;
    shapes_.resize(columns_.count);
    for (size_t c = 0; c < columns_.count; ++c) {
      std::set<std::string_view> cells;
      for (size_t r = first; r < sample_.rows.size(); ++r) {
        cells.insert(sample_.rows[r][c]);
        shapes_[c].length += double(sample_.rows[r][c].size());
      }
      shapes_[c].distinct = cells.size();
    }
    rows_ = sample_.rows.size() - first;
  }

  bool choose_text_by_name() {
    if (!has_names()) return false;
    for (const std::string_view name : kTextNames)
      if (const auto at = named(name); at && !is_taken(*at)) {
        text_ = at;
        return true;
      }
    return false;
  }
  bool choose_label_by_name() {
    if (!has_names()) return false;
    for (const std::string_view name : kTextLabelNames)
      if (const auto at = named(name); at && !is_taken(*at)) {
        columns_.label = at;
        return true;
      }
    return false;
  }

  void choose_text_by_shape() {
    for (size_t c = 0; c < columns_.count; ++c)
      if (!is_taken(c) && (!text_ || shapes_[c].length > shapes_[*text_].length)) text_ = c;
    if (!text_)
      fail(fmt::format("there is no column left for the texts; the first line is {}", found()),
           sample_.place, "state `text_column`");
  }
  // In a few rows nothing need occur twice; in many, what does not is a number or a name of each.
  void choose_label_by_shape() {
    constexpr size_t kFew = 10;
    for (size_t c = 0; c < columns_.count; ++c) {
      if (is_taken(c) || (rows_ >= kFew && shapes_[c].distinct == rows_)) continue;
      const auto worth = [&](size_t column) {  // one value for all rows tells nothing
        return std::pair(shapes_[column].distinct == 1, shapes_[column].distinct);
      };
      if (!columns_.label || worth(c) < worth(*columns_.label)) columns_.label = c;
    }
  }

  void note(bool by_shape) {
    const std::string label =
        columns_.label ? fmt::format("column {} the labels", said(*columns_.label)) : "none labels";
    columns_.notes.push_back(fmt::format(
        "{}{}column {} holds the texts and {}; `text_column` and `label_column` state others",
        has_names() ? fmt::format("the columns are {}: ", found())
                    : "the first line is no header: ",
        by_shape ? "by the look of the lines " : "", said(columns_.text), label));
  }

  const TableSample& sample_;
  std::vector<std::string> names_;
  std::vector<Shape> shapes_;
  size_t rows_ = 0;
  std::optional<size_t> text_;
  TextColumns columns_;
};

}  // namespace

TextColumns choose_columns(const TableSample& sample, const DatasetOptions& options) {
  return Chooser(sample, options).columns();
}

}  // namespace fungi::dataset
