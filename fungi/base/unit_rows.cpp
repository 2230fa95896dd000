// SPDX-License-Identifier: Apache-2.0
#include "fungi/base/unit_rows.h"

#include <cmath>

namespace fungi {

std::vector<double> normalise_rows(View<const float> x, View<float> unit) {
  std::vector<double> norms(x.rows);
  for (size_t i = 0; i < x.rows; ++i) {
    double square = 0;
    for (size_t j = 0; j < x.cols; ++j) square += static_cast<double>(x(i, j)) * x(i, j);
    norms[i] = std::sqrt(square);
    const double inverse = square > 0 ? 1 / norms[i] : 0;
    for (size_t j = 0; j < x.cols; ++j) unit(i, j) = static_cast<float>(x(i, j) * inverse);
  }
  return norms;
}

}  // namespace fungi
