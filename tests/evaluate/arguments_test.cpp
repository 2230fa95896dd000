// SPDX-License-Identifier: Apache-2.0
// What callers of the evaluations get wrong: nothing to score, no functions, a temporary to fit.
#include <gtest/gtest.h>

#include "fungi/evaluate/classify.h"
#include "fungi/evaluate/positive_ranks.h"
#include "fungi/evaluate/retrieval.h"
#include "fungi/evaluate/softmax_regression.h"
#include "tests/support/errors.h"

namespace fungi {
namespace {

TEST(EvaluateArguments, FunctionsAndRanksMustBeThere) {
  Pool pool(1);
  const Matrix<float> rows(5, 8);
  EXPECT_ERROR("expected ranks", score_ranks({}, {1}));
  EXPECT_ERROR("found none", evaluate_retrieval(rows, rows, RelevanceOf{}, {}, pool));
  const RelevanceOf all = [](size_t) { return Relevance{{1}, {}}; };
  EXPECT_ERROR("found none", evaluate_retrieval(5, 5, FillKeys{}, all, {}, pool));
  EXPECT_ERROR("found none", evaluate_retrieval(
                                 5, 5, [](size_t, View<double>) {}, RelevanceOf{}, {}, pool));
  const std::vector<int64_t> labels(5);
  EXPECT_ERROR("found none", classify(RowCounts{5, 5}, labels, labels, {}, nullptr));
  EXPECT_ERROR("asked for row 5 of 5", gather(Labels(labels), std::vector<size_t>{0, 5}));
}

TEST(EvaluateArguments, ARegressionStartsFromAModelOfItsKind) {
  Pool pool(1);
  Matrix<float> rows(6, 2), wide(6, 3);
  for (size_t i = 0; i < 6; ++i) rows(i, i % 2) = wide(i, i % 3) = 1;
  const std::vector<int64_t> labels{0, 1, 0, 1, 0, 1}, three{0, 1, 2, 0, 1, 2};
  SoftmaxRegression regression(rows, labels, pool);
  const SoftmaxModel model = regression.fit({});
  EXPECT_EQ(regression.fit({}, &model).labels, model.labels);
  EXPECT_ERROR("width 2", SoftmaxRegression(wide, labels, pool).fit({}, &model));
  EXPECT_ERROR("3 classes", SoftmaxRegression(rows, three, pool).fit({}, &model));
  static_assert(!std::is_constructible_v<SoftmaxRegression, Matrix<float>, Labels, Pool&>);
}

}  // namespace
}  // namespace fungi
