// SPDX-License-Identifier: Apache-2.0
// Few-shot rows by the protocol, stratified splits index for index as scikit-learn draws them.
#include "fungi/evaluate/fewshot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "fungi/base/numpy_random.h"
#include "tests/evaluate/golden.h"

namespace fungi {
namespace {

TEST(NumpyRandom, permutation_is_numpys) {
  const std::vector<int64_t> expected = integers(golden_json("permutation"));
  const std::vector<size_t> found = NumpyRandom(42).permutation(20);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), found.begin(), found.end(),
                         [](int64_t a, size_t b) { return size_t(a) == b; }));
  EXPECT_TRUE(NumpyRandom(1).permutation(0).empty());
  EXPECT_EQ(NumpyRandom(1).permutation(1), std::vector<size_t>{0});
}

TEST(StratifiedSplit, indices_are_scikit_learns) {
  const auto golden = golden_json("splits");
  ASSERT_EQ(golden.size(), 6u);
  for (const auto& item : golden) {
    SCOPED_TRACE(item["name"].get<std::string>());
    std::vector<int64_t> labels = integers(item["labels"]);
    if (labels.size() == 2) {  // {classes, rows of each}
      const int64_t classes = labels[0], each = labels[1];
      labels.clear();
      for (int64_t c = 0; c < classes; ++c) labels.insert(labels.end(), size_t(each), c);
    }
    const Split split = stratified_split(labels, item["n_train"].get<size_t>());
    EXPECT_EQ(split.first.size() + split.second.size(), labels.size());
    for (const char* side : {"train", "test"}) {
      const std::vector<size_t>& found = side == std::string("train") ? split.first : split.second;
      const std::vector<int64_t> expected = integers(item[side]);
      for (size_t i = 0; i < expected.size(); ++i)
        ASSERT_EQ(found[i], size_t(expected[i])) << side << i;
      uint64_t digest = 0;
      for (size_t i = 0; i < found.size(); ++i) digest += (i + 1) * found[i];
      EXPECT_EQ(digest % (uint64_t{1} << 31), item[std::string(side) + "_digest"].get<uint64_t>());
    }
  }
}

TEST(StratifiedSplit, fraction_is_sorted) {
  std::vector<int64_t> labels;
  for (int i = 0; i < 101; ++i) labels.push_back(i % 4);
  const Split split = stratified_fraction(labels, 0.8);
  EXPECT_EQ(split.first.size(), 80u);
  EXPECT_EQ(split.second.size(), 21u);
  EXPECT_TRUE(std::is_sorted(split.first.begin(), split.first.end()));
  EXPECT_TRUE(std::is_sorted(split.second.begin(), split.second.end()));
}

TEST(StratifiedSplit, refuses_what_scikit_learn_refuses) {
  const std::vector<int64_t> single{0, 0, 1}, four{0, 0, 1, 1}, missing{0, 0, -1, 1, 1};
  EXPECT_THROW(stratified_split(single, 2), Error);
  EXPECT_THROW(stratified_split(four, 1), Error);
  EXPECT_THROW(stratified_split(four, 3), Error);
  EXPECT_THROW(stratified_split(four, 9), Error);
  EXPECT_NO_THROW(stratified_split(four, 2));
  EXPECT_THROW(stratified_split(missing, 2), Error);
  EXPECT_THROW(stratified_fraction(four, 1.0), Error);
  EXPECT_THROW(stratified_fraction(four, 0.0), Error);
}

TEST(FirstPerClass, takes_the_first_of_each_in_order) {
  const std::vector<int64_t> labels{5, 2, 5, 2, 2, 5, 5};
  EXPECT_EQ(first_per_class(labels, 2), (std::vector<size_t>{0, 1, 2, 3}));
  EXPECT_EQ(first_per_class(labels, 3), (std::vector<size_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_THROW(first_per_class(labels, 4), Error);
  EXPECT_THROW(first_per_class(labels, 0), Error);
  const auto reason = [](const std::function<void()>& refused) -> std::string {
    try {
      refused();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  const ClassNames names{"bag", "coat", "dress"};
  const std::string shots = reason([&] {
    first_per_class(std::vector<int64_t>{1, 0, 1}, 2, names);
  }),
                    split = reason([&] {
                      stratified_split(std::vector<int64_t>{0, 0, 2, 1, 1}, 3, 42, names);
                    });
  EXPECT_NE(shots.find("class 'bag' has 1"), std::string::npos) << shots;
  EXPECT_NE(split.find("class 'dress' has 1"), std::string::npos) << split;
  EXPECT_THROW(first_per_class({}, 1), Error);
}

}  // namespace
}  // namespace fungi
