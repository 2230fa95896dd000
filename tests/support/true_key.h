// SPDX-License-Identifier: Apache-2.0
// What two rows are sorted by, smaller = nearer. Sums in long double: independent of the order of
// operations in the library.
#pragma once

#include <cmath>

#include "fungi/search/metric.h"

namespace fungi::test {

inline long double true_key(Metric metric, size_t d, const float* x, const float* y) {
  long double square = 0, product = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < d; ++i) {
    const long double a = x[i], b = y[i];
    square += (a - b) * (a - b), product += a * b, xx += a * a, yy += b * b;
  }
  if (metric == Metric::euclidean) return square;
  if (metric == Metric::inner_product) return -product;
  return xx * yy > 0 ? -product / std::sqrt(xx * yy) : 0;
}

}  // namespace fungi::test
