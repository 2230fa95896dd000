// SPDX-License-Identifier: Apache-2.0
// A file of texts as records: lines, or rows of a table, of which one may have several lines.
// Internal to this room.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/input/text_file.h"

namespace fungi::dataset {

enum class TextFormat {
  lines,   // a text in each
  json,    // an object in each line
  tabs,    // cells with tabs between them; a cell ends with its line, and quotes belong to the text
  quoted,  // RFC 4180 as Python's csv reads it: a cell that begins with a quote may hold anything
};

struct Dialect {
  TextFormat format = TextFormat::lines;
  char delimiter = ',';  // of `quoted`
};

// Length of the record that `bytes` begin with, without the end of its line (LF, CR LF or CR).
// Nothing: it goes on behind them, which cannot be where they are the `last` ones.
std::optional<size_t> record_length(std::string_view bytes, const Dialect& dialect, bool last);

// The cells of a record of a table; of the other formats the record itself. `place`: for an Error,
// where a quoted cell has no end.
std::vector<std::string> cells_of(std::string_view record, const Dialect& dialect,
                                  const std::string& place);

// How many lines end in them.
uint64_t line_ends(std::string_view bytes);

// Goes through a file. Records of nothing but blanks are left out.
class TextRecords {
 public:
  TextRecords(const TextFile& file, const Dialect& dialect)
      : file_(file), dialect_(dialect), offset_(file.begin()), end_(file.begin()) {}

  bool next();  // false at the end; then offset() is the file's size
  std::string_view record() const { return record_; }  // until next()
  uint64_t offset() const { return record_offset_; }
  uint64_t line() const { return record_line_; }  // where it begins, counted from 1
  uint64_t left_out() const { return left_out_; }
  // "FILE, line 12"
  std::string place() const;

 private:
  bool is_blank() const;
  void fetch();

  const TextFile& file_;
  Dialect dialect_;
  std::string buffer_;  // of the file from offset_ - at_ to end_
  size_t at_ = 0;
  uint64_t offset_, end_, line_ = 1;
  std::string_view record_;
  uint64_t record_offset_ = 0, record_line_ = 1, left_out_ = 0;
};

}  // namespace fungi::dataset
