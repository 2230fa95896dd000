// SPDX-License-Identifier: Apache-2.0
// Every verb on stores of texts, as a user runs them: a tiny BERT, two lists of questions.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fungi/store/store.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Outcome;
using test::run_fungi;

class TextUses : public testing::Test {
 protected:
  TextUses() {
    fs::create_directory(folder_ / "model");
    for (const char* file : {"config.json", "model.safetensors"})
      fs::copy_file(fs::path(FUNGI_GOLDEN_DIR) / "backbone/bert_mean" / file,
                    folder_ / "model" / file);
    std::ofstream vocabulary(folder_ / "model/vocab.txt");
    for (const char* piece :
         {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "where", "is", "my",  "card", "who",
          "was",   "the",   "first", "king",  "queen",  "of",    "?",  "new", "lost", "old"})
      vocabulary << piece << '\n';
    vocabulary.close();
    write("train", 24), write("test", 9);
  }
  void write(const std::string& split, size_t count) {
    const char* kinds[] = {"new", "lost", "old", "first"};
    std::ofstream out(folder_ / (split + ".tsv"));
    out << "label\ttext\n";
    for (size_t i = 0; i < count; ++i)
      out << (i % 2 ? "card\twhere is my " : "person\twho was the ") << kinds[i / 2 % 4]
          << (i % 2   ? " card ?"
              : i % 4 ? " queen ?"
                      : " king ?")
          << (i / 8 % 2 ? " is it" : "") << '\n';
  }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  std::string ok(const std::string& command) const {
    const Outcome o = run_fungi(command);
    EXPECT_EQ(o.status, 0) << command << "\n" << o.err;
    return o.out;
  }
  void extract(const std::string& more) const {
    ok("extract " + at("train.tsv") + " -m " + at("model") + " -q -o " + at("train") + " " + more);
    ok("extract " + at("test.tsv") + " -q --like " + at("train") + " -o " + at("test"));
  }
  const std::string kObjectives =
      "--objectives kl:width=16 simclr:width=8,views=4,negatives=3 dino:width=8,local_views=2 mlm";
  test::TemporaryFolder folder_;
};

TEST_F(TextUses, EveryVerbReadsStoresOfTexts) {
  extract("--set pooling=mean_all " + kObjectives);
  const std::string both = at("train") + " " + at("test");
  const json knn = json::parse(ok("knn " + both + " -k 3 --json"));
  ASSERT_EQ(knn.size(), 5u);
  EXPECT_EQ(knn[4]["features"], "embedding+kl+simclr+dino+mlm");
  const json few = json::parse(ok("knn " + both + " -k 3 --shots 5 --sampling stratified --json"));
  EXPECT_EQ(few[0]["train_rows"], 10) << "as many rows as shots times classes";
  EXPECT_EQ(few[0]["sampling"], "stratified");
  EXPECT_EQ(json::parse(ok("linear " + both + " --json")).size(), 5u);
  EXPECT_EQ(json::parse(ok("kmeans " + at("train") + " --json"))[0]["clusters"], 2);
  EXPECT_EQ(json::parse(ok("retrieve " + both + " --json"))[0]["queries"], 9);
  EXPECT_EQ(json::parse(ok("cka " + at("train") + " --json"))["blocks"].size(), 5u);
  ok("pca " + both + " --dim 4 -o " + at("reduced"));
  ok("export " + at("train") + " -o " + at("train.npz"));
  ok("index " + at("train") + " -o " + at("train.index") + " --features embedding+kl --kind hnsw");
  for (const std::string& target : {at("train") + " --features embedding+kl", at("train.index")}) {
    const json found =
        json::parse(ok("search " + target + " --text 'who was the new king ?' -k 2 " + "--data " +
                       at("train.tsv") + " --json"));
    const json& first = found["queries"][0]["neighbours"][0];
    EXPECT_EQ(first["text"], "who was the new king ?");
    EXPECT_NEAR(first["distance"].get<double>(), 0, 1e-5);
    EXPECT_EQ(found["queries"][0]["text"], "who was the new king ?");
  }
}

TEST_F(TextUses, GradientsOfFirstTokensAreProjectedLater) {
  extract("--objectives kl:width=16 simclr:width=8,views=4,negatives=3 --keep-factors");
  for (const char* split : {"train", "test"})
    ok("project " + at(split) + " -o " + at(std::string("wide-") + split) + " --projection-dim 32");
  const json knn =
      json::parse(ok("knn " + at("wide-train") + " " + at("wide-test") + " -k 3 --json"));
  EXPECT_EQ(knn[2]["columns"], 16 + 2 * 32);
  ok("knn " + at("train") + " " + at("test") + " -k 3 --exact-gradients");
}

TEST_F(TextUses, TheReportShowsTextsWithTheWordsThatDiffer) {
  extract("--objectives kl:width=16");
  const std::string report = "report " + at("train") + " " + at("test") + " -k 3 -o " +
                             at("page.html") + " --train-data " + at("train.tsv") +
                             " --test-data " + at("test.tsv");
  ok(report);
  const std::string page = test::read_file(folder_ / "page.html");
  EXPECT_NE(page.find("<p>where is my new card ?</p>"), std::string::npos);
  EXPECT_NE(page.find("where is my <mark>lost</mark> card ?"), std::string::npos);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_NE(page.find("Words are marked"), std::string::npos);
  const Outcome other = run_fungi("report " + at("train") + " " + at("test") + " -k 3 -o " +
                                  at("page.html") + " --train-data " + at("train.tsv") +
                                  " --test-data " + FUNGI_SOURCE_DIR + "/demo/images/test");
  EXPECT_EQ(other.status, 1) << other.out;
}

// Beside the mean of a text's tokens gradients weigh less, unless it is said otherwise.
TEST_F(TextUses, TheWeightOfGradientsIsStated) {
  const auto weight = [&](const std::string& store) {
    const Store opened = Store::open(folder_ / store);
    const std::vector<StoreBlock>& blocks = opened.manifest().spec.blocks;
    EXPECT_EQ(blocks[0].weight, 1);
    return blocks[1].weight;
  };
  const std::string data =
      "extract " + at("train.tsv") + " -m " + at("model") + " --objectives kl:width=16 -q -o ";
  ok(data + at("first"));
  EXPECT_EQ(weight("first"), 1);
  ok(data + at("mean") + " --set pooling=mean_all");
  EXPECT_EQ(weight("mean"), 0.2);
  ok(data + at("paper") + " --set pooling=mean_all --preset paper");
  EXPECT_EQ(weight("paper"), 1);
  ok(data + at("own") + " --set pooling=mean_all --weight 0.5");
  EXPECT_EQ(weight("own"), 0.5);
  ok("extract " + at("test.tsv") + " -q --like " + at("own") + " -o " + at("followed"));
  EXPECT_EQ(weight("followed"), 0.5);
  const Outcome refused = run_fungi("knn " + at("mean") + " " + at("followed") + " -k 3");
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("'blocks.kl.weight' should be 0.2, but is 0.5"), std::string::npos)
      << refused.err;
  EXPECT_EQ(run_fungi(data + at("none") + " --weight 0").status, 1);
  EXPECT_EQ(run_fungi("extract " + at("train.tsv") + " -m " + at("model") +
                      " --objectives none --weight 2 -o " + at("none"))
                .status,
            2);
  const Outcome said =
      run_fungi("extract " + at("train.tsv") + " -m " + at("model") +
                " --objectives kl:width=16 --set pooling=mean_all -o " + at("mean"));
  EXPECT_NE(said.err.find("gradients have the weight 0.2 beside it"), std::string::npos)
      << said.err;
}

TEST_F(TextUses, AModelWithoutAHeadGuessesNoWords) {
  fs::copy_file(fs::path(FUNGI_GOLDEN_DIR) / "backbone/bert/model.safetensors",
                folder_ / "model/model.safetensors", fs::copy_options::overwrite_existing);
  fs::copy_file(fs::path(FUNGI_GOLDEN_DIR) / "backbone/bert/config.json",
                folder_ / "model/config.json", fs::copy_options::overwrite_existing);
  const Outcome o = run_fungi("extract " + at("train.tsv") + " -m " + at("model") +
                              " --objectives kl mlm -o " + at("s"));
  EXPECT_EQ(o.status, 1);
  EXPECT_NE(o.err.find("head that guesses hidden words is not in this file"), std::string::npos);
  EXPECT_NE(o.err.find("leave mlm out of --objectives"), std::string::npos) << o.err;
  EXPECT_FALSE(fs::exists(folder_ / "s"));
}

}  // namespace
}  // namespace fungi
