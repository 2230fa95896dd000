// SPDX-License-Identifier: Apache-2.0
// Multinomial logistic regression without intercept (SPEC 5.3):
//   f(W) = 1/n Σ softmax-cross-entropy(W x_i) + λ/2 ‖W‖² ,
// products in f32, everything that is summed over rows and every step of the solver in f64. f is
// λ-strongly convex, so f(W) − min f ≤ ‖∇f(W)‖² / 2λ: a proof, at every step, of how far the
// optimum can be.
#pragma once

#include <memory>
#include <vector>

#include "fungi/base/load_run.h"
#include "fungi/base/parallel.h"
#include "fungi/evaluate/labels.h"

namespace fungi {

class Comm;

struct SoftmaxOptions {
  double lambda = 5e-4;
  double tolerance = 1e-5;       // stop when the proven gap is at most this part of the objective
  size_t max_iterations = 1000;  // of L-BFGS; `converged` tells if they were not enough
};

struct SoftmaxModel {
  std::vector<int64_t> labels;  // of the rows of `weights`, ascending
  Matrix<double> weights;       // [classes, width]
  double lambda = 0, objective = 0;
  double gap = 0;  // proven: objective − optimum is not larger
  size_t iterations = 0, evaluations = 0;
  bool converged = false;
};

// A prepared problem: fits for several λ share the preparation. Rows must stay alive. Errors:
// labels missing or of another count, no rows, NaN or infinity. One class alone is fitted by W = 0.
class SoftmaxRegression {
 public:
  SoftmaxRegression(View<const float> rows, Labels labels, Pool& pool);
  SoftmaxRegression(Matrix<float>&&, Labels, Pool&) = delete;  // a temporary would be gone
  // Rows that several processes share, each of which keeps those alone that it sums over; the bytes
  // are the same. Every call is collective then. `load` is called here only.
  SoftmaxRegression(const LoadRun& load, size_t width, Labels labels, Pool& pool, Comm& ranks);
  ~SoftmaxRegression();

  // `start`, if given, is a model of the same classes and width to begin from.
  SoftmaxModel fit(const SoftmaxOptions& options, const SoftmaxModel* start = nullptr);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The label of the largest score of each row; equal scores go to the smaller label. Errors: another
// width, NaN or infinity (naming the row).
std::vector<int64_t> predict(const SoftmaxModel& model, View<const float> rows, Pool& pool);

}  // namespace fungi
