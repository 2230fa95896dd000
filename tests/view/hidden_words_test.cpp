// SPDX-License-Identifier: Apache-2.0
// Hidden words: how many, which, and what stands in their place.
#include "fungi/view/hidden_words.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "tests/support/errors.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

constexpr int32_t kStart = 2, kEnd = 3, kMask = 4;

class HiddenWordsTest : public ::testing::Test {
 protected:
  HiddenWordsTest() {
    std::ofstream out(folder / "vocab.txt");
    for (const char* piece : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) out << piece << '\n';
    for (char c = 'a'; c <= 'z'; ++c) out << c << '\n';
    out.close();
    reading = {Tokenizer::open(folder.path()), 64};
  }
  static std::vector<int32_t> ids(ViewMaker& views, size_t view) {
    InputBuffer buffer;
    views.write(view, buffer);
    const auto written = buffer.inputs().texts[0].ids;
    return {written.begin(), written.end()};
  }
  test::TemporaryFolder folder;
  TextReading reading;
};

TEST_F(HiddenWordsTest, SoManyAreHiddenAndTheRestStays) {
  for (const auto& [text, share, count] :
       {std::tuple("a b c d e f g h i j k l m n o p q r s t", 0.15, size_t{3}),
        {"a b c", 0.15, 1},
        {"a", 0.15, 1},
        {"", 0.15, 0},
        {"a b c", 0.0, 1},
        {"a b c", 1.0, 3}}) {
    HiddenWordViews views({.views = 5, .share = share}, reading);
    const Sample sample = Text{text};
    views.open(sample, 9);
    const std::vector<int32_t> whole = reading.tokenizer->encode(text).ids;
    for (size_t v = 0; v < 5; ++v) {
      const std::vector<int32_t> shown = ids(views, v);
      const auto words = views.hidden_words(v);
      ASSERT_EQ(shown.size(), whole.size());
      ASSERT_EQ(words.size(), whole.size());
      size_t hidden = 0;
      for (size_t i = 0; i < whole.size(); ++i) {
        if (words[i] < 0) {
          EXPECT_EQ(shown[i], whole[i]);
          continue;
        }
        ++hidden;
        EXPECT_EQ(words[i], whole[i]);
        EXPECT_TRUE(whole[i] != kStart && whole[i] != kEnd);
      }
      EXPECT_EQ(hidden, count) << text;
    }
  }
}

TEST_F(HiddenWordsTest, EveryWordHasItsTurn) {
  HiddenWordViews views({.views = 4, .share = 0.25}, reading);
  const Sample sample = Text{"a b c d e f g h"};
  for (uint32_t seed = 0; seed < 20; ++seed) {
    views.open(sample, seed);
    std::set<size_t> hidden;
    for (size_t v = 0; v < 4; ++v)
      for (size_t i = 0; i < 10; ++i)
        if (views.hidden_words(v)[i] >= 0) hidden.insert(i);
    EXPECT_EQ(hidden.size(), 8u) << "seed " << seed;
  }
}

TEST_F(HiddenWordsTest, WhatStandsThereIsAsBertWasTrained) {
  std::map<std::string, size_t> seen;
  std::set<int32_t> others;
  for (const auto rule : {HiddenWords::Rule::mixed, HiddenWords::Rule::mask_only}) {
    seen.clear();
    HiddenWordViews views({.views = 4, .share = 0.25, .rule = rule}, reading);
    const Sample sample = Text{"a b c d e f g h"};
    for (uint32_t seed = 0; seed < 1000; ++seed) {
      views.open(sample, seed);
      for (size_t v = 0; v < 4; ++v) {
        const std::vector<int32_t> shown = ids(views, v);
        for (size_t i = 0; i < shown.size(); ++i) {
          const int32_t word = views.hidden_words(v)[i];
          if (word < 0) continue;
          ++seen[shown[i] == kMask ? "mask" : shown[i] == word ? "same" : "other"];
          if (shown[i] != kMask && shown[i] != word) others.insert(shown[i]);
        }
      }
    }
    if (rule == HiddenWords::Rule::mask_only) break;
    EXPECT_NEAR(double(seen["mask"]) / 8000, 0.8 + 0.1 / 31, 0.015);
    EXPECT_NEAR(double(seen["same"]) / 8000, 0.1 + 0.1 / 31, 0.012);
    EXPECT_NEAR(double(seen["other"]) / 8000, 0.1 * 29 / 31, 0.012);
    EXPECT_GT(others.size(), 25u);
  }
  EXPECT_EQ(seen["mask"], 8000u);
}

TEST_F(HiddenWordsTest, TheSeedDecides) {
  HiddenWordViews views({.views = 3}, reading), again({.views = 3}, reading);
  const Sample sample = Text{"a b c d e f g h i j k l"};
  std::set<std::vector<int32_t>> all;
  for (uint32_t seed = 0; seed < 30; ++seed) {
    views.open(sample, seed), again.open(sample, seed);
    for (size_t v = 0; v < 3; ++v) EXPECT_EQ(ids(views, v), ids(again, v));
    all.insert(ids(views, 0));
  }
  EXPECT_GT(all.size(), 15u);
}

// Equal views are computed once: they are equal where the words to be guessed are, too.
TEST_F(HiddenWordsTest, EqualViewsGuessTheSame) {
  HiddenWordViews views({.views = 12}, reading);
  const Sample sample = Text{"a b"};
  std::set<std::pair<std::vector<int32_t>, std::vector<int32_t>>> different;
  views.open(sample, 3);
  for (size_t v = 0; v < 12; ++v) {
    const auto words = views.hidden_words(v);
    const bool fresh =
        different.insert({ids(views, v), std::vector<int32_t>(words.begin(), words.end())}).second;
    EXPECT_EQ(views.same_as(v) == v, fresh) << v;
  }
  EXPECT_LT(different.size(), 12u);
}

TEST_F(HiddenWordsTest, ALongTextIsCutAndWrongCallsAreErrors) {
  reading.longest = 5;
  HiddenWordViews views({.views = 2}, reading);
  const Sample sample = Text{"a b c d"}, bytes = Text{"a\xff"};
  EXPECT_ERROR("open", [&] {
    InputBuffer b;
    views.write(0, b);
  }());
  views.open(sample, 1);
  EXPECT_TRUE(views.cut());
  EXPECT_EQ(ids(views, 1).size(), 5u);
  EXPECT_ERROR("UTF-8", views.open(bytes, 1));
  EXPECT_ERROR("1 to", HiddenWordViews({.views = 0}, reading));
}

}  // namespace
}  // namespace fungi
