// SPDX-License-Identifier: Apache-2.0
// Whole evaluations of stores against the same steps taken by hand, what they tell meanwhile, and
// which combinations there are.
#include "fungi/evaluate/protocol.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "fungi/base/random.h"
#include "fungi/evaluate/cka.h"
#include "fungi/evaluate/fewshot.h"
#include "fungi/pca/pca.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"
#include "tests/support/made_store.h"

namespace fungi {
namespace {

using test::MadeRow;
using Names = std::vector<std::string>;

TEST(Combinations, OneBlockMoreAtATime) {
  EXPECT_EQ(combinations({"e", "k", "d"}, Combine::steps), (Names{"e", "e+k", "e+k+d"}));
  EXPECT_EQ(combinations({"e"}, Combine::steps), Names{"e"});
}

TEST(Combinations, AllAreCountedInBinary) {
  EXPECT_EQ(combinations({"e", "k", "d"}, Combine::all),
            (Names{"e", "k", "e+k", "d", "e+d", "k+d", "e+k+d"}));
  EXPECT_EQ(combinations(Names(10, "b"), Combine::all).size(), 1023u);
  EXPECT_ERROR("11 blocks have too many combinations", combinations(Names(11, "b"), Combine::all));
}

TEST(Combinations, AnOverviewHasFewerBlocksFirst) {
  EXPECT_EQ(combinations({"e", "k", "d"}, Combine::overview),
            (Names{"e", "k", "d", "e+k", "e+d", "k+d", "e+k+d"}));
  EXPECT_EQ(combinations({"e", "a", "b", "c", "d"}, Combine::overview),
            (Names{"e", "a", "b", "c", "d", "e+a", "e+a+b", "e+a+b+c", "e+a+b+c+d"}));
  EXPECT_EQ(combinations(Names(12, "b"), Combine::overview).size(), 23u);
}

// Rows of three classes around three points, in blocks of 6 and 4 columns.
class Protocol : public testing::Test {
 protected:
  static constexpr size_t kClasses = 3;
  static std::vector<float> near(size_t seed, size_t row, size_t label, size_t width) {
    const RandomStream random(seed, "protocol", row);
    std::vector<float> out;
    for (size_t c = 0; c < width; ++c)
      out.push_back(float(random.normal(c) + (c == label ? 2.0 : 0.0)));
    return out;
  }
  Store made(const std::string& name, size_t rows, size_t seed,
             const Names& classes = {"x", "y", "z"}, size_t used = kClasses) const {
    std::vector<MadeRow> list;
    for (size_t i = 0; i < rows; ++i)
      list.push_back({std::to_string(i),
                      int64_t(i % used),
                      {near(seed, i, i % used, 6), near(seed + 1, i, i % used, 4)}});
    test::write_made_store(folder_ / name, list, classes, {"embedding", "kl"});
    return Store::open(folder_ / name);
  }
  // The blocks of each row made 1 long and joined, by the store's own loading.
  static double by_hand(const Store& train, const Store& test, const std::string& features,
                        const std::vector<size_t>& rows, size_t k, size_t pca, Pool& pool) {
    const FeatureSet x = train.load(features), y = test.load(features);
    Matrix<float> kept = gather(x.features, rows);
    Matrix<float> asked = gather(y.features, all_rows(y.features.rows()));
    if (pca) {
      const Pca fitted = Pca::fit(kept, pca, pool);
      kept = fitted.transform(kept, pool), asked = fitted.transform(asked, pool);
    }
    return classify(kept, gather(x.labels, rows), asked, y.labels, {.k = k}, pool).accuracy;
  }
  static std::vector<size_t> all_rows(size_t count) {
    std::vector<size_t> rows(count);
    std::iota(rows.begin(), rows.end(), size_t{0});
    return rows;
  }

  test::TemporaryFolder folder_;
  Pool pool_{2};
};

TEST_F(Protocol, NeighboursAreThoseOfTheStepsByHand) {
  const Store train = made("train", 45, 1), test = made("test", 24, 9);
  for (const size_t pca : {size_t{0}, size_t{3}})
    for (const size_t shots : {size_t{0}, size_t{4}}) {
      const KnnResult result = evaluate_knn(
          train, test, {.combinations = {.rows = {.pca = pca}}, .k = 5, .shots = shots}, pool_);
      ASSERT_EQ(result.combinations.size(), 2u);
      EXPECT_EQ(result.k, 5u);
      EXPECT_EQ(result.train_rows, shots ? kClasses * shots : 45u);
      EXPECT_EQ(result.test_rows, 24u);
      EXPECT_TRUE(result.notes.empty());
      const std::vector<size_t> rows =
          shots ? first_per_class(train.labels(), shots) : all_rows(45);
      for (const KnnCombination& one : result.combinations) {
        EXPECT_EQ(one.score.accuracy, by_hand(train, test, one.features, rows, 5, pca, pool_));
        EXPECT_EQ(one.pca_applied, pca > 0);
        EXPECT_EQ(one.columns, pca ? pca : one.features == "embedding" ? 6u : 10u);
        EXPECT_EQ(one.score.votes.predicted.size(), 24u);
        EXPECT_NEAR(one.standard_error,
                    std::sqrt(one.score.accuracy * (1 - one.score.accuracy) / 24), 1e-15);
      }
    }
}

TEST_F(Protocol, FewShotRowsAreTheFirstOrADraw) {
  const Store train = made("train", 30, 1);
  EXPECT_EQ(few_shot_rows(train, 2, Sampling::first), (std::vector<size_t>{0, 1, 2, 3, 4, 5}));
  const std::vector<size_t> drawn = few_shot_rows(train, 2, Sampling::stratified);
  std::vector<size_t> same = stratified_split(train.labels(), 6, 42).first;
  std::sort(same.begin(), same.end());
  EXPECT_EQ(drawn, same);
  EXPECT_EQ(parse_sampling("stratified"), Sampling::stratified);
  EXPECT_ERROR("first, stratified", parse_sampling("last"));
  EXPECT_ERROR("class 'x' has 10", few_shot_rows(train, 11, Sampling::first));
}

TEST_F(Protocol, FewRowsAllVoteUnlessANumberWasGiven) {
  EXPECT_EQ(voters({}, 20).k, 20u);
  EXPECT_EQ(voters({}, 20).note, "");
  EXPECT_EQ(voters({}, 19).k, 19u);
  EXPECT_NE(voters({}, 19).note.find("19 training rows"), std::string::npos);
  EXPECT_EQ(voters(25, 19).k, 25u);
  EXPECT_EQ(voters(25, 19).note, "");
  const Store train = made("train", 9, 1), test = made("test", 9, 2);
  EXPECT_EQ(evaluate_knn(train, test, {}, pool_).k, 9u);
  EXPECT_ERROR("k", evaluate_knn(train, test, {.k = 10}, pool_));
}

TEST_F(Protocol, NotesComeAtOnceAndStayWithTheResult) {
  const Store train = made("train", 24, 1, {"x", "y", "z"}, 2), test = made("test", 9, 2);
  Names told, events;
  KnnProtocol protocol{.combinations = {.combine = Combine::all}};
  protocol.combinations.note = [&](const std::string& note) {
    told.push_back(note), events.push_back("note");
  };
  const KnnResult result = evaluate_knn(train, test, protocol, pool_, [&](KnnCombination& one) {
    events.push_back(one.features);
    one.score.votes = {};  // need not wait
  });
  EXPECT_EQ(told, Names{"3 of 9 test rows are of 1 classes without training rows: they count as "
                        "errors"});
  EXPECT_EQ(result.notes, told);
  EXPECT_EQ(events, (Names{"note", "embedding", "kl", "embedding+kl"}));
  for (const KnnCombination& one : result.combinations)
    EXPECT_TRUE(one.score.votes.predicted.empty());
}

TEST_F(Protocol, TheProbeAndTheClustersAreThoseOfTheStepsByHand) {
  const Store train = made("train", 45, 1), test = made("test", 24, 9), held = made("held", 12, 5);
  const FeatureSet x = train.load("kl"), y = test.load("kl"), v = held.load("kl");
  Names seen;
  CombinationOptions one{.features = "kl", .rows = {.pca = 2}};
  one.progress = [&](const std::string& features, size_t, size_t) { seen.push_back(features); };
  for (const Store* validation : {static_cast<const Store*>(nullptr), &held}) {
    const LinearResult result =
        evaluate_linear(train, test, validation, {.combinations = one}, pool_);
    const LinearProbeScore expected =
        linear_probe({x.features, x.labels},
                     validation ? std::optional(LabelledRows{v.features, v.labels}) : std::nullopt,
                     {y.features, y.labels}, {.pca = 2}, pool_);
    ASSERT_EQ(result.combinations.size(), 1u);
    const LinearCombination& found = result.combinations[0];
    EXPECT_EQ(found.score.predicted, expected.predicted);
    EXPECT_EQ(found.score.validation, expected.validation);
    EXPECT_EQ(found.columns, 2u);
    EXPECT_EQ(result.test_rows, 24u);
  }
  EXPECT_FALSE(seen.empty());

  const KMeansResult clusters = evaluate_kmeans(train, {.combinations = {.features = "kl"}}, pool_);
  EXPECT_EQ(clusters.combinations.at(0).score.kmeans.assignment,
            evaluate_clustering(x.features, x.labels, {}, pool_).kmeans.assignment);
  EXPECT_EQ(clusters.rows, 45u);
  const CkaResult cka = evaluate_cka(train, "", pool_);
  EXPECT_EQ(cka.blocks, (Names{"embedding", "kl"}));
  EXPECT_EQ(cka.cka(0, 1), linear_cka(train, cka.blocks, pool_)(0, 1));
}

TEST_F(Protocol, RankingOfAStoreByItselfLeavesOutEachQuery) {
  const Store store = made("train", 12, 1);
  const RankingTask task = same_class_task(store, store);
  ASSERT_EQ(task.relevances.size(), 1u);
  const Relevance of_five = task.relevances[0].second(5);  // rows 2, 5, 8 and 11 are of its class
  EXPECT_EQ(of_five.positive, (std::vector<uint32_t>{2, 8, 11}));
  EXPECT_EQ(of_five.junk, std::vector<uint32_t>{5});
  const FeatureSet x = store.load("kl");
  const RankingResult result =
      evaluate_ranking(store, store, task, {.combinations = {.features = "kl"}}, pool_);
  EXPECT_EQ(result.combinations.at(0).scores.at(0).second.map,
            evaluate_retrieval(x.features, x.features, task.relevances[0].second, {}, pool_).map);
}

TEST_F(Protocol, WhatCannotBeComparedIsRefused) {
  const Store train = made("train", 9, 1), other = made("other", 9, 1, {"x", "y", "w"});
  EXPECT_ERROR("'w'", evaluate_knn(train, other, {}, pool_));
  EXPECT_ERROR("dino", evaluate_knn(train, train, {.combinations = {.features = "dino"}}, pool_));
  std::vector<MadeRow> rows{{"a", -1, {{1, 2}}}, {"b", -1, {{2, 1}}}};
  test::write_made_store(folder_ / "flat", rows, {});
  const Store flat = Store::open(folder_ / "flat");
  EXPECT_ERROR("label", evaluate_knn(flat, flat, {}, pool_));
  EXPECT_ERROR("label", evaluate_kmeans(flat, {}, pool_));
  EXPECT_ERROR("label", same_class_task(flat, flat));
}

}  // namespace
}  // namespace fungi
