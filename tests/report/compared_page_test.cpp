// SPDX-License-Identifier: Apache-2.0
#include "fungi/report/compared_page.h"

#include <gtest/gtest.h>

namespace fungi {
namespace {

ComparedNumber number(const std::string& setting, const std::string& features,
                      std::optional<double> ours, std::optional<double> paper = {}) {
  return {.backbone = "deit-b16",
          .data = "Flowers & co",
          .setting = setting,
          .features = features,
          .paper = paper,
          .ours = ours};
}

std::string page_of(ComparedTable table) {
  table.name = "one", table.title = "A table";
  return compared_page({.title = "Paper", .tables = {std::move(table)}});
}

size_t count(const std::string& text, const std::string& what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(ComparedPage, WhatIsMissingIsFoldedAwayWithItsCost) {
  ComparedTable begun{.name = "begun", .title = "Begun"}, rest{.name = "rest", .title = "Rest"};
  rest.numbers = {number("full", "embedding", {}, 50)};
  rest.missing = {{"data set cars", "no folder <cars>", "10 samples, 20 forward passes"}};
  rest.cost = "10 samples, 20 forward passes, about 4 s";
  begun.numbers = {number("full", "embedding", 61, 60), number("full", "embedding+kl", {}, 63)};
  const std::string page =
      compared_page({"Paper", {"A rehearsal."}, "", "20 forward passes, about 4 s", {rest, begun}});
  // What there is comes first, though the table stands behind in the paper.
  EXPECT_LT(page.find("<section id=\"begun\">"), page.find("<details class=later id=\"rest\">"));
  EXPECT_LT(page.find("A rehearsal."), page.find("<section"));
  EXPECT_NE(page.find("<strong>1 of 3</strong>"), std::string::npos);
  EXPECT_EQ(page.find("points</strong>"), std::string::npos) << "of a rehearsal it means nothing";
  EXPECT_NE(page.find("<strong>4 s</strong>"), std::string::npos);
  EXPECT_NE(page.find("no folder &lt;cars&gt;<br><small>10 samples"), std::string::npos);
  EXPECT_EQ(page.find("no folder <cars>"), std::string::npos);
  // A number that is not there is in no chart and in no visible row.
  EXPECT_EQ(count(page, "<circle class=ours"), 2u) << "the key and one number";
  EXPECT_EQ(count(page, "<th scope=row>"), 1u);
}

TEST(ComparedPage, DotsShowDeviations) {
  ComparedTable table;
  table.numbers = {number("full", "embedding", 60, 61), number("full", "embedding+kl", 64, 66)};
  EXPECT_EQ(page_of(table).find("path class=error"), std::string::npos);
  table.numbers[1].deviation = 0.5, table.numbers[1].paper_deviation = 0.25;
  const std::string page = page_of(table);
  EXPECT_NE(page.find("path class=error"), std::string::npos);
  EXPECT_NE(page.find("<strong>1.5 points</strong>"), std::string::npos) << "from the paper";
  EXPECT_NE(page.find("<td>64.00 ±0.50</td><td>66.0 ±0.2</td><td>−2.0</td>"), std::string::npos)
      << page;
  table.numbers.push_back(number("full", "embedding", 70, 71));
  table.numbers.back().data = "Pets";
  EXPECT_NE(page_of(table).find("<td>64.00 ±0.50<br><small>66.0 ±0.2 −2.0</small></td><td>–</td>"),
            std::string::npos)
      << "a column of each data set";
  EXPECT_NE(page.find(">+kl<"), std::string::npos) << "beside the embedding";
}

TEST(ComparedPage, LinesOverSettingsFeaturesAndLayers) {
  ComparedTable shots{.figure = ComparedFigure::over_settings};
  for (const char* setting : {"1-shot", "5-shot"})
    for (const char* features : {"embedding", "embedding+kl"})
      shots.numbers.push_back(number(setting, features, 50));
  shots.numbers.push_back(number("1-shot", "kl", 50));  // a line with a hole is none
  EXPECT_EQ(count(page_of(shots), "class=\"line s1\""), 2u) << "drawn, and in the key";
  EXPECT_EQ(count(page_of(shots), "class=\"line s2\""), 0u);

  ComparedTable views{.figure = ComparedFigure::over_features};
  for (const char* features : {"simclr_4", "simclr_9"}) {
    views.numbers.push_back(number("full", features, 50));
    views.numbers.push_back(number("images/s", features, 7));
    views.numbers.back().unit = "per second";
  }
  const std::string page = page_of(views);
  EXPECT_EQ(count(page, "svg class=chart"), 2u) << "an axis for each unit";
  EXPECT_NE(page.find("simclr: views"), std::string::npos);

  ComparedTable layers{.figure = ComparedFigure::layers};
  layers.numbers.push_back(number("full", "embedding", 50));
  for (const char* block : {"0", "1"})
    for (const char* part : {"attn.proj", "mlp.fc2"})
      layers.numbers.push_back(number("full", std::string("kl@blocks.") + block + "." + part, 51));
  EXPECT_NE(page_of(layers).find("kl of mlp.fc2"), std::string::npos);
}

TEST(ComparedPage, SquaresAndClasses) {
  ComparedTable cka{.figure = ComparedFigure::pairs};
  cka.numbers = {number("full", "embedding~kl", 40), number("full", "embedding~dino", 70),
                 number("full", "kl~dino", 20)};
  const std::string square = page_of(cka);
  EXPECT_EQ(count(square, "rect class=cell"), 9u) << "both sides and the diagonal";
  EXPECT_EQ(count(square, ">100.0<"), 3u);
  EXPECT_EQ(count(square, ">40.0<"), 2u);

  ComparedTable classes{.figure = ComparedFigure::classes};
  for (const auto& [name, before, after] :
       {std::tuple("rose", 50, 80), std::tuple("tulip", 70, 60), std::tuple("lily", 90, 90)}) {
    classes.numbers.push_back(number(name, "embedding", before));
    classes.numbers.push_back(number(name, "embedding+kl", after));
  }
  const std::string page = page_of(classes);
  EXPECT_NE(page.find("1 gain, 1 lose; most: rose +30; least: tulip −10"), std::string::npos);
  EXPECT_EQ(count(page, "<rect class=gain"), 1u);
  EXPECT_EQ(count(page, "<rect class=loss"), 1u);
  EXPECT_LT(page.find("<title>rose +30.0"), page.find("<title>lily 0.0"));
}

}  // namespace
}  // namespace fungi
