// SPDX-License-Identifier: Apache-2.0
// Nocedal & Wright, "Numerical Optimization", algorithms 7.4 and 7.5; the line search brackets by
// halving and doubling.
#include "fungi/evaluate/lbfgs.h"

#include <cmath>
#include <deque>
#include <utility>

namespace fungi {
namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  double sum[4] = {};
  size_t i = 0;
  for (; i + 4 <= a.size(); i += 4)
    for (size_t l = 0; l < 4; ++l) sum[l] += a[i + l] * b[i + l];
  for (; i < a.size(); ++i) sum[0] += a[i] * b[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

void add(double factor, const Vector& from, Vector& to) {
  for (size_t i = 0; i < to.size(); ++i) to[i] += factor * from[i];
}

struct Pair {
  Vector step, change;  // of x and of the gradient
  double product;       // their dot product, positive
};

// −H · gradient by the two loops, starting from the scaled diagonal.
Vector direction(const std::deque<Pair>& memory, const Vector& gradient,
                 const Vector& inverse_curvature) {
  Vector q = gradient;
  std::vector<double> alpha(memory.size());
  for (size_t i = memory.size(); i-- > 0;) {
    alpha[i] = dot(memory[i].step, q) / memory[i].product;
    add(-alpha[i], memory[i].change, q);
  }
  double scale = 1;
  if (!memory.empty()) {
    const Vector& y = memory.back().change;
    double scaled = 0;
    for (size_t i = 0; i < y.size(); ++i) scaled += y[i] * y[i] * inverse_curvature[i];
    scale = memory.back().product / scaled;
  }
  for (size_t i = 0; i < q.size(); ++i) q[i] *= -scale * inverse_curvature[i];
  for (size_t i = 0; i < memory.size(); ++i)  // signs are turned: q holds −H g
    add(-alpha[i] - dot(memory[i].change, q) / memory[i].product, memory[i].step, q);
  return q;
}

}  // namespace

LbfgsResult minimise(const LbfgsProblem& problem, Vector& x, size_t max_iterations,
                     size_t memory_size) {
  constexpr double kArmijo = 1e-4, kWolfe = 0.9;
  LbfgsResult result;
  Vector gradient(x.size()), next(x.size()), next_gradient(x.size());
  result.value = problem.evaluate(x, gradient);
  result.evaluations = 1;
  std::deque<Pair> memory;
  while (!(result.finished = problem.enough(result.value, gradient)) &&
         result.iterations < max_iterations) {
    Vector d = direction(memory, gradient, problem.inverse_curvature);
    double slope = dot(gradient, d);
    if (!(slope < 0)) {  // rounding has spoilt the memory
      if (memory.empty()) break;
      memory.clear();
      continue;
    }
    const double noise = problem.noise * std::fabs(result.value);
    double low = 0, high = 0, length = 1, value = 0;
    bool accepted = false;
    for (size_t attempt = 0; attempt < 30 && !accepted; ++attempt) {
      next = x;
      add(length, d, next);
      value = problem.evaluate(next, next_gradient);
      ++result.evaluations;
      const double next_slope = dot(next_gradient, d);
      const bool falls = value <= result.value + kArmijo * length * slope;
      // Near the optimum the fall is below the noise of values: then the slope must have shrunk
      // instead.
      const bool flat = value <= result.value + noise && next_slope <= (2 * kArmijo - 1) * slope;
      if (!falls && !flat) {
        high = length;
        length = 0.5 * (low + high);
      } else if (next_slope < kWolfe * slope) {
        low = length;
        length = high > 0 ? 0.5 * (low + high) : 2 * length;
      } else {
        accepted = true;
      }
    }
    if (!accepted) {
      if (memory.empty()) break;
      memory.clear();
      continue;
    }
    Pair pair{next, next_gradient, 0};
    add(-1, x, pair.step);
    add(-1, gradient, pair.change);
    pair.product = dot(pair.step, pair.change);
    if (pair.product >
        1e-14 * std::sqrt(dot(pair.step, pair.step) * dot(pair.change, pair.change))) {
      memory.push_back(std::move(pair));
      if (memory.size() > memory_size) memory.pop_front();
    }
    std::swap(x, next);
    std::swap(gradient, next_gradient);
    result.value = value;
    ++result.iterations;
  }
  return result;
}

}  // namespace fungi
