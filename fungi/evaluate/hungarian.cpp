// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/hungarian.h"

#include <cmath>
#include <limits>

#include "fungi/base/error.h"

namespace fungi {
namespace {

// Shortest augmenting paths with potentials, for costs with at most as many rows as columns. Column
// 0 and row 0 are not part of the matrix: they start the path of each new row.
std::vector<size_t> cheapest(size_t rows, size_t cols, const auto& cost) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> row_potential(rows + 1, 0), col_potential(cols + 1, 0);
  std::vector<size_t> row_of(cols + 1, 0), previous(cols + 1, 0);
  for (size_t row = 1; row <= rows; ++row) {
    std::vector<double> distance(cols + 1, kInfinity);
    std::vector<bool> settled(cols + 1, false);
    size_t col = 0;
    row_of[0] = row;
    do {
      settled[col] = true;
      const size_t at = row_of[col];
      size_t next = 0;
      double shortest = kInfinity;
      for (size_t c = 1; c <= cols; ++c) {
        if (settled[c]) continue;
        const double reduced = cost(at - 1, c - 1) - row_potential[at] - col_potential[c];
        if (reduced < distance[c]) distance[c] = reduced, previous[c] = col;
        if (distance[c] < shortest) shortest = distance[c], next = c;
      }
      for (size_t c = 0; c <= cols; ++c) {
        if (settled[c])
          row_potential[row_of[c]] += shortest, col_potential[c] -= shortest;
        else
          distance[c] -= shortest;
      }
      col = next;
    } while (row_of[col] != 0);
    for (; col != 0; col = previous[col]) row_of[col] = row_of[previous[col]];
  }
  std::vector<size_t> col_of(rows, kUnassigned);
  for (size_t c = 1; c <= cols; ++c)
    if (row_of[c] != 0) col_of[row_of[c] - 1] = c - 1;
  return col_of;
}

}  // namespace

std::vector<size_t> best_assignment(View<const double> value) {
  for (size_t i = 0; i < value.rows; ++i)
    for (size_t j = 0; j < value.cols; ++j)
      if (!std::isfinite(value(i, j)))
        fail("expected finite values, found NaN or infinity", "assignment", "");
  if (value.rows <= value.cols)
    return cheapest(value.rows, value.cols, [&](size_t i, size_t j) { return -value(i, j); });
  const std::vector<size_t> row_of =
      cheapest(value.cols, value.rows, [&](size_t i, size_t j) { return -value(j, i); });
  std::vector<size_t> col_of(value.rows, kUnassigned);
  for (size_t j = 0; j < row_of.size(); ++j) col_of[row_of[j]] = j;
  return col_of;
}

}  // namespace fungi
