// SPDX-License-Identifier: Apache-2.0
// Softmax and log-sum-exp in f64 for the losses whose rows are short enough to afford it.
// Internal to this room.
#pragma once

#include <cstddef>

namespace fungi {

// p = softmax(x / temperature); returns the log-sum-exp of x / temperature. p and x may not
// overlap.
double softmax(size_t n, const double* x, double temperature, double* p);

// -Σ t_j ln softmax(x / temperature)_j, given its log-sum-exp.
double cross_entropy(size_t n, const double* t, const double* x, double temperature,
                     double log_sum_exp);

}  // namespace fungi
