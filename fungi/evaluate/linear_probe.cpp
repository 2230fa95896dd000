// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/linear_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "fungi/base/error.h"
#include "fungi/comm/bytes.h"
#include "fungi/comm/comm.h"
#include "fungi/evaluate/fewshot.h"
#include "fungi/evaluate/metrics.h"
#include "fungi/pca/pca.h"
#include "fungi/search/metric.h"

namespace fungi {
namespace {

constexpr size_t kPartBytes = size_t{32} << 20;  // of rows read at once

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

std::vector<size_t> numbers(size_t first, size_t last) {
  std::vector<size_t> all(last - first);
  std::iota(all.begin(), all.end(), first);
  return all;
}

// Some rows of one side, of which this process takes a run, after the PCA.
class Side {
 public:
  Side(const ProbeRows& rows, std::vector<size_t> which, Comm* ranks)
      : rows_(rows), which_(std::move(which)), labels_(gather(rows.labels, which_)), ranks_(ranks) {}

  size_t count() const { return which_.size(); }
  const std::vector<int64_t>& labels() const { return labels_; }

  Matrix<float> load(size_t first, size_t count) const {
    return rows_.load(std::span(which_).subspan(first, count));
  }
  LoadRun loader(const Pca& pca, Pool& pool) const {
    return [this, &pca, &pool](size_t first, size_t count) {
      return pca.transform(load(first, count), pool);
    };
  }

  Pca fit(size_t dim, Pool& pool) const {
    const LoadRun all = [this](size_t first, size_t count) { return load(first, count); };
    if (ranks_) return PcaFit::on_ranks(count(), rows_.width, dim, all, pool, *ranks_);
    PcaFit fit(rows_.width);
    fit.add(load(0, count()), pool);
    return fit.finish(dim, pool);
  }

  // Own rows, read in parts.
  Matrix<float> reduced(const Pca& pca, Pool& pool) const {
    const auto [begin, end] = share();
    Matrix<float> out(end - begin, pca.output_width());
    each_part([&](size_t first, const Matrix<float>& part) {
      pca.transform(part, out.view().slice(first - begin, part.rows()), pool);
    });
    return out;
  }

  // For all rows, of which the own ones are given.
  std::vector<int64_t> predictions(const SoftmaxModel& model, View<const float> own,
                                   Pool& pool) const {
    return together(predict(model, own, pool));
  }
  std::vector<int64_t> predictions(const SoftmaxModel& model, const Pca& pca, Pool& pool) const {
    std::vector<int64_t> own;
    each_part([&](size_t, const Matrix<float>& part) {
      const std::vector<int64_t> some = predict(model, pca.transform(part, pool), pool);
      own.insert(own.end(), some.begin(), some.end());
    });
    return together(own);
  }

 private:
  std::pair<size_t, size_t> share() const {
    if (!ranks_) return {0, count()};
    return {count() * ranks_->rank() / ranks_->size(), count() * (ranks_->rank() + 1) / ranks_->size()};
  }

  template <class Visit>
  void each_part(const Visit& visit) const {
    const auto [begin, end] = share();
    const size_t step = std::max<size_t>(1, kPartBytes / (sizeof(float) * rows_.width));
    for (size_t first = begin; first < end; first += step)
      visit(first, load(first, std::min(step, end - first)));
  }

  std::vector<int64_t> together(std::vector<int64_t> own) const {
    if (!ranks_) return own;
    ByteWriter out;
    out.numbers(own);
    std::vector<int64_t> all;
    for (const std::string& bytes : ranks_->all_gather(out.take())) {
      const std::vector<int64_t> part = ByteReader(bytes).numbers<int64_t>();
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

  const ProbeRows& rows_;
  const std::vector<size_t> which_;
  const std::vector<int64_t> labels_;
  Comm* const ranks_;
};

// The problem of a side's rows, which it keeps where they are not shared.
class Problem {
 public:
  Problem(const Side& side, const Pca& pca, Pool& pool, Comm* ranks) {
    if (!ranks) held_ = side.reduced(pca, pool);
    if (ranks)
      regression_.emplace(side.loader(pca, pool), pca.output_width(), side.labels(), pool, *ranks);
    else
      regression_.emplace(held_, side.labels(), pool);
  }
  SoftmaxModel fit(const SoftmaxOptions& options, const SoftmaxModel* start) {
    return regression_->fit(options, start);
  }

 private:
  Matrix<float> held_;
  std::optional<SoftmaxRegression> regression_;
};

ProbeRows in_memory(const LabelledRows& rows) {
  return {rows.features.cols, rows.labels, [view = rows.features](std::span<const size_t> which) {
            return gather(view, {which.begin(), which.end()});
          }};
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
  return linear_probe(in_memory(train),
                      validation ? std::optional(in_memory(*validation)) : std::nullopt,
                      in_memory(test), options, pool);
}

LinearProbeScore linear_probe(const ProbeRows& train, const std::optional<ProbeRows>& validation,
                              const ProbeRows& test, const LinearProbeOptions& options,
                              Pool& pool) {
  if (options.lambdas.empty()) fail("expected at least one penalty, found none", "lambdas", "");

  // Which training rows are fitted, and which choose.
  Split split;
  if (validation)
    split.first = numbers(0, train.labels.size());
  else
    split = validation_split(train.labels, options);
  if (options.shots > 0)
    split.first = shots_of(train.labels, split.first, !validation.has_value(), options);

  const Side fitted(train, std::move(split.first), options.ranks);
  const Side chooser = validation ? Side(*validation, numbers(0, validation->labels.size()), options.ranks)
                                  : Side(train, std::move(split.second), options.ranks);
  const Pca pca = fitted.fit(options.pca, pool);
  const Matrix<float> chooser_rows = chooser.reduced(pca, pool);

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
  std::optional<Problem> problem(std::in_place, fitted, pca, pool, options.ranks);
  SoftmaxModel model;
  double best = -1;
  for (double lambda : options.lambdas) {
    model = problem->fit(solver(lambda), model.labels.empty() ? nullptr : &model);
    const double accuracy =
        top1_accuracy(chooser.predictions(model, chooser_rows, pool), chooser.labels());
    score.validation.push_back(accuracy);
    if (accuracy > best) {
      best = accuracy;
      score.lambda = lambda;
      score.model = {model.labels, model.weights.copy(), model.lambda,      model.objective,
                     model.gap,    model.iterations,     model.evaluations, model.converged};
    }
    report(score.validation.size());
  }
  score.fitted_rows = fitted.count();
  problem.reset();  // its rows make room
  if (fitted_again) {
    const Side all(train, numbers(0, train.labels.size()), options.ranks);
    score.model = Problem(all, pca, pool, options.ranks).fit(solver(score.lambda), &score.model);
    score.fitted_rows = all.count();
    report(options.lambdas.size() + 1);
  }
  const Side tested(test, numbers(0, test.labels.size()), options.ranks);
  score.predicted = tested.predictions(score.model, pca, pool);
  score.accuracy = top1_accuracy(score.predicted, test.labels);
  score.mean_per_class = mean_per_class_accuracy(score.predicted, test.labels);
  return score;
}

}  // namespace fungi
