// SPDX-License-Identifier: Apache-2.0
// Which column of a table of texts holds what. Internal to this room.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fungi/input/dataset.h"

namespace fungi::dataset {

// The beginning of a table: enough of it to see what its columns are.
struct TableSample {
  std::vector<std::vector<std::string>> rows;  // all of as many cells as the first
  std::vector<std::string> keys;               // of JSON lines; then no row is a header
  std::string place;                           // for messages
};

struct TextColumns {
  bool header = false;  // the first row names the columns
  size_t count = 1;     // cells of each row
  size_t text = 0;
  std::optional<size_t> label, id;
  std::vector<std::string> notes;
};

// Error where a stated column is not there, or is two things at once.
TextColumns choose_columns(const TableSample& sample, const DatasetOptions& options);

}  // namespace fungi::dataset
