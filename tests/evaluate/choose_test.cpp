// SPDX-License-Identifier: Apache-2.0
// Weighted blocks, and the choice of weights against the exact search done by hand.
#include "fungi/evaluate/choose.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fungi/base/random.h"
#include "fungi/evaluate/protocol.h"
#include "fungi/feature/reduction.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"
#include "tests/support/made_store.h"

namespace fungi {
namespace {

using test::MadeRow;

// Three classes; `signal` says how far each block keeps them apart.
class Choosing : public testing::Test {
 protected:
  Store made(const std::vector<double>& signal, size_t rows = 90) {
    const std::vector<std::string> names{"embedding", "kl", "dino"};
    std::vector<MadeRow> list;
    for (size_t i = 0; i < rows; ++i) {
      MadeRow row{std::to_string(i), int64_t(i % 3), {}};
      for (size_t b = 0; b < signal.size(); ++b) {
        const RandomStream random(7 + b, "choosing", i);
        std::vector<float> block;
        for (size_t c = 0; c < 5 + b; ++c)
          block.push_back(float(random.normal(c) + (c == i % 3 ? signal[b] : 0.0)));
        row.blocks.push_back(std::move(block));
      }
      list.push_back(std::move(row));
    }
    const auto folder = folder_ / std::to_string(stores_++);
    test::write_made_store(folder, list, {"x", "y", "z"},
                           {names.begin(), names.begin() + ptrdiff_t(signal.size())});
    return Store::open(folder);
  }
  // Share of rows that the k nearest others classify, by the exact search on the joined rows.
  double by_hand(const Store& store, const std::string& features, size_t k) {
    const FeatureSet set = store.load(features);
    const Neighbours near = knn(set.features, set.features, k, pool_, {.skip_same_row = true});
    const Votes votes = vote(near, set.labels);
    size_t right = 0;
    for (size_t i = 0; i < set.labels.size(); ++i) right += votes.predicted[i] == set.labels[i];
    return double(right) / double(set.labels.size());
  }
  test::TemporaryFolder folder_;
  size_t stores_ = 0;
  Pool pool_{2};
};

TEST_F(Choosing, AWeightMultipliesTheUnitRowsOfItsBlock) {
  const Store store = made({1, 1});
  const FeatureSet plain = store.load("embedding+kl"), heavy = store.load("embedding+2.5*kl");
  EXPECT_EQ(features_of(store.select("0.5*embedding+2.5*kl")), "0.5*embedding+2.5*kl");
  for (size_t i = 0; i < store.rows(); ++i)
    for (size_t j = 0; j < plain.features.cols(); ++j)
      EXPECT_EQ(heavy.features(i, j), plain.features(i, j) * (j < 5 ? 1.0f : 2.5f));
  const std::vector<size_t> rows{3, 4, 80};
  Matrix<float> some(3, 11);
  store.read(store.select("embedding+2.5*kl"), true, rows, some);
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < 11; ++j) EXPECT_EQ(some(i, j), heavy.features(rows[i], j));
}

TEST_F(Choosing, WeightsThatAreNoneAreRefused) {
  const Store store = made({1, 1});
  for (const char* text : {"embedding+0*kl", "embedding+-1*kl", "x*kl", "*kl", "inf*kl", "1 *kl"})
    EXPECT_ERROR("expected a number above 0", store.select(text));
  EXPECT_ERROR("there is no block 'l'", store.select("2*l"));
  EXPECT_ERROR("named twice", store.select("kl+2*kl"));
}

TEST_F(Choosing, APcaRemembersTheWeights) {
  const Store store = made({1, 1});
  const Reduction fitted = Reduction::fit(store, "embedding+0.25*kl", 4, pool_);
  fitted.save(folder_ / "pca");
  const Reduction opened = Reduction::open(folder_ / "pca");
  EXPECT_EQ(opened.features(), "embedding+0.25*kl");
  std::vector<Matrix<float>> parts[2];
  for (int i = 0; i < 2; ++i)
    (i ? opened : fitted).each_part(store, pool_, [&](size_t, View<const float> part) {
      parts[i].push_back(copy_of(part));
    });
  EXPECT_EQ(parts[0][0](3, 1), parts[1][0](3, 1));
  const Reduction light = Reduction::fit(store, "embedding+kl", 4, pool_);
  bool same = true;
  light.each_part(store, pool_, [&](size_t, View<const float> part) {
    for (size_t i = 0; i < part.rows; ++i) same &= part(i, 0) == parts[0][0](i, 0);
  });
  EXPECT_FALSE(same);
}

TEST_F(Choosing, ScoresAreThoseOfTheExactSearch) {
  const Store store = made({1.2, 1.5, 0.8});
  const Choice choice = choose_features(store, {.weights = {0.5, 1, 2}, .k = 7}, pool_);
  ASSERT_EQ(choice.best_of_blocks.size(), 4u);
  for (const WeightedFeatures& one : choice.best_of_blocks)
    EXPECT_DOUBLE_EQ(one.accuracy, by_hand(store, one.features, 7)) << one.features;
  EXPECT_EQ(choice.first.features, "embedding");
  EXPECT_EQ(choice.equal.features, "embedding+kl+dino");
  EXPECT_DOUBLE_EQ(choice.equal.accuracy, by_hand(store, "embedding+kl+dino", 7));
  // No weights of these blocks are better than those that are said to be the best.
  for (const char* other : {"embedding+0.5*kl", "embedding+kl", "embedding+2*kl"})
    EXPECT_LE(by_hand(store, other, 7), choice.best_of_blocks[1].accuracy);
  EXPECT_NEAR(choice.equal.gain, choice.equal.accuracy - choice.first.accuracy, 1e-12);
  EXPECT_GT(choice.equal.gain_error, 0);
}

TEST_F(Choosing, ABlockThatHelpsIsTakenAndNoiseIsNot) {
  const Choice choice = choose_features(made({0.5, 4, 0}, 300), {.k = 9}, pool_);
  EXPECT_GT(choice.chosen.weights[1], 0.9);
  EXPECT_GT(choice.expected_gain, 3 * choice.expected_error);
  EXPECT_LE(choice.expected, choice.chosen.accuracy + 0.02);
  EXPECT_TRUE(choice.notes.empty());
  const Choice none = choose_features(made({3, 0, 0}, 300), {.k = 9}, pool_);
  EXPECT_LT(none.chosen.weights[1] + none.chosen.weights[2], 1.1);
  EXPECT_LT(none.expected_gain, 0.02);
  EXPECT_EQ(none.notes.size(), 1u);
}

// Without any signal the best of many is chance, which is seen where it had no say.
TEST_F(Choosing, WhatGainsNothingIsNotChosen) {
  size_t alone = 0;
  for (const double signal : {3.0, 2.0, 1.5, 1.0}) {
    const Choice choice = choose_features(made({signal, 0, 0}, 200), {.k = 9}, pool_);
    EXPECT_EQ(choice.chosen.features == "embedding",
              choice.expected_gain <= 0 || choice.chosen.gain == 0);
    alone += choice.chosen.features == "embedding";
    EXPECT_EQ(choice.notes.size(), 1u);
  }
  EXPECT_GE(alone, 2u);
}

// Blocks that help alike keep equal weights, though chance puts others ahead on few rows.
TEST_F(Choosing, BlocksThatHelpAlikeWeighAlike) {
  const Choice choice = choose_features(made({1, 1, 1}, 120), {.k = 9}, pool_);
  for (const double weight : choice.chosen.weights) {
    EXPECT_GE(weight, 0.5);
    EXPECT_LE(weight, 2);
  }
  EXPECT_LE(choice.chosen.accuracy, choice.best_of_blocks.back().accuracy);
}

TEST_F(Choosing, ThreadsChangeNothing) {
  const Store store = made({1, 1, 1});
  Pool one(1);
  const Choice a = choose_features(store, {.k = 5}, pool_),
               b = choose_features(store, {.k = 5}, one);
  EXPECT_EQ(a.chosen.features, b.chosen.features);
  EXPECT_EQ(a.expected, b.expected);
}

TEST_F(Choosing, LargerStoresAreDrawnFrom) {
  const Choice choice = choose_features(made({1, 1}), {.k = 5, .most_rows = 50}, pool_);
  EXPECT_EQ(choice.rows, 50u);
  ASSERT_FALSE(choice.notes.empty());
  EXPECT_NE(choice.notes[0].find("50 of 90 rows"), std::string::npos);
}

// Two draws of a class's signal in a block, beside noise of their own.
TEST_F(Choosing, WithoutLabelsWhatTwoDrawsAgreeOnIsTaken) {
  const auto draw = [&](uint64_t seed, double signal, double noise) {
    std::vector<MadeRow> list;
    for (size_t i = 0; i < 120; ++i) {
      const RandomStream same(1, "sample", i), own(seed, "draw", i);
      MadeRow row{std::to_string(i), -1, {{}, {}, {}}};
      for (size_t c = 0; c < 6; ++c) {
        row.blocks[0].push_back(float(same.normal(c)));
        row.blocks[1].push_back(float(signal * same.normal(10 + c) + noise * own.normal(c)));
        row.blocks[2].push_back(float(own.normal(20 + c)));
      }
      list.push_back(std::move(row));
    }
    const auto folder = folder_ / std::to_string(stores_++);
    test::write_made_store(folder, list, {}, {"embedding", "kl", "dino"});
    return Store::open(folder);
  };
  const Store a = draw(1, 1, 0.1), b = draw(2, 1, 0.1);
  const StableChoice choice = choose_stable_features(a, b, {.k = 7}, pool_);
  EXPECT_GT(choice.chosen.weights[1], 0);
  EXPECT_LE(choice.chosen.weights[2], 0.25);  // so little changes no neighbour
  EXPECT_GT(choice.chosen.gain, 3 * choice.chosen.gain_error);
  ASSERT_EQ(choice.best_of_blocks.size(), 4u);
  EXPECT_EQ(choice.best_of_blocks[0].features, "embedding");
  EXPECT_EQ(choice.best_of_blocks[0].gain, 0);
  // The shares, by the exact search on the joined rows.
  const WeightedFeatures one{.features = choice.best_of_blocks[3].features};
  const auto near = [&](const Store& store, const std::string& features) {
    const FeatureSet set = store.load(features);
    return knn(set.features, set.features, 7, pool_, {.skip_same_row = true});
  };
  const Neighbours first = near(a, one.features), second = near(b, one.features),
                   alone = near(a, "embedding");
  double agreed = 0, disputed = 0;
  const auto has = [](const Neighbours& n, size_t row, uint32_t id) {
    const auto* begin = n.index.row(row);
    return std::find(begin, begin + 7, id) != begin + 7;
  };
  for (size_t i = 0; i < 120; ++i)
    for (size_t j = 0; j < 7; ++j) {
      const uint32_t id = second.index(i, j);
      disputed += !has(first, i, id);
      agreed += has(first, i, id) && !has(alone, i, id);
    }
  EXPECT_NEAR(choice.best_of_blocks[3].agreed, agreed / 840, 1e-12);
  EXPECT_NEAR(choice.best_of_blocks[3].disputed, disputed / 840, 1e-12);

  const StableChoice noise = choose_stable_features(draw(1, 0, 1), draw(2, 0, 1), {.k = 7}, pool_);
  EXPECT_EQ(noise.chosen.features, "embedding");
  EXPECT_EQ(noise.notes.size(), 1u);
  EXPECT_ERROR("its samples are not those", choose_stable_features(a, made({1, 1, 1}), {}, pool_));
}

TEST_F(Choosing, WhatCannotBeChosenFrom) {
  const Store store = made({1, 1});
  EXPECT_ERROR("expected two or more", choose_features(store, {.features = "embedding"}, pool_));
  EXPECT_ERROR("expected a number above 0", choose_features(store, {.weights = {0}}, pool_));
  EXPECT_ERROR("stands there twice", choose_features(store, {.weights = {1, 1}}, pool_));
  EXPECT_ERROR("expected at least 2", choose_features(store, {.folds = 1}, pool_));
  EXPECT_ERROR("too few", choose_features(store, {.k = 90}, pool_));
}

}  // namespace
}  // namespace fungi
