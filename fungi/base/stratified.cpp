// SPDX-License-Identifier: Apache-2.0
#include "fungi/base/stratified.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "fungi/base/numpy_random.h"

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

}  // namespace

StratifiedRows stratified_shuffle(std::span<const uint32_t> class_of, size_t classes,
                                  size_t first_rows, uint32_t seed) {
  std::vector<std::vector<size_t>> rows(classes);
  for (size_t i = 0; i < class_of.size(); ++i) rows[class_of[i]].push_back(i);
  std::vector<size_t> sizes;
  for (const auto& of_class : rows) sizes.push_back(of_class.size());

  NumpyRandom random(seed);
  const std::vector<size_t> in_first = approximate_mode(sizes, first_rows, random);
  std::vector<size_t> left = sizes;
  for (size_t c = 0; c < classes; ++c) left[c] -= in_first[c];
  const std::vector<size_t> in_second =
      approximate_mode(left, class_of.size() - first_rows, random);
  StratifiedRows split;
  for (size_t c = 0; c < classes; ++c) {
    const std::vector<size_t> order = random.permutation(sizes[c]);
    const size_t used = std::min(in_first[c] + in_second[c], order.size());
    for (size_t i = 0; i < used; ++i)
      (i < in_first[c] ? split.first : split.second).push_back(rows[c][order[i]]);
  }
  random.shuffle(split.first);
  random.shuffle(split.second);
  return split;
}

}  // namespace fungi
