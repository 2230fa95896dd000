// SPDX-License-Identifier: Apache-2.0
// Data sets of texts as the tests compare them.
#pragma once

#include <string>
#include <vector>

#include "fungi/base/error.h"
#include "fungi/input/dataset.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"

namespace fungi::testing {

struct TextRow {
  std::string id, label, text;  // a text that fails: "! " and why
  bool operator==(const TextRow&) const = default;
};

inline void PrintTo(const TextRow& row, std::ostream* out) {
  *out << row.id << " [" << row.label << "] " << row.text;
}

inline std::string text_of(const Dataset& data, size_t i) {
  try {
    return std::get<Text>(data.decode(i, data.read(i))).utf8;
  } catch (const Error& error) {
    return "! " + error.message();
  }
}

inline std::vector<TextRow> text_rows(const Dataset& data) {
  std::vector<TextRow> rows;
  for (size_t i = 0; i < data.size(); ++i) {
    const int label = data.label(i);
    rows.push_back({data.id(i),
                    label < 0                    ? ""
                    : data.class_names().empty() ? std::to_string(label)
                                                 : data.class_names()[size_t(label)],
                    text_of(data, i)});
  }
  return rows;
}

inline DatasetOptions of_texts(DatasetOptions options = {}) {
  options.samples = SampleKind::text;
  return options;
}

inline std::unique_ptr<Dataset> open_texts(const std::filesystem::path& path,
                                           DatasetOptions options = {}) {
  return open_dataset(path, of_texts(std::move(options)));
}

// Of a file of that name and content.
inline std::vector<TextRow> rows_of_text(const std::string& name, std::string_view content,
                                         DatasetOptions options = {}) {
  const test::TemporaryFolder root;
  return text_rows(*open_texts(root.write(name, content), std::move(options)));
}
inline std::vector<std::string> notes_of_text(const std::string& name, std::string_view content,
                                              DatasetOptions options = {}) {
  const test::TemporaryFolder root;
  return open_texts(root.write(name, content), std::move(options))->notes();
}

using TextRows = std::vector<TextRow>;

}  // namespace fungi::testing
