// SPDX-License-Identifier: Apache-2.0
// Texts on the page: which words are set off.
#include "fungi/report/shown_sample.h"

#include <gtest/gtest.h>

namespace fungi::report {
namespace {

TEST(ShownText, WordsThatAnotherTextLacksAreMarked) {
  const auto known = words_of("Where is my card?");
  EXPECT_EQ(set_off("Where is my card?", known), "Where is my card?");
  EXPECT_EQ(set_off("where is MY new card, please", known),
            "where is MY <mark>new</mark> card, <mark>please</mark>");
  EXPECT_EQ(set_off("a<b & \"c\"", words_of("A b")), "a&lt;b &amp; &quot;<mark>c</mark>&quot;");
  EXPECT_EQ(set_off("", known), "");
  EXPECT_EQ(set_off(" ... ", {}), " ... ");
  EXPECT_EQ(words_of("it's 3 o'clock"),
            (std::unordered_set<std::string>{"it", "s", "3", "o", "clock"}));
}

TEST(ShownText, CapitalsMarksAndCharactersWithoutBlanks) {
  EXPECT_EQ(set_off("ÉTÉ été Ça", words_of("été")), "ÉTÉ été <mark>Ça</mark>");
  EXPECT_EQ(set_off("e\u0301te\u0301", words_of("e\u0301te\u0301")), "e\u0301te\u0301");
  EXPECT_EQ(set_off("我的卡", words_of("我的")), "我的<mark>卡</mark>");
  EXPECT_EQ(set_off("我cat", {}), "<mark>我</mark><mark>cat</mark>");
}

TEST(ShownText, OfALongTextTheBeginningIsShown) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "äö ";
  const std::string shown = set_off(text, words_of(text));
  EXPECT_LT(shown.size(), 1010u);
  EXPECT_TRUE(shown.ends_with(" …"));
  EXPECT_EQ(shown.find("\uFFFD"), std::string::npos) << "no character is cut";
}

}  // namespace
}  // namespace fungi::report
