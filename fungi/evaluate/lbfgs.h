// SPDX-License-Identifier: Apache-2.0
// L-BFGS for smooth convex functions in f64, with a diagonal scaling of the variables. The caller
// says when it is good enough; where function values no longer resolve a step, slopes decide (the
// "approximate Wolfe" test). Internal to this room.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace fungi {

struct LbfgsResult {
  double value = 0;
  size_t iterations = 0, evaluations = 0;
  bool finished =
      false;  // `enough` said so; otherwise the iterations ran out or no step helps any more
};

struct LbfgsProblem {
  // Value at x; writes the gradient. x and gradient have the size of the start.
  std::function<double(const std::vector<double>& x, std::vector<double>& gradient)> evaluate;
  // Whether a point with this value and gradient will do.
  std::function<bool(double value, const std::vector<double>& gradient)> enough;
  std::vector<double> inverse_curvature;  // > 0, one per variable: a guess at 1 / second derivative
  double noise = 1e-9;                    // relative error of values
};

// Starts at x and leaves the best point there.
LbfgsResult minimise(const LbfgsProblem& problem, std::vector<double>& x, size_t max_iterations,
                     size_t memory = 20);

}  // namespace fungi
