// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/fewshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fungi/base/error.h"
#include "fungi/base/stratified.h"

namespace fungi {
namespace {

std::string shown(int64_t label, const ClassNames& names) {
  return size_t(label) < names.size() ? fmt::format("'{}'", names[size_t(label)])
                                      : std::to_string(label);
}

}  // namespace

std::vector<size_t> first_per_class(Labels labels, size_t shots, const ClassNames& names) {
  const Classes classes = classes_of(labels);
  if (shots == 0) fail("expected at least one row per class, found 0", "shots", "");
  for (size_t c = 0; c < classes.count(); ++c)
    if (classes.sizes[c] < shots)
      fail(fmt::format("expected at least {} rows of each class, class {} has {}", shots,
                       shown(classes.labels[c], names), classes.sizes[c]),
           "shots", "use fewer shots");
  std::vector<size_t> seen(classes.count(), 0), rows;
  for (size_t i = 0; i < labels.size(); ++i)
    if (seen[classes.index[i]]++ < shots) rows.push_back(i);
  return rows;
}

Split stratified_split(Labels labels, size_t first_rows, uint32_t seed, const ClassNames& names) {
  const Classes classes = classes_of(labels);
  const size_t n = labels.size(), count = classes.count();
  const size_t second_rows = n - std::min(first_rows, n);
  for (size_t c = 0; c < count; ++c)
    if (classes.sizes[c] < 2)
      fail(fmt::format("expected at least 2 rows of each class, class {} has 1",
                       shown(classes.labels[c], names)),
           "stratified split", "leave the class out");
  if (first_rows < count || second_rows < count)
    fail(fmt::format("expected at least {} rows (one per class) on both sides, found {} and {}",
                     count, first_rows, second_rows),
         "stratified split", "choose another size");
  auto [first, second] = stratified_shuffle(classes.index, count, first_rows, seed);
  return {std::move(first), std::move(second)};
}

Split stratified_fraction(Labels labels, double fraction, uint32_t seed, const ClassNames& names) {
  if (!(fraction > 0 && fraction < 1))
    fail(fmt::format("expected a fraction between 0 and 1, found {}", fraction), "stratified split",
         "");
  Split split =
      stratified_split(labels, size_t(std::floor(fraction * double(labels.size()))), seed, names);
  std::sort(split.first.begin(), split.first.end());
  std::sort(split.second.begin(), split.second.end());
  return split;
}

}  // namespace fungi
