// SPDX-License-Identifier: Apache-2.0
#include "fungi/input/text_records.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/error.h"

namespace fungi::dataset {
namespace {

constexpr uint64_t kPiece = uint64_t(1) << 20;
constexpr uint64_t kLongest = uint64_t(1) << 26;
constexpr size_t kMostCells = 10000;  // a line of nothing but separators must not take all memory

// Goes through one record and returns where it ends. `cells`: gets them, if there. `open`: the
// bytes end within quotes.
size_t walk(std::string_view bytes, char delimiter, std::vector<std::string>* cells, bool& open) {
  std::string cell;
  bool begins = true;
  open = false;
  size_t at = 0;
  const auto end_cell = [&] {
    if (cells && cells->size() <= kMostCells) cells->push_back(std::move(cell));
    cell.clear();
    begins = true;
  };
  while (at < bytes.size()) {
    if (begins && bytes[at] == '"') {
      open = true;
      begins = false;
      ++at;
    }
    size_t end = open ? std::min(bytes.find('"', at), bytes.size()) : at;
    while (!open && end < bytes.size() && bytes[end] != delimiter && bytes[end] != '\n' &&
           bytes[end] != '\r')
      ++end;
    if (cells) cell.append(bytes, at, end - at);
    begins = begins && end == at;
    at = end;
    if (at == bytes.size()) break;
    if (open && bytes.substr(at + 1, 1) == "\"") {
      if (cells) cell += '"';
      at += 2;
    } else if (open) {
      open = false;
      ++at;
    } else if (bytes[at] == delimiter) {
      end_cell();
      ++at;
    } else {
      break;
    }
  }
  end_cell();
  return at;
}

// Where the first line ends.
size_t end_of_line(std::string_view bytes) {
  const size_t line_feed = std::min(bytes.find('\n'), bytes.size());
  return std::min(bytes.substr(0, line_feed).find('\r'), line_feed);
}

// A cell of a table without quoting, as far as that can be: what a writer of quoted ones makes of a
// text with quotes begins and ends with one, and those inside are doubled.
std::string without_doubled_quotes(std::string_view cell) {
  const std::string whole(cell);
  if (cell.size() < 4 || cell.front() != '"' || cell.back() != '"') return whole;
  const std::string_view inside = cell.substr(1, cell.size() - 2);
  std::string out;
  bool doubled = false;
  for (size_t i = 0; i < inside.size(); ++i) {
    out += inside[i];
    if (inside[i] != '"') continue;
    if (inside.substr(i + 1, 1) != "\"") return whole;
    doubled = true;
    ++i;
  }
  return doubled ? out : whole;
}

}  // namespace

std::optional<size_t> record_length(std::string_view bytes, const Dialect& dialect, bool last) {
  bool open = false;
  const size_t length = dialect.format == TextFormat::quoted
                            ? walk(bytes, dialect.delimiter, nullptr, open)
                            : end_of_line(bytes);
  const bool maybe_longer =
      length == bytes.size() || (length + 1 == bytes.size() && bytes[length] == '\r');
  if (!last && maybe_longer) return {};
  return length;
}

std::vector<std::string> cells_of(std::string_view record, const Dialect& dialect,
                                  const std::string& place) {
  std::vector<std::string> cells;
  if (dialect.format == TextFormat::quoted) {
    bool open = false;
    walk(record, dialect.delimiter, &cells, open);
    if (open)
      fail("expected a double quote that ends a quoted cell, found the end of the file", place,
           "end the cell, or double the quotes inside it; in a file without quoting give it the "
           "name .tsv and separate columns by tabs");
  } else if (dialect.format == TextFormat::tabs) {
    for (size_t begin = 0; cells.size() <= kMostCells;) {
      const size_t end = std::min(record.find('\t', begin), record.size());
      cells.push_back(without_doubled_quotes(record.substr(begin, end - begin)));
      if (end == record.size()) break;
      begin = end + 1;
    }
  } else {
    cells.emplace_back(record);
  }
  if (cells.size() > kMostCells)
    fail(fmt::format("expected at most {} columns, found more", kMostCells), place,
         "look whether it is a list of texts");
  return cells;
}

uint64_t line_ends(std::string_view bytes) {
  uint64_t ends = 0;
  for (size_t i = 0; i < bytes.size(); ++i)
    ends += bytes[i] == '\n' || (bytes[i] == '\r' && bytes.substr(i + 1, 1) != "\n");
  return ends;
}

bool TextRecords::next() {
  for (;;) {
    const std::string_view rest = std::string_view(buffer_).substr(at_);
    const bool last = end_ == file_.size();
    if (last && rest.empty()) {
      record_ = {};
      record_offset_ = offset_;
      return false;
    }
    const auto length = record_length(rest, dialect_, last);
    if (!length) {
      fetch();
      continue;
    }
    record_ = rest.substr(0, *length);
    record_offset_ = offset_;
    record_line_ = line_;
    const std::string_view after = rest.substr(*length);
    const size_t end = after.starts_with("\r\n") ? 2 : after.empty() ? 0 : 1;
    line_ += (end > 0) + (dialect_.format == TextFormat::quoted ? line_ends(record_) : 0);
    at_ += *length + end;
    offset_ += *length + end;
    if (!is_blank()) return true;
    ++left_out_;
  }
}

std::string TextRecords::place() const {
  return fmt::format("{}, line {}", file_.name(), record_line_);
}

bool TextRecords::is_blank() const {
  const bool tabs_count = dialect_.format == TextFormat::tabs || dialect_.delimiter == '\t';
  return record_.find_first_not_of(tabs_count ? " " : " \t") == std::string_view::npos;
}

// More of the file. A long record is looked through again each time, so that each time has to bring
// as much again.
void TextRecords::fetch() {
  buffer_.erase(0, at_);
  at_ = 0;
  if (buffer_.size() > kLongest)
    fail(fmt::format("expected records of at most {} MiB, found a longer one", kLongest >> 20),
         fmt::format("{}, line {}", file_.name(), line_),
         dialect_.format == TextFormat::quoted
             ? "look for a double quote that begins a cell and is never closed"
             : "look whether it is a file of texts, one in each line");
  const uint64_t to = std::min(file_.size(), end_ + std::max<uint64_t>(kPiece, buffer_.size()));
  buffer_ += file_.read(end_, to);
  end_ = to;
}

}  // namespace fungi::dataset
