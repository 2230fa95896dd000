// SPDX-License-Identifier: Apache-2.0
// The regression against scipy's optimum, its certificate, and the protocol around it.
#include "fungi/evaluate/linear_probe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "fungi/base/random.h"
#include "fungi/evaluate/fewshot.h"
#include "fungi/evaluate/lbfgs.h"
#include "fungi/evaluate/metrics.h"
#include "fungi/pca/pca.h"
#include "tests/evaluate/golden.h"
#include "tests/support/errors.h"

namespace fungi {
namespace {

// The objective of a model in f64, from its definition.
double objective(const SoftmaxModel& model, View<const float> rows, Labels labels) {
  double loss = 0, square = 0;
  for (size_t i = 0; i < rows.rows; ++i) {
    std::vector<double> z(model.labels.size(), 0.0);
    double own = 0, top = -1e300, sum = 0;
    for (size_t c = 0; c < z.size(); ++c) {
      for (size_t d = 0; d < rows.cols; ++d) z[c] += model.weights(c, d) * rows(i, d);
      top = std::max(top, z[c]);
      if (model.labels[c] == labels[i]) own = z[c];
    }
    for (double v : z) sum += std::exp(v - top);
    loss += std::log(sum) + top - own;
  }
  for (size_t i = 0; i < model.weights.rows() * model.weights.cols(); ++i)
    square += model.weights.data()[i] * model.weights.data()[i];
  return loss / double(rows.rows) + model.lambda / 2 * square;
}

Matrix<float> classes_in_space(size_t rows, size_t width, size_t classes, uint64_t seed,
                               std::vector<int64_t>& labels) {
  Matrix<float> x(rows, width);
  const RandomStream centre(1, "probe centres"), noise(seed, "probe noise");
  labels.clear();
  for (size_t i = 0; i < rows; ++i) {
    const size_t c = noise.bits(5000000 + i) % classes;
    labels.push_back(int64_t(c) + 10);
    for (size_t d = 0; d < width; ++d)
      x(i, d) = float(0.6 * centre.normal(c * width + d) + noise.normal(i * width + d));
  }
  return x;
}

TEST(SoftmaxRegression, reaches_the_optimum) {
  Pool pool(2);
  const auto golden = golden_json("logistic");
  const Matrix<float> rows = golden_matrix("logistic_rows");
  const std::vector<int64_t> labels = integers(golden["labels"]);
  SoftmaxRegression problem(rows, labels, pool);
  ASSERT_EQ(golden["cases"].size(), 4u);
  for (const auto& item : golden["cases"]) {
    const double best = item["objective"].get<double>();
    const SoftmaxModel model = problem.fit({.lambda = item["lambda"].get<double>()});
    EXPECT_TRUE(model.converged);
    const double found = objective(model, rows, labels);
    EXPECT_NEAR(model.objective, found, 1e-6 * best);
    EXPECT_LT(found - best, 1e-5 * best);
    EXPECT_GT(found - best, -1e-9 * best);
    EXPECT_LE(model.gap, 1e-5 * model.objective);
    // Tighter when asked.
    const SoftmaxModel tight =
        problem.fit({.lambda = item["lambda"].get<double>(), .tolerance = 1e-7}, &model);
    EXPECT_LT(objective(tight, rows, labels) - best, 1e-6 * best);
  }
}

TEST(SoftmaxRegression, same_bytes_for_any_thread_count) {
  std::vector<int64_t> labels;
  const Matrix<float> rows = classes_in_space(3000, 17, 6, 2, labels);
  std::vector<SoftmaxModel> models;
  for (unsigned threads : {1u, 2u, 3u}) {
    Pool pool(threads);
    models.push_back(SoftmaxRegression(rows, labels, pool).fit({.lambda = 1e-3}));
  }
  for (size_t m = 1; m < 3; ++m)
    EXPECT_TRUE(std::equal(models[0].weights.data(), models[0].weights.data() + 6 * 17,
                           models[m].weights.data()));
}

TEST(SoftmaxRegression, warm_start_is_shorter_and_ends_at_the_same_place) {
  Pool pool(2);
  std::vector<int64_t> labels;
  const Matrix<float> rows = classes_in_space(800, 30, 5, 3, labels);
  SoftmaxRegression problem(rows, labels, pool);
  const SoftmaxModel near = problem.fit({.lambda = 1.1e-3}), cold = problem.fit({.lambda = 1e-3});
  const SoftmaxModel warm = problem.fit({.lambda = 1e-3}, &near);
  EXPECT_LT(warm.evaluations, cold.evaluations);
  EXPECT_NEAR(warm.objective, cold.objective, 1e-5 * cold.objective);
}

TEST(SoftmaxRegression, tells_when_iterations_were_not_enough) {
  Pool pool(1);
  std::vector<int64_t> labels;
  const Matrix<float> rows = classes_in_space(300, 20, 4, 4, labels);
  const SoftmaxModel model =
      SoftmaxRegression(rows, labels, pool).fit({.lambda = 1e-6, .max_iterations = 2});
  EXPECT_FALSE(model.converged);
  EXPECT_GT(model.gap, 1e-5 * model.objective);
  EXPECT_EQ(model.iterations, 2u);
}

TEST(SoftmaxRegression, one_class_is_predicted_always) {
  Pool pool(1);
  const Matrix<float> rows = golden_matrix("logistic_rows");
  const std::vector<int64_t> labels(rows.rows(), 4);
  const SoftmaxModel model = SoftmaxRegression(rows, labels, pool).fit({});
  EXPECT_TRUE(model.converged);
  EXPECT_EQ(model.objective, 0);
  EXPECT_EQ(predict(model, rows, pool), labels);
}

TEST(SoftmaxRegression, predicts_every_row_of_many_blocks) {
  Pool pool(2);
  std::vector<int64_t> labels;
  const Matrix<float> rows = classes_in_space(1300, 9, 4, 12, labels);
  const SoftmaxModel model = SoftmaxRegression(rows, labels, pool).fit({.lambda = 1e-2});
  const std::vector<int64_t> found = predict(model, rows, pool);
  ASSERT_EQ(found.size(), rows.rows());
  for (size_t i = 0; i < rows.rows(); ++i)
    ASSERT_EQ(found[i], predict(model, rows.view().slice(i, 1), pool)[0]) << i;
  EXPECT_GT(top1_accuracy(found, labels), 0.6);
}

TEST(SoftmaxRegression, refuses_bad_input) {
  Pool pool(1);
  std::vector<int64_t> labels;
  Matrix<float> rows = classes_in_space(50, 4, 3, 5, labels);
  EXPECT_THROW(SoftmaxRegression(rows, std::vector<int64_t>{1, 2}, pool), Error);
  EXPECT_THROW(SoftmaxRegression(rows, labels, pool).fit({.lambda = 0}), Error);
  const SoftmaxModel model = SoftmaxRegression(rows, labels, pool).fit({});
  EXPECT_THROW(predict(model, Matrix<float>(3, 5), pool), Error);
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    Matrix<float> asked(3, 4);
    asked(1, 2) = bad;
    EXPECT_THROW(predict(model, asked, pool), Error);
  }
  rows(20, 1) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(SoftmaxRegression(rows, labels, pool), Error);
}

TEST(Lbfgs, finds_the_valley_of_a_stretched_bowl) {
  LbfgsProblem problem;
  problem.evaluate = [](const std::vector<double>& x, std::vector<double>& g) {
    double value = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double stretch = std::pow(10.0, double(i % 5)), away = x[i] - double(i);
      value += 0.5 * stretch * away * away + 0.25 * away * away * away * away;
      g[i] = stretch * away + away * away * away;
    }
    return value;
  };
  problem.enough = [](double, const std::vector<double>& g) {
    return std::inner_product(g.begin(), g.end(), g.begin(), 0.0) < 1e-16;
  };
  problem.inverse_curvature.assign(12, 1.0);
  std::vector<double> x(12, -3.0);
  const LbfgsResult result = minimise(problem, x, 500);
  EXPECT_TRUE(result.finished);
  for (size_t i = 0; i < 12; ++i) EXPECT_NEAR(x[i], double(i), 1e-7);
}

TEST(LinearProbe, grid_of_the_specification) {
  const std::vector<double> expected{5e-6, 1.2875e-4, 2.525e-4, 3.7625e-4, 5e-4},
      found = default_lambdas();
  ASSERT_EQ(found.size(), 5u);
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(found[i], expected[i], 1e-18);
}

TEST(LinearProbe, follows_the_protocol) {
  Pool pool(2);
  std::vector<int64_t> train_labels, validation_labels, test_labels;
  const Matrix<float> train = classes_in_space(500, 40, 5, 6, train_labels);
  const Matrix<float> validation = classes_in_space(100, 40, 5, 7, validation_labels);
  const Matrix<float> test = classes_in_space(300, 40, 5, 8, test_labels);
  const LabelledRows a{train, train_labels}, b{validation, validation_labels}, c{test, test_labels};
  const LinearProbeScore split = linear_probe(a, {}, c, {.pca = 20}, pool);
  EXPECT_EQ(split.fitted_rows, 500u);  // again on all rows
  EXPECT_TRUE(split.pca_applied);
  EXPECT_EQ(split.model.weights.cols(), 20u);
  EXPECT_EQ(split.validation.size(), 5u);
  EXPECT_GT(split.accuracy, 0.8);
  const LinearProbeScore given = linear_probe(a, b, c, {.pca = 0}, pool);
  EXPECT_EQ(given.fitted_rows, 500u);
  EXPECT_FALSE(given.pca_applied);
  EXPECT_EQ(given.model.weights.cols(), 40u);
  const LinearProbeScore few = linear_probe(a, {}, c, {.pca = 20, .shots = 6}, pool);
  EXPECT_EQ(few.fitted_rows, 30u);
  EXPECT_TRUE(few.pca_applied);
  EXPECT_FALSE(linear_probe(a, {}, c, {.pca = 30, .shots = 6}, pool).pca_applied);
  EXPECT_LT(few.accuracy, split.accuracy + 0.05);
  // The first of the best penalties wins, whichever it is.
  for (const std::vector<double>& lambdas : {std::vector{1e-2, 1.01e-2}, {1.01e-2, 1e-2}}) {
    const LinearProbeScore tie = linear_probe(a, b, c, {.lambdas = lambdas, .pca = 0}, pool);
    ASSERT_EQ(tie.validation[0], tie.validation[1]);
    EXPECT_EQ(tie.lambda, lambdas[0]);
  }
  EXPECT_THROW(linear_probe(a, {}, c, {.lambdas = {}}, pool), Error);
  EXPECT_THROW(linear_probe(a, {}, c, {.shots = 200}, pool), Error);
  EXPECT_THROW(linear_probe(a, {}, {validation.view().slice(0, 3), validation_labels}, {}, pool),
               Error);
}

// Nine rows of a class at 0 degrees for each of another at 40. A large penalty leaves little more
// than the sums of the classes, and the larger sum wins everywhere; a small one tells them apart.
TEST(LinearProbe, reports_each_fit) {
  Pool pool(2);
  std::vector<int64_t> train_labels, test_labels;
  const Matrix<float> train = classes_in_space(200, 10, 3, 6, train_labels);
  const Matrix<float> test = classes_in_space(50, 10, 3, 8, test_labels);
  const LabelledRows a{train, train_labels}, b{test, test_labels};
  std::vector<std::pair<size_t, size_t>> reports;
  LinearProbeOptions options{.lambdas = {1e-3, 1e-2}};
  options.progress = [&](size_t done, size_t total) { reports.emplace_back(done, total); };
  linear_probe(a, {}, b, options, pool);
  using Reports = std::vector<std::pair<size_t, size_t>>;
  EXPECT_EQ(reports, (Reports{{0, 3}, {1, 3}, {2, 3}, {3, 3}}));
  reports.clear();
  linear_probe(a, b, b, options, pool);
  EXPECT_EQ(reports, (Reports{{0, 2}, {1, 2}, {2, 2}})) << "the best of them is the last one";
}

TEST(LinearProbe, takes_the_best_penalty_wherever_it_stands) {
  Pool pool(2);
  Matrix<float> rows(100, 2);
  std::vector<int64_t> labels;
  for (size_t i = 0; i < 100; ++i) {
    labels.push_back(i % 10 == 3);
    const double angle = (i % 10 == 3 ? 40 : 0) + 0.1 * double(i) - 5;
    rows(i, 0) = float(std::cos(angle * M_PI / 180)),
            rows(i, 1) = float(std::sin(angle * M_PI / 180));
  }
  const LabelledRows all{rows, labels};
  for (const std::optional<LabelledRows>& validation : {std::optional<LabelledRows>(), {all}})
    for (const size_t best : {0u, 1u}) {
      std::vector<double> lambdas{100, 100};
      lambdas[best] = 1e-3;
      const LinearProbeScore score =
          linear_probe(all, validation, all, {.lambdas = lambdas, .pca = 0}, pool);
      EXPECT_GT(score.validation[best], score.validation[1 - best]);
      EXPECT_EQ(score.lambda, 1e-3);
      EXPECT_EQ(score.model.lambda, 1e-3);
      EXPECT_EQ(score.accuracy, 1) << "its model, not the last one";
    }
}

TEST(LinearProbe, fits_pca_choice_and_last_model_on_the_rows_of_the_protocol) {
  Pool pool(2);
  std::vector<int64_t> labels, test_labels;
  const Matrix<float> train = classes_in_space(200, 40, 5, 10, labels),
                      test = classes_in_space(100, 40, 5, 11, test_labels);
  const SoftmaxOptions solver{.lambda = 1e-2, .tolerance = 1e-9};
  const Split split = stratified_fraction(labels, 0.8, 7);
  for (const size_t shots : {0u, 6u}) {
    const LinearProbeScore score = linear_probe(
        {train, labels}, {}, {test, test_labels},
        {.lambdas = {1e-2}, .pca = 12, .shots = shots, .seed = 7, .tolerance = 1e-9}, pool);
    std::vector<size_t> fitted = split.first;
    if (shots) {
      fitted.clear();
      for (const size_t i : first_per_class(gather(labels, split.first), shots))
        fitted.push_back(split.first[i]);
    }
    const Pca pca = Pca::fit(gather(train, fitted), 12, pool);
    const Matrix<float> few = pca.transform(gather(train, fitted), pool),
                        chooser = pca.transform(gather(train, split.second), pool),
                        all = pca.transform(train, pool);
    const std::vector<int64_t> few_labels = gather(labels, fitted);
    const SoftmaxModel chosen = SoftmaxRegression(few, few_labels, pool).fit(solver),
                       last = shots ? SoftmaxRegression(few, few_labels, pool).fit(solver)
                                    : SoftmaxRegression(all, labels, pool).fit(solver);
    EXPECT_EQ(score.validation[0],
              top1_accuracy(predict(chosen, chooser, pool), gather(labels, split.second)));
    EXPECT_EQ(score.predicted, predict(last, pca.transform(test, pool), pool));
    EXPECT_TRUE(score.model.converged);
    ASSERT_EQ(score.model.weights.cols(), 12u);
    for (size_t i = 0; i < 5 * 12; ++i)
      EXPECT_NEAR(score.model.weights.data()[i], last.weights.data()[i], 1e-3) << shots;
  }
}

TEST(LinearProbe, names_the_side_and_the_row_that_is_not_finite) {
  Pool pool(2);
  std::vector<int64_t> labels, few_labels;
  const Matrix<float> good = classes_in_space(60, 4, 3, 9, labels);
  Matrix<float> bad = good.copy();
  bad(17, 2) = std::numeric_limits<float>::quiet_NaN();
  const LabelledRows a{good, labels}, b{bad, labels};
  const auto reason = [&](const LabelledRows& train, std::optional<LabelledRows> validation,
                          const LabelledRows& test) {
    return test::error_of([&] { linear_probe(train, validation, test, {}, pool); });
  };
  EXPECT_EQ(reason(a, a, a), "");
  for (const auto& [what, found] :
       {std::pair("training rows", reason(b, a, a)), std::pair("validation rows", reason(a, b, a)),
        std::pair("test rows", reason(a, {}, b))}) {
    EXPECT_EQ(found.find(what), 0u) << found;
    EXPECT_NE(found.find("row 17"), std::string::npos) << found;
  }
  // Too few rows for a split of their own.
  const Matrix<float> few = classes_in_space(12, 4, 5, 9, few_labels);
  const std::string split = reason({few, few_labels}, {}, {few, few_labels});
  EXPECT_NE(split.find("`validation="), std::string::npos) << split;
}

}  // namespace
}  // namespace fungi
