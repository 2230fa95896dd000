// SPDX-License-Identifier: Apache-2.0
// Class labels as every evaluation takes them: one non-negative number per row; -1 means that a row
// has none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fungi/base/matrix.h"

namespace fungi {

using Labels = std::span<const int64_t>;

struct Classes {
  std::vector<int64_t> labels;  // the distinct ones, ascending
  std::vector<uint32_t> index;  // of each row into `labels`
  std::vector<size_t> sizes;    // rows per class
  size_t count() const { return labels.size(); }
};

// Errors: no rows, a row without a label (naming it). `place` names the labels in messages.
Classes classes_of(Labels labels, const char* place = "labels");

// Error unless there is one label per row.
void check_label_count(Labels labels, size_t rows, const char* place = "labels");

// "6 of 26 test rows are of 1 classes without training rows: they count as errors"; empty where the
// training rows have all classes.
std::string note_unknown_classes(Labels train, Labels test);

// As gather() of matrix.h.
std::vector<int64_t> gather(Labels labels, const std::vector<size_t>& rows);

}  // namespace fungi
