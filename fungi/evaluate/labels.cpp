// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "fungi/base/error.h"

namespace fungi {

Classes classes_of(Labels labels, const char* place) {
  if (labels.empty()) fail("expected labelled rows, found none", place, "");
  Classes out;
  for (size_t i = 0; i < labels.size(); ++i)
    if (labels[i] < 0)
      fail(fmt::format("expected a label for every row, row {} has none", i), place,
           "label the data set or leave the row out");
  out.labels.assign(labels.begin(), labels.end());
  std::sort(out.labels.begin(), out.labels.end());
  out.labels.erase(std::unique(out.labels.begin(), out.labels.end()), out.labels.end());
  out.sizes.resize(out.labels.size(), 0);
  out.index.reserve(labels.size());
  for (int64_t label : labels) {
    const auto at = std::lower_bound(out.labels.begin(), out.labels.end(), label);
    out.index.push_back(uint32_t(at - out.labels.begin()));
    ++out.sizes[out.index.back()];
  }
  return out;
}

void check_label_count(Labels labels, size_t rows, const char* place) {
  if (labels.size() != rows)
    fail(fmt::format("expected one label for each of {} rows, found {}", rows, labels.size()),
         place, "");
}

std::string note_unknown_classes(Labels train, Labels test) {
  const std::set<int64_t> known(train.begin(), train.end());
  std::set<int64_t> unknown;
  size_t rows = 0;
  for (const int64_t label : test)
    if (!known.contains(label)) unknown.insert(label), ++rows;
  if (rows == 0) return "";
  return fmt::format(
      "{} of {} test rows are of {} classes without training rows: they count as errors", rows,
      test.size(), unknown.size());
}

std::vector<int64_t> gather(Labels labels, const std::vector<size_t>& rows) {
  std::vector<int64_t> out;
  out.reserve(rows.size());
  for (size_t row : rows) {
    if (row >= labels.size())
      fail(fmt::format("asked for row {} of {}", row, labels.size()), "gather");
    out.push_back(labels[row]);
  }
  return out;
}

}  // namespace fungi
