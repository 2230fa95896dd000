// SPDX-License-Identifier: Apache-2.0
// Words of the library in texts for people: found, replaced, and left alone where they are none.
#include "fungi/base/words.h"

#include <gtest/gtest.h>

namespace fungi {
namespace {

std::string shouted(std::string_view text) {
  return with_words(text, [](const Word& word) -> std::optional<std::string> {
    if (word.name == "unknown") return {};
    return "<" + std::string(word.name) + "|" + std::string(word.key) + "|" +
           std::string(word.value) + ">";
  });
}

TEST(Words, AreReplacedWhereTheyStand) {
  EXPECT_EQ(shouted("use `keep_factors`, or `kind=flat`"), "use <keep_factors||>, or <kind||flat>");
  EXPECT_EQ(shouted("`stated_facts[heads]=N`"), "<stated_facts|heads|N>");
  EXPECT_EQ(shouted("`like=/a b/c=d`."), "<like||/a b/c=d>.");
  EXPECT_EQ(shouted("`a``b`"), "<a||><b||>");
  EXPECT_EQ(shouted(""), "");
}

TEST(Words, WhatIsNoneStays) {
  for (const char* text : {"plain", "a ` alone", "`", "``", "`Two words`", "`two words`", "`x[y`",
                           "`unknown`", "`unknown=3`", "`k-means`"})
    EXPECT_EQ(shouted(text), text);
  EXPECT_EQ(shouted("it`s `k`"), "it`s <k||>");
}

}  // namespace
}  // namespace fungi
