// SPDX-License-Identifier: Apache-2.0
#include "fungi/prompt/requests.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/prompt/made_texts.h"

namespace fungi {
namespace {

using nlohmann::json;
using test::MadeTexts;
using Rows = std::vector<uint32_t>;

std::string prompt_of(const Prompts& prompts, size_t i) {
  return json::parse(prompts.request(i).body)["messages"][0]["content"];
}

TEST(Prompts, ShowTheNearestTextsWithTheirLabels) {
  MadeTexts made;
  const Prompts first = made.prompts({.k = 3}), last = made.prompts({.k = 3, .nearest_last = true});
  EXPECT_EQ(first.size(), 4u);
  EXPECT_EQ(first.examples_of(0), (Rows{0, 1, 2}));
  EXPECT_EQ(last.examples_of(0), (Rows{2, 1, 0}));
  EXPECT_EQ(first.examples_of(2), (Rows{5, 4, 3}));
  const std::string prompt = prompt_of(first, 2);
  EXPECT_NE(prompt.find("\n\ncold, mild, hot\n\n"), std::string::npos) << prompt;
  EXPECT_NE(prompt.find("\n\ntext: oven\nlabel: hot\ntext: desert\nlabel: hot\ntext: "
                        "autumn\nlabel: mild\n\n"),
            std::string::npos)
      << prompt;
  EXPECT_TRUE(prompt.ends_with("\ntext: fire\nlabel:")) << prompt;
}

TEST(Prompts, ALineOfABatchFileHoldsTheRequest) {
  MadeTexts made;
  const Prompts prompts = made.prompts({.k = 1, .model = "llm"});
  const PromptRequest request = prompts.request(1);
  EXPECT_EQ(batch_line(request), R"({"custom_id":"2","method":"POST","url":"/v1/chat/completions",)"
                                 R"("body":)" +
                                     request.body + "}");
  const json body = json::parse(request.body);
  EXPECT_EQ(body["model"], "llm");
  EXPECT_EQ(body["temperature"], 0);
  EXPECT_EQ(body.size(), 3u);
  const auto file = made.folder() / "prompts.jsonl";
  const uintmax_t bytes = write_batch(prompts, file);
  EXPECT_EQ(bytes, std::filesystem::file_size(file));
  std::string lines;
  for (size_t i = 0; i < 4; ++i) lines += batch_line(prompts.request(i)) + "\n";
  EXPECT_EQ(test::read_file(file), lines);
}

TEST(Prompts, TakeAsManyExamplesAsAskedOrAsThereAre) {
  MadeTexts made;
  const Prompts all = made.prompts({});
  EXPECT_EQ(all.examples(), 6u);
  ASSERT_EQ(all.notes().size(), 1u);
  EXPECT_NE(all.notes()[0].find("6 training rows are fewer than the usual 20"), std::string::npos);
  EXPECT_ERROR("from 1 to 6 examples, found 7", made.prompts({.k = 7}));
  EXPECT_ERROR("found 0", made.prompts({.k = 0}));
  EXPECT_EQ(made.prompts({.k = 1, .limit = 3}).size(), 3u);
  EXPECT_EQ(made.prompts({.k = 1, .limit = 9}).size(), 4u);
}

TEST(Prompts, RandomExamplesAreAnyAndTheSameAgain) {
  MadeTexts made;
  const Prompts one = made.prompts({.k = 4, .random = true}),
                again = made.prompts({.k = 4, .random = true, .limit = 2}),
                other = made.prompts({.k = 4, .random = true, .seed = 1});
  std::set<Rows> different;
  std::set<uint32_t> seen;
  for (size_t i = 0; i < 4; ++i) {
    const Rows& rows = one.examples_of(i);
    EXPECT_EQ(std::set<uint32_t>(rows.begin(), rows.end()).size(), 4u);
    seen.insert(rows.begin(), rows.end());
    different.insert(rows);
    different.insert(other.examples_of(i));
    if (i < again.size()) {
      EXPECT_EQ(again.examples_of(i), rows) << "a sample is alone";
    }
  }
  EXPECT_EQ(seen.size(), 6u);
  EXPECT_GE(different.size(), 7u);
}

TEST(Prompts, AStoreThatIsItsOwnTestGivesNoTextAsItsOwnExample) {
  MadeTexts made;
  for (const bool random : {false, true}) {
    const Prompts prompts(made.train(), made.train(),
                          {test::texts_of(MadeTexts::usual_train(), made.train().classes()),
                           test::texts_of(MadeTexts::usual_train(), made.train().classes())},
                          label_names(made.train()), {.k = 5, .random = random}, made.pool());
    for (size_t i = 0; i < 6; ++i)
      for (const uint32_t row : prompts.examples_of(i)) EXPECT_NE(row, i);
  }
}

TEST(Prompts, WantTheTextsOfTheRows) {
  MadeTexts made;
  const auto with = [&](std::vector<test::MadeText> train) {
    Prompts(made.train(), made.test(), {test::texts_of(train, {}), made.texts().test},
            label_names(made.train()), {.k = 1}, made.pool());
  };
  std::vector<test::MadeText> rows = MadeTexts::usual_train();
  for (test::MadeText& row : rows) row.label = -1;  // those of the store count
  EXPECT_EQ(test::error_of([&] { with(rows); }), "");
  rows.insert(rows.begin(), {"new", "a text behind the store's back"});
  EXPECT_EQ(test::error_of([&] { with(rows); }), "");
  rows[1].id = "z";
  EXPECT_ERROR("the store has the sample 'a', the data set does not", with(rows));
}

TEST(Prompts, ClassesThatNobodyKnowsAreToldBeforeAnybodyPays) {
  MadeTexts made;
  const MadeTexts other({{"1", "x", 0, 0}}, {{"1", "y", 0, 0.1f}}, {"lukewarm"});
  EXPECT_ERROR("lukewarm",
               Prompts(made.train(), other.test(), {made.texts().train, other.texts().test},
                       label_names(made.train()), {.k = 1}, made.pool()));
  MadeTexts unlabelled({{"a", "x", -1, 0}}, {{"1", "y", -1, 0.1f}});
  EXPECT_ERROR("label", unlabelled.prompts({.k = 1}));
}

TEST(LabelNames, AreClassesNumbersOrThoseOfAFile) {
  MadeTexts made;
  EXPECT_EQ(label_names(made.train()).list(), "cold, mild, hot");
  MadeTexts numbers({{"a", "x", 1, 0}, {"b", "y", 3, 1}}, {{"1", "z", 1, 0}}, {});
  const LabelNames bare = label_names(numbers.train());
  EXPECT_EQ(bare.list(), "1, 3");
  EXPECT_EQ(bare.find("3"), 3);
  EXPECT_EQ(bare.find("2"), -1);
  EXPECT_EQ(bare.find(""), -1);
  const auto file = [&](const std::string& text) { return made.folder().write("names", text); };
  const LabelNames named =
      label_names(numbers.train(), file("0\tnone\n 3 \t good \tmore\r\n\n1\tbad"));
  EXPECT_EQ(named.list(), "bad, good");
  EXPECT_EQ(named.find(" \n good\t"), 3);
  for (const char* no : {"Good", "good.", "\"good\"", "go od", "3", "good bad"})
    EXPECT_EQ(named.find(no), -1) << no;
  const auto refuse = [&](const std::string& text) { label_names(numbers.train(), file(text)); };
  EXPECT_ERROR("expected a name for the label '3'", refuse("1\ta\n"));
  EXPECT_ERROR("line 2: expected a label, a tab and its name", refuse("1\ta\n3 b\n"));
  EXPECT_ERROR("line 2: the label '1' stands there again", refuse("1\ta\n1\tb\n3\tc\n"));
  EXPECT_ERROR("the labels 1 and 3 have the same name 'a'", refuse("1\ta\n3\ta\n"));
  EXPECT_ERROR("line 1: the name is empty", refuse("1\t\n3\ta\n"));
  EXPECT_ERROR("no UTF-8", refuse("1\t\xff\n3\ta\n"));
}

}  // namespace
}  // namespace fungi
