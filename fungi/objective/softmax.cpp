// SPDX-License-Identifier: Apache-2.0
#include "fungi/objective/softmax.h"

#include <algorithm>
#include <cmath>

namespace fungi {

double softmax(size_t n, const double* x, double temperature, double* p) {
  const double top = *std::max_element(x, x + n);
  double sum = 0;
  for (size_t j = 0; j < n; ++j) sum += p[j] = std::exp((x[j] - top) / temperature);
  for (size_t j = 0; j < n; ++j) p[j] /= sum;
  return top / temperature + std::log(sum);
}

double cross_entropy(size_t n, const double* t, const double* x, double temperature,
                     double log_sum_exp) {
  double loss = 0;
  for (size_t j = 0; j < n; ++j) loss += t[j] * (log_sum_exp - x[j] / temperature);
  return loss;
}

}  // namespace fungi
