// SPDX-License-Identifier: Apache-2.0
// Votes and figures against scikit-learn and SPEC 7.6.
#include "fungi/evaluate/classify.h"

#include <gtest/gtest.h>

#include <limits>

#include "fungi/evaluate/metrics.h"
#include "tests/evaluate/golden.h"
#include "tests/support/errors.h"

namespace fungi {
namespace {

Neighbours neighbours_of(const std::vector<std::vector<uint32_t>>& rows) {
  Neighbours out{Matrix<uint32_t>(rows.size(), rows[0].size()),
                 Matrix<double>(rows.size(), rows[0].size())};
  for (size_t i = 0; i < rows.size(); ++i)
    for (size_t b = 0; b < rows[i].size(); ++b)
      out.index(i, b) = rows[i][b], out.value(i, b) = double(b + 1);
  return out;
}

TEST(Classify, predictions_with_many_ties_are_scikit_learns) {
  Pool pool(2);
  const auto golden = golden_json("knn");
  const Matrix<float> train = golden_matrix("knn_train"), test = golden_matrix("knn_test");
  const std::vector<int64_t> labels = integers(golden["labels"]);
  const Neighbours found = knn(train, test, 20, pool);
  for (size_t i = 0; i < test.rows(); ++i)
    for (size_t b = 0; b < 20; ++b)
      ASSERT_EQ(found.index(i, b), golden["neighbours"][i][b].get<uint32_t>());
  const Votes votes = vote(found, labels);
  EXPECT_EQ(votes.predicted, integers(golden["votes"]));
  const std::vector<int64_t> clear = integers(golden["clear"]),
                             expected = integers(golden["clear_predictions"]);
  ASSERT_GT(clear.size(), 3u);
  for (size_t i = 0; i < clear.size(); ++i)
    EXPECT_EQ(votes.predicted[size_t(clear[i])], expected[i]);
}

TEST(Classify, uniform_and_weighted_votes_are_scikit_learns) {
  Pool pool(2);
  const auto golden = golden_json("knn");
  const Matrix<float> train = golden_matrix("knn_smooth_train"),
                      test = golden_matrix("knn_smooth_test");
  const std::vector<int64_t> labels = integers(golden["smooth_labels"]),
                             targets = integers(golden["smooth_targets"]);
  for (size_t k : {1u, 4u, 20u}) {
    const std::string end = "_" + std::to_string(k);
    const KnnScore uniform = classify(train, labels, test, targets, {.k = k}, pool);
    EXPECT_EQ(uniform.votes.predicted, integers(golden["smooth_uniform" + end])) << k;
    const KnnScore weighted =
        classify(train, labels, test, targets, {.k = k, .vote = Vote::distance}, pool);
    EXPECT_EQ(weighted.votes.predicted, integers(golden["smooth_distance" + end])) << k;
    EXPECT_FALSE(uniform.auc.has_value());
    if (k == 20) {
      EXPECT_EQ(uniform.accuracy, golden["smooth_accuracy"].get<double>());
      EXPECT_NEAR(uniform.mean_per_class, golden["smooth_mean_per_class"].get<double>(), 1e-15);
    }
  }
}

TEST(Classify, area_under_the_curve_is_scikit_learns) {
  Pool pool(2);
  const auto golden = golden_json("auc");
  const std::vector<int64_t> labels = integers(golden["labels"]),
                             targets = integers(golden["targets"]);
  const Matrix<float> train = golden_matrix("auc_train"), test = golden_matrix("auc_test");
  const KnnScore score = classify(train, labels, test, targets, {}, pool);
  ASSERT_TRUE(score.auc.has_value());
  EXPECT_NEAR(*score.auc, golden["auc"].get<double>(), 1e-12);
  // Without one of the classes among the targets there is no curve.
  std::vector<int64_t> one_kind(targets.size(), 1);
  EXPECT_FALSE(classify(train, labels, test, one_kind, {}, pool).auc.has_value());
  // Rows of a third class have no place on it.
  Matrix<float> more(test.rows() + 2, test.cols());
  std::copy_n(test.data(), test.rows() * test.cols(), more.data());
  std::vector<int64_t> strange = targets;
  strange.push_back(7), strange.push_back(7);
  EXPECT_EQ(classify(train, labels, more, strange, {}, pool).auc, score.auc);
}

TEST(Classify, equal_votes_go_to_the_smallest_label) {
  const std::vector<int64_t> labels{3, 3, 1, 1, 9};
  EXPECT_EQ(vote(neighbours_of({{0, 1, 2, 3}}), labels).predicted,
            (std::vector<int64_t>{1}));  // SPEC 7.6
  EXPECT_EQ(vote(neighbours_of({{4, 0, 2}, {0, 4, 2}}), labels).predicted,
            (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(vote(neighbours_of({{0, 1, 2, 4}}), labels, Vote::uniform, 1).predicted,
            (std::vector<int64_t>{3}));
  // 1/1 for class 3 against 1/2 + 1/3 for class 1.
  EXPECT_EQ(vote(neighbours_of({{0, 2, 3}}), labels, Vote::distance).predicted,
            (std::vector<int64_t>{3}));
}

TEST(Classify, neighbours_at_distance_zero_vote_alone) {
  Neighbours found = neighbours_of({{0, 1, 2}});
  found.value(0, 0) = 0, found.value(0, 1) = 1e-9, found.value(0, 2) = 1e-9;
  const std::vector<int64_t> labels{5, 2, 2};
  const Votes votes = vote(found, labels, Vote::distance);
  EXPECT_EQ(votes.predicted[0], 5);
  EXPECT_EQ(votes.second_share[0], 1);
}

TEST(Classify, one_class_and_k_of_all_rows) {
  Pool pool(1);
  Matrix<float> train(4, 2), test(2, 2);
  const std::vector<int64_t> labels{7, 7, 7, 7}, targets{7, 3};
  const KnnScore score = classify(train, labels, test, targets, {.k = 4}, pool);
  EXPECT_EQ(score.votes.predicted, (std::vector<int64_t>{7, 7}));
  EXPECT_EQ(score.accuracy, 0.5);
  EXPECT_EQ(score.mean_per_class, 0.5);
}

TEST(Classify, refuses_bad_input) {
  Pool pool(1);
  Matrix<float> train(4, 2), test(2, 2);
  const std::vector<int64_t> labels{0, 1, 0, 1}, targets{0, 1}, missing{0, -1, 0, 1};
  EXPECT_THROW(classify(train, labels, test, targets, {.k = 5}, pool), Error);
  EXPECT_THROW(classify(train, targets, test, targets, {.k = 1}, pool), Error);
  EXPECT_THROW(classify(train, labels, test, labels, {.k = 1}, pool), Error);
  EXPECT_THROW(classify(train, labels, Matrix<float>(2, 3), targets, {.k = 1}, pool), Error);
  EXPECT_THROW(classify(train, labels, test, targets,
                        {.k = 1, .vote = Vote::distance, .metric = Metric::cosine}, pool),
               Error);
  EXPECT_ERROR("row 1 has none", classify(train, missing, test, targets, {.k = 1}, pool));
  EXPECT_THROW(vote(neighbours_of({{0, 9}}), labels), Error);
  EXPECT_THROW(vote(neighbours_of({{0, 1}}), labels, Vote::uniform, 3), Error);
}

TEST(Metrics, vectors_of_the_specification) {
  const std::vector<int64_t> a{1, 1, 4, 3}, b{1, 1, 3, 4}, c{1, 1, 2, 2}, d{1, 2, 2, 1};
  EXPECT_NEAR(mean_per_class_accuracy(a, b), 1.0 / 3, 1e-15);
  EXPECT_EQ(mean_per_class_accuracy(c, d), 0.5);
  EXPECT_EQ(top1_accuracy(a, b), 0.5);
  // A class that is only predicted does not count.
  EXPECT_EQ(mean_per_class_accuracy(std::vector<int64_t>{0, 8}, std::vector<int64_t>{0, 1}), 0.5);
  const std::vector<ClassAccuracy> by_class = accuracy_by_class(a, b);
  ASSERT_EQ(by_class.size(), 3u);
  EXPECT_EQ(by_class[0].label, 1);
  EXPECT_EQ(by_class[0].correct, 2u);
  EXPECT_EQ(by_class[2].total, 1u);
}

TEST(Metrics, refuses_bad_input) {
  const std::vector<int64_t> none, one{1}, two{1, 2}, missing{-1, 1};
  EXPECT_THROW(top1_accuracy(none, none), Error);
  EXPECT_THROW(top1_accuracy(one, two), Error);
  EXPECT_THROW(top1_accuracy(two, missing), Error);
  const std::vector<double> scores{0.1, 0.2};
  EXPECT_THROW(area_under_curve(scores, {true, true}), Error);
  EXPECT_THROW(area_under_curve(scores, {true}), Error);
  EXPECT_THROW(area_under_curve(std::vector<double>{0.1, std::numeric_limits<double>::quiet_NaN()},
                                {true, false}),
               Error);
  EXPECT_EQ(area_under_curve(scores, {false, true}), 1);
  EXPECT_EQ(area_under_curve(std::vector<double>{1, 1, 1}, {false, true, true}), 0.5);
}

}  // namespace
}  // namespace fungi
