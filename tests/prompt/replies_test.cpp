// SPDX-License-Identifier: Apache-2.0
#include "fungi/prompt/replies.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/prompt/made_texts.h"

namespace fungi {
namespace {

using nlohmann::json;
using test::completion;
using test::MadeTexts;

// A line as OpenAI's batch service writes it.
std::string batch_reply(const std::string& id, const std::string& text) {
  return json{
             {"id", "batch_req_1"},
             {"custom_id", id},
             {"response",
              {{"status_code", 200}, {"request_id", "r"}, {"body", json::parse(completion(text))}}},
             {"error", nullptr}}
             .dump() +
         "\n";
}

TEST(Replies, OfABatchServiceAreRead) {
  const test::TemporaryFolder folder;
  const auto file = folder.write(
      "r",
      batch_reply("1", " a \n") + "\n" +
          R"({"custom_id": "2", "response": {"status_code": 429, "body": {"error": {"message": "busy"}}}, "error": null})"
          "\n"
          R"({"custom_id": "3", "response": null, "error": {"code": "batch_expired", "message": "too late"}})"
          "\n"
          R"({"custom_id": "4", "response": {"status_code": 200, "body": {"choices": [{"message": {"content": null}}]}}})"
          "\n"
          R"({"custom_id": "5", "response": {"status_code": 200, "body": {}}})");
  const ReplyList list = read_replies(file);
  EXPECT_FALSE(list.cut) << "a last line may lack its end";
  ASSERT_EQ(list.replies.size(), 5u);
  EXPECT_EQ(list.replies[0].text, " a \n");
  EXPECT_EQ(list.replies[1].trouble, "busy");
  EXPECT_EQ(list.replies[2].trouble, "too late");
  EXPECT_EQ(list.replies[3].text, "") << "the model said nothing";
  EXPECT_FALSE(list.replies[4].text);
  EXPECT_EQ(list.replies[1].line, 3u);
}

TEST(Replies, WhatIsNoneIsNamedByItsLine) {
  const test::TemporaryFolder folder;
  const auto read = [&](const std::string& text) { read_replies(folder.write("r", text)); };
  const std::string good = batch_reply("1", "a");
  EXPECT_ERROR("r, line 2: expected the JSON object", read(good + "[1]\n" + good));
  EXPECT_ERROR("r, line 2: expected the JSON object", read(good + good.substr(0, 20) + "\n"));
  EXPECT_ERROR("r, line 1: expected a reply with a custom_id", read("{}\n"));
  EXPECT_ERROR("r, line 1: expected a reply with a custom_id", read("{\"custom_id\": 1}\n"));
  EXPECT_ERROR("r, line 1: expected a response or an error", read("{\"custom_id\": \"1\"}\n"));
  EXPECT_ERROR("'1' is answered twice, in the lines 1 and 3", read(good + "\n" + good));
  EXPECT_ERROR("no/such: cannot be read", read_replies("no/such"));
  const std::string deep(100000, '[');
  EXPECT_ERROR("line 1", read("{\"custom_id\": \"1\", \"response\": " + deep + "\n"));
  for (const char* odd : {R"("x")", "[]", R"({"body": "x"})", R"({"body": {"choices": "x"}})",
                          R"({"body": {"choices": [7]}})", R"({"status_code": "x", "body": []})",
                          R"({"body": {"choices": [{"message": "x"}]}})"})
    EXPECT_FALSE(
        read_replies(
            folder.write("r", std::string("{\"custom_id\": \"1\", \"response\": ") + odd + "}\n"))
            .replies.at(0)
            .text)
        << odd;
}

TEST(Replies, AFileGrowsByWholeLines) {
  MadeTexts made;
  const Prompts prompts = made.prompts();
  const auto path = made.folder() / "replies.jsonl";
  {
    ReplyFile file(path);
    EXPECT_TRUE(file.earlier().empty());
    file.add_answer(prompts.request(0), completion("cold"));
    file.add_failure(prompts.request(1), 400, "too \xff long");
    EXPECT_ERROR("another program is writing", ReplyFile again(path));
  }
  const std::string whole = test::read_file(path);
  const ReplyList list = read_replies(path);
  ASSERT_EQ(list.replies.size(), 2u);
  EXPECT_EQ(list.replies[0].text, "cold");
  EXPECT_EQ(list.replies[0].request, request_checksum(prompts.request(0)));
  EXPECT_NE(list.replies[0].request, list.replies[1].request);
  EXPECT_FALSE(list.replies[1].text);

  // Cut anywhere, the next run keeps the lines before and goes on behind them.
  const size_t first = whole.find('\n') + 1;
  for (size_t cut = 0; cut + 1 < whole.size(); cut += cut + 5 < first || cut > first + 5 ? 5 : 1) {
    test::write_file(path, whole.substr(0, cut));
    const size_t kept = cut >= first - 1 ? 1 : 0;
    const ReplyList left = read_replies(path);
    EXPECT_EQ(left.cut, cut != first - 1 && cut != first && cut != 0) << cut;
    EXPECT_EQ(left.replies.size(), kept) << cut;
    {
      ReplyFile file(path);
      EXPECT_EQ(file.earlier().size(), left.replies.size());
      file.add_answer(prompts.request(2), completion("hot"));
    }
    EXPECT_EQ(read_replies(path).replies.size(), left.replies.size() + 1) << cut;
    EXPECT_TRUE(test::read_file(path).starts_with(whole.substr(0, kept ? first : 0))) << cut;
  }
}

TEST(Replies, AFileOfAnotherKindStaysAsItIs) {
  const test::TemporaryFolder folder;
  for (const char* text : {"one line and no more", "{\"key\": \"secret", "[1, 2", "a\tb\nc\td\n"}) {
    const auto file = folder.write("other", text);
    EXPECT_ERROR("other", const ReplyFile opened(file));
    EXPECT_EQ(test::read_file(file), text);
  }
}

TEST(Replies, IdsAreBytes) {
  MadeTexts made({{"\xff"
                   "a",
                   "x", 0, 0}},
                 {{"b\xfe", "y", 0, 0}});
  const Prompts prompts = made.prompts({.k = 1});
  const auto path = made.folder() / "r";
  { ReplyFile(path).add_answer(prompts.request(0), completion("cold")); }
  EXPECT_EQ(read_replies(path).replies.at(0).id, "b\xfe");
  EXPECT_NE(batch_line(prompts.request(0)).find("b\\udcfe"), std::string::npos);
}

TEST(Score, CountsExactLabelsAndWhatIsNone) {
  MadeTexts made;
  const LabelNames names = label_names(made.train());
  const auto scored = [&](const std::string& text, size_t limit = 0) {
    return score_replies(made.train(), made.test(), names, made.folder().write("r", text), limit);
  };
  // Of four rows (cold, mild, hot, mild): right, no label, wrong, missing.
  const std::string three =
      batch_reply("1", "\n cold ") + batch_reply("2", "Mild.") + batch_reply("3", "mild");
  const PromptScore score = scored(three);
  EXPECT_EQ(score.all.rows, 4u);
  EXPECT_EQ(score.all.right, 1u);
  EXPECT_EQ(score.all.no_label, 1u);
  EXPECT_EQ(score.all.missing, 1u);
  EXPECT_EQ(score.all.failed, 0u);
  EXPECT_EQ(score.all.answered(), 3u);
  EXPECT_DOUBLE_EQ(score.accuracy, 0.25);
  EXPECT_DOUBLE_EQ(score.standard_error, std::sqrt(0.25 * 0.75 / 4));
  ASSERT_EQ(score.first_strays.size(), 1u);
  EXPECT_EQ(score.first_strays[0].reply, "Mild.");
  ASSERT_EQ(score.classes.size(), 3u);
  EXPECT_EQ(score.classes[1].name, "mild");
  EXPECT_EQ(score.classes[1].counts.rows, 2u);
  EXPECT_EQ(score.classes[1].counts.no_label, 1u);
  EXPECT_EQ(score.classes[1].counts.missing, 1u);
  EXPECT_EQ(score.classes[2].counts.right, 0u);
  EXPECT_EQ(scored(three, 2).all.rows, 2u);
  EXPECT_DOUBLE_EQ(scored(three, 2).accuracy, 0.5);
  const PromptScore cut = scored(three + batch_reply("4", "mild").substr(0, 30));
  EXPECT_EQ(cut.all.missing, 1u);
  ASSERT_EQ(cut.notes.size(), 1u);
  EXPECT_NE(cut.notes[0].find("half a line"), std::string::npos);
  EXPECT_ERROR("line 2: a reply to '9', which is no row of",
               scored(batch_reply("1", "a") + batch_reply("9", "a")));
  MadeTexts unlabelled(MadeTexts::usual_train(), {{"1", "x", -1, 0}});
  EXPECT_ERROR("label",
               score_replies(unlabelled.train(), unlabelled.test(), names, made.folder() / "r"));
}

}  // namespace
}  // namespace fungi
