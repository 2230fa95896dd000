// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/fewshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "fungi/base/error.h"
#include "fungi/evaluate/numpy_random.h"

namespace fungi {
namespace {

// How many of `draws` fall to each class: the floors of the proportional shares, then one each to
// the largest remainders; among equal remainders a random choice. The order of operations is
// scikit-learn's.
std::vector<size_t> approximate_mode(const std::vector<size_t>& counts, size_t draws,
                                     NumpyRandom& random) {
  const double total = double(std::accumulate(counts.begin(), counts.end(), size_t{0}));
  std::vector<size_t> taken(counts.size());
  std::vector<double> remainder(counts.size());
  size_t missing = draws;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double share = double(counts[i]) / total * double(draws);
    taken[i] = size_t(std::floor(share));
    remainder[i] = share - std::floor(share);
    missing -= taken[i];
  }
  if (missing == 0) return taken;
  std::vector<double> values = remainder;
  std::sort(values.begin(), values.end(), std::greater<>());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  for (double value : values) {
    std::vector<size_t> tied;
    for (size_t i = 0; i < counts.size(); ++i)
      if (remainder[i] == value) tied.push_back(i);
    const size_t now = std::min(tied.size(), missing);
    random.shuffle(tied);
    for (size_t i = 0; i < now; ++i) ++taken[tied[i]];
    missing -= now;
    if (missing == 0) break;
  }
  return taken;
}

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
  std::vector<std::vector<size_t>> rows(count);
  for (size_t i = 0; i < n; ++i) rows[classes.index[i]].push_back(i);

  NumpyRandom random(seed);
  const std::vector<size_t> in_first = approximate_mode(classes.sizes, first_rows, random);
  std::vector<size_t> left = classes.sizes;
  for (size_t c = 0; c < count; ++c) left[c] -= in_first[c];
  const std::vector<size_t> in_second = approximate_mode(left, second_rows, random);
  Split split;
  for (size_t c = 0; c < count; ++c) {
    const std::vector<size_t> order = random.permutation(classes.sizes[c]);
    const size_t used = std::min(in_first[c] + in_second[c], order.size());
    for (size_t i = 0; i < used; ++i)
      (i < in_first[c] ? split.first : split.second).push_back(rows[c][order[i]]);
  }
  random.shuffle(split.first);
  random.shuffle(split.second);
  return split;
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
