// SPDX-License-Identifier: Apache-2.0
// A record of a file of texts -> its text, label and id. Internal to this room.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fungi/input/text_columns.h"
#include "fungi/input/text_records.h"

namespace fungi::dataset {

// How the records of a file are to be read.
struct TextLayout {
  Dialect dialect;
  TextColumns columns;
  std::vector<std::string> keys;  // of JSON lines: names of the columns
};

struct TextRow {
  std::string text, label, id;
  std::string bad;  // why there is no text; then it is the whole record, and a sample that fails
};

// What the name of a file and its first lines say. Error where they cannot be read as texts.
TextLayout layout_of(const TextFile& file, const std::string& extension,
                     const DatasetOptions& options);

// Error, with its place, for a record that is no row: another number of cells, no JSON, no id.
TextRow row_of(std::string_view record, const TextLayout& layout, const std::string& place);

}  // namespace fungi::dataset
