// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/linear_probe.h"

#include <fmt/format.h>

#include <numeric>

#include "fungi/base/error.h"
#include "fungi/evaluate/fewshot.h"
#include "fungi/evaluate/metrics.h"
#include "fungi/pca/pca.h"
#include "fungi/search/metric.h"

namespace fungi {
namespace {

void check(const LabelledRows& rows, size_t width, const char* what, Pool& pool) {
  check_label_count(rows.labels, rows.features.rows, what);
  classes_of(rows.labels, what);
  if (rows.features.cols != width)
    fail(fmt::format("expected width {} as in training, found {}", width, rows.features.cols), what,
         "");
  search::require_finite(rows.features, what, pool);
}

// A fifth of the rows stands aside to choose the penalty.
Split validation_split(Labels labels, const LinearProbeOptions& options) {
  try {
    return stratified_fraction(labels, 0.8, options.seed, options.class_names);
  } catch (const Error& e) {
    fail(e.message(), "training rows, of which a fifth chooses the penalty",
         "give validation rows of their own (`validation=STORE`), or more rows per class");
  }
}

// The first rows of each class among those that are fitted, as rows of all of them.
std::vector<size_t> shots_of(Labels labels, const std::vector<size_t>& fitted, bool part,
                             const LinearProbeOptions& options) {
  std::vector<size_t> rows;
  try {
    const std::vector<int64_t> own = gather(labels, fitted);
    for (size_t i : first_per_class(own, options.shots, options.class_names))
      rows.push_back(fitted[i]);
  } catch (const Error& e) {
    if (!part) throw;
    fail(e.message() + " beside the fifth that chooses the penalty", e.place(),
         "use fewer shots, or give validation rows of their own (`validation=STORE`)");
  }
  return rows;
}

}  // namespace

std::vector<double> default_lambdas() {
  std::vector<double> out;
  for (int i = 0; i < 5; ++i) out.push_back(5e-6 + i * ((5e-4 - 5e-6) / 4));
  return out;
}

LinearProbeScore linear_probe(const LabelledRows& train,
                              const std::optional<LabelledRows>& validation,
                              const LabelledRows& test, const LinearProbeOptions& options,
                              Pool& pool) {
  check(train, train.features.cols, "training rows", pool);
  check(test, train.features.cols, "test rows", pool);
  if (validation) check(*validation, train.features.cols, "validation rows", pool);
  if (options.lambdas.empty()) fail("expected at least one penalty, found none", "lambdas", "");

  // Which training rows are fitted, and which choose.
  Split split;
  if (validation) {
    split.first.resize(train.labels.size());
    std::iota(split.first.begin(), split.first.end(), size_t{0});
  } else {
    split = validation_split(train.labels, options);
  }
  if (options.shots > 0)
    split.first = shots_of(train.labels, split.first, !validation.has_value(), options);

  const Matrix<float> fitted = gather(train.features, split.first);
  const std::vector<int64_t> fitted_labels = gather(train.labels, split.first);
  PcaFit fit(fitted.cols());
  if (options.ranks) fit.share(*options.ranks);
  fit.add(fitted, pool);
  const Pca pca = fit.finish(options.pca, pool);
  const Matrix<float> fitted_reduced = pca.transform(fitted, pool);
  const Matrix<float> chooser = validation
                                    ? pca.transform(validation->features, pool)
                                    : pca.transform(gather(train.features, split.second), pool);
  const std::vector<int64_t> chooser_labels =
      validation ? std::vector<int64_t>(validation->labels.begin(), validation->labels.end())
                 : gather(train.labels, split.second);

  LinearProbeScore score;
  score.pca_applied = !pca.identity();
  const auto solver = [&](double lambda) {
    return SoftmaxOptions{
        .lambda = lambda, .tolerance = options.tolerance, .max_iterations = options.max_iterations};
  };
  const bool fitted_again = !validation && options.shots == 0;
  const auto report = [&](size_t fits) {
    if (options.progress) options.progress(fits, options.lambdas.size() + fitted_again);
  };
  report(0);
  SoftmaxRegression problem(fitted_reduced, fitted_labels, pool, options.ranks);
  SoftmaxModel model;
  double best = -1;
  for (double lambda : options.lambdas) {
    model = problem.fit(solver(lambda), model.labels.empty() ? nullptr : &model);
    const double accuracy = top1_accuracy(predict(model, chooser, pool), chooser_labels);
    score.validation.push_back(accuracy);
    if (accuracy > best) {
      best = accuracy;
      score.lambda = lambda;
      score.model = {model.labels, model.weights.copy(), model.lambda,      model.objective,
                     model.gap,    model.iterations,     model.evaluations, model.converged};
    }
    report(score.validation.size());
  }
  score.fitted_rows = fitted_reduced.rows();
  if (fitted_again) {
    const Matrix<float> all = pca.transform(train.features, pool);
    SoftmaxRegression whole(all, train.labels, pool, options.ranks);
    score.model = whole.fit(solver(score.lambda), &score.model);
    score.fitted_rows = all.rows();
    report(options.lambdas.size() + 1);
  }
  score.predicted = predict(score.model, pca.transform(test.features, pool), pool);
  score.accuracy = top1_accuracy(score.predicted, test.labels);
  score.mean_per_class = mean_per_class_accuracy(score.predicted, test.labels);
  return score;
}

}  // namespace fungi
