// SPDX-License-Identifier: Apache-2.0
// fungi reproduce text and icl: as the verbs do it, and with the answers of a language model.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fungi/prompt/http.h"
#include "tests/app/language_model.h"
#include "tests/app/reproduce.h"
#include "tests/support/texts.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using test::json;
using test::reason_for;
using test::reproduce;
using test::row_of;
using test::run_fungi;

class ReproduceTexts : public ::testing::Test {
 protected:
  void SetUp() override {
    model_ = test::write_text_model(folder_).string();
    folder_.write("data/Banking-77/train.tsv", six_classes(60));
    folder_.write("data/Banking-77/test.tsv", six_classes(24, 60));
  }
  // Twice as many as the questions have: enough few-shot rows for 20 neighbours.
  static std::string six_classes(size_t count, size_t first = 0) {
    std::string lines;
    for (size_t i = first; i < first + count; ++i)
      lines += (i % 2 ? "other " : "one ") + test::questions(1, i);
    return lines;
  }
  std::string use() const {
    return " --data " + at("data") + " --work " + at("work") + " --use bert=" + model_;
  }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }

  test::TemporaryFolder folder_;
  std::string model_;
};

TEST_F(ReproduceTexts, ComputesAsTheVerbsDo) {
  const json table = reproduce("text" + use());
  const std::string a = at("a"), b = at("b");
  ASSERT_EQ(run_fungi("extract -q --preset paper --objectives kl simclr -m " + model_ + " " +
                      at("data/Banking-77/train.tsv") + " -o " + a)
                .status,
            0);
  ASSERT_EQ(run_fungi("extract -q " + at("data/Banking-77/test.tsv") + " -o " + b + " --like " + a)
                .status,
            0);
  for (const auto& [setting, more] :
       {std::pair("full", ""), std::pair("few-shot", "--shots 5 --sampling stratified")})
    for (const char* features : {"embedding", "embedding+kl", "embedding+kl+simclr"}) {
      const json verb = json::parse(
          run_fungi(fmt::format("knn {} {} --json --features {} {}", a, b, features, more)).out)[0];
      const json row = row_of(table, "bert", "banking77", setting, features);
      EXPECT_DOUBLE_EQ(row["ours"], 100 * verb["accuracy"].get<double>()) << features;
    }
  EXPECT_NE(table["notes"].dump().find("has width 16, BERT-base uncased has 768"),
            std::string::npos)
      << table["notes"];
  EXPECT_NE(table["notes"].dump().find("60 training and 24 test rows here, 10003 and 3080 there"),
            std::string::npos);
  EXPECT_TRUE(row_of(table, "t5", "trec", "full", "embedding")["ours"].is_null());
  EXPECT_EQ(row_of(table, "t5", "trec", "full", "embedding")["paper"], 88.6);
  EXPECT_NE(reason_for(table, "t5").find("t5-small"), std::string::npos);
}

TEST_F(ReproduceTexts, AFewTextsAreTooFew) {
  folder_.write("data/Banking-77/train.tsv", test::questions(60));
  folder_.write("data/Banking-77/test.tsv", test::questions(24, 60));
  const json table = reproduce("text" + use(), 3);
  const std::string few = reason_for(table, "bert on banking77, few-shot embedding");
  EXPECT_NE(few.find("it takes more texts"), std::string::npos) << few;
  EXPECT_TRUE(row_of(table, "bert", "banking77", "few-shot", "embedding")["ours"].is_null());
}

// The order of TREC's classes is the paper's, whatever their names: the few-shot draw follows it.
TEST_F(ReproduceTexts, TakesClassesInThePapersOrder) {
  folder_.write("data/trec/train.tsv", "NUM\thow many ?\nABBR\twhat is it ?\nENTY\twhat ?\n");
  folder_.write("data/trec/test.tsv", "DESC\twhy ?\n");
  reproduce("text" + use(), 3);
  const json manifest =
      json::parse(test::read_file(at("work/bert/trec/kl-simclr/train/manifest.json")));
  EXPECT_EQ(manifest["classes"], (json{"ABBR", "ENTY", "DESC", "HUM", "LOC", "NUM"}));
}

TEST_F(ReproduceTexts, InContextLearningTakesTheAnswersOfALanguageModel) {
  EXPECT_EQ(reproduce("icl")["rows"].size(), 4u);
  json table = reproduce("icl" + use());
  for (const char* features : {"embedding", "embedding+kl+simclr"}) {
    const std::string key = std::string("bert on banking77, ") + features;
    EXPECT_TRUE(row_of(table, "bert", "banking77", "full", features)["ours"].is_null());
    std::string command = reason_for(table, key);
    const size_t begin = command.find("fungi prompts"), end = command.find("URL");
    ASSERT_NE(begin, std::string::npos) << command;
    ASSERT_NE(end, std::string::npos) << command;
    command = command.substr(begin + 6, end - begin - 6);
    if (!have_http())
      GTEST_SKIP() << "this build has no libcurl: install libcurl4-openssl-dev and configure again";
    const test::LanguageModel model("good");
    ASSERT_EQ(run_fungi(command + model.endpoint() + " --limit 9").status, 0) << command;
    table = reproduce("icl" + use());
    EXPECT_NE(reason_for(table, key).find("15 of 24 texts have no answer"), std::string::npos);
    ASSERT_EQ(run_fungi(command + model.endpoint()).status, 0) << command;
    table = reproduce("icl" + use());
    const std::string work = at("work/bert/banking77/kl-simclr/");
    const json score =
        json::parse(run_fungi("prompts " + work + "train " + work + "test --json --score " + work +
                              "replies-" + features + ".jsonl")
                        .out)[0];
    EXPECT_DOUBLE_EQ(row_of(table, "bert", "banking77", "full", features)["ours"],
                     100 * score["accuracy"].get<double>());
    EXPECT_EQ(reason_for(table, key), "");
  }
}

}  // namespace
}  // namespace fungi
