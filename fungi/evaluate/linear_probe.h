// SPDX-License-Identifier: Apache-2.0
// The linear-probing protocol (SPEC 5.3): the penalty is chosen from a grid by top-1 accuracy on
// validation rows, the final model is fitted again as the protocol says, and scored on the test
// rows.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fungi/base/parallel.h"
#include "fungi/evaluate/labels.h"
#include "fungi/evaluate/softmax_regression.h"

namespace fungi {

struct LabelledRows {
  View<const float> features;
  Labels labels;
};

// The same of rows that need not be in memory as a whole: rows by number, when they are wanted.
struct ProbeRows {
  size_t width = 0;
  Labels labels;  // of all
  std::function<Matrix<float>(std::span<const size_t> which)> load;
};

// {5e-6, 1.2875e-4, 2.525e-4, 3.7625e-4, 5e-4}
std::vector<double> default_lambdas();

class Comm;

struct LinearProbeOptions {
  std::vector<double> lambdas = default_lambdas();
  size_t pca = 512;    // applied under the rule of Pca::applies; 0: never
  size_t shots = 0;    // 0: all rows; otherwise the first so many of each class
  uint32_t seed = 42;  // of the validation split
  std::vector<std::string> class_names = {};  // by label, for Errors
  double tolerance = 1e-5;                    // see SoftmaxOptions
  size_t max_iterations = 1000;
  // Calls progress(done, total) from the caller's thread, first with 0, then after each fit: one
  // per penalty, and the final one where there is one. What it throws ends the work.
  std::function<void(size_t, size_t)> progress = {};
  Comm* ranks = nullptr;  // linear_probe() is collective then, and each loads a share of the rows
};

struct LinearProbeScore {
  double accuracy = 0, mean_per_class = 0;  // on the test rows
  double lambda = 0;                        // chosen: the first of the best
  std::vector<double> validation;           // top-1 accuracy per lambda
  bool pca_applied = false;
  size_t fitted_rows = 0;          // of the final model
  std::vector<int64_t> predicted;  // for the test rows
  SoftmaxModel model;              // in the space after the PCA
};

// Without validation rows, a stratified fifth of the training rows serves; the final model of a run
// without shots is then fitted on all training rows, with the PCA of the four fifths. With
// validation rows they only choose. Errors: labels, widths, no penalties, classes too small for a
// split, NaN or infinity (naming side and row). model.converged says whether the final fit ended.
LinearProbeScore linear_probe(const LabelledRows& train,
                              const std::optional<LabelledRows>& validation,
                              const LabelledRows& test, const LinearProbeOptions& options,
                              Pool& pool);
LinearProbeScore linear_probe(const ProbeRows& train, const std::optional<ProbeRows>& validation,
                              const ProbeRows& test, const LinearProbeOptions& options,
                              Pool& pool);

}  // namespace fungi
