// SPDX-License-Identifier: Apache-2.0
// Deleted words against nlpaug (tests/golden/make_word_deletion.py), and the two rules of drawing.
#include "fungi/view/word_deletion.h"

#include <gtest/gtest.h>

#include <set>

#include "fungi/base/error.h"
#include "tests/input/pattern.h"

namespace fungi {
namespace {

using nlohmann::json;

const json& golden() {
  static const json cases = testing::golden_json("view/word_deletion.json");
  return cases;
}

TEST(WordDeletion, WordsAndCandidatesAreTheReferences) {
  size_t cases = 0;
  for (const json& c : golden()["cases"]) {
    const std::string text = c["text"];
    const DeletableWords words(text);
    EXPECT_EQ(std::vector<std::string>(words.words().begin(), words.words().end()),
              c["tokens"].get<std::vector<std::string>>())
        << text;
    EXPECT_EQ(words.candidates(), c["candidates"].get<std::vector<size_t>>()) << text;
    if (!words.candidates().empty()) {
      EXPECT_EQ(words.count(0.1), c["count"].get<size_t>()) << text;
    }
    ++cases;
  }
  EXPECT_GE(cases, 40u);
}

TEST(WordDeletion, WhatIsLeftIsJoinedAsTheReferenceDoes) {
  size_t deletions = 0;
  for (const json& c : golden()["cases"]) {
    const std::string text = c["text"];
    const DeletableWords words(text);
    for (const json& d : c["deletions"]) {
      EXPECT_EQ(words.without(d["indices"].get<std::vector<size_t>>()), d["out"].get<std::string>())
          << text << " without " << d["indices"];
      ++deletions;
    }
  }
  EXPECT_GE(deletions, 300u);
}

TEST(WordDeletion, TheNumberOfDeletedWordsIsTheReferences) {
  for (const auto& [words, count] : golden()["counts"].items()) {
    std::string text;
    for (int i = 0; i < std::stoi(words); ++i) text += "w ";
    EXPECT_EQ(DeletableWords(text).count(0.1), count.get<size_t>()) << words;
  }
}

// One of nine words is chosen by every seed, each about as often; the draw depends on the seed
// alone.
TEST(WordDeletion, DrawsAreUniformAndRepeatable) {
  const DeletableWords words("a b c d e f g h , i");
  std::map<std::string, size_t> seen;
  for (uint32_t seed = 0; seed < 2700; ++seed) {
    TorchRandom random(seed), again(seed);
    const std::string drawn = words.draw(0.1, random);
    EXPECT_EQ(words.draw(0.1, again), drawn);
    ++seen[drawn];
  }
  EXPECT_EQ(seen.size(), 9u);
  for (const auto& [text, count] : seen) {
    EXPECT_GT(count, 230u) << text;
    EXPECT_LT(count, 370u) << text;
  }
}

TEST(WordDeletion, OneDrawTakesDifferentWords) {
  const DeletableWords words("! a b c d e f g h i j k l m n o p q r s t u v w x y z");
  for (uint32_t seed = 0; seed < 100; ++seed) {
    TorchRandom random(seed);
    EXPECT_EQ(DeletableWords(words.draw(0.1, random)).words().size(), 24u);
  }
}

TEST(WordDeletion, IndependentlyEachWordGoesByItsShare) {
  size_t left = 0;
  const std::string text = "don't take\u00a0these  words apart, at all!";
  for (uint32_t seed = 0; seed < 4000; ++seed) {
    TorchRandom random(seed);
    const std::string drawn = without_words(text, 0.25, random);
    left += 1 + size_t(std::count(drawn.begin(), drawn.end(), ' '));
  }
  EXPECT_NEAR(double(left) / 4000, 7 * 0.75, 0.08);
  TorchRandom random(1);
  EXPECT_EQ(without_words(text, 0, random), "don't take these words apart, at all!");
  std::set<std::string> last;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    TorchRandom all(seed);
    last.insert(without_words("one two", 1, all));
  }
  EXPECT_EQ(last, (std::set<std::string>{"one", "two"})) << "one word stays";
  EXPECT_EQ(without_words("  ", 0.5, random), "");
}

TEST(WordDeletion, TextsWithoutWordsStay) {
  for (const auto& [text, left] : {std::pair<std::string, std::string>{"", ""},
                                   {"   ", ""},
                                   {"...", "..."},
                                   {" word ", "word"}}) {
    TorchRandom random(3);
    EXPECT_EQ(DeletableWords(text).draw(0.1, random), left);
  }
  EXPECT_THROW(DeletableWords("broken \xff here"), Error);
}

}  // namespace
}  // namespace fungi
