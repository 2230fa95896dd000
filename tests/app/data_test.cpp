// SPDX-License-Identifier: Apache-2.0
// fungi data: what lies in a folder; and extracting from sets as they are published.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/command.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::run_fungi;

const std::string kLayouts = FUNGI_GOLDEN_DIR "/input/layouts/";

json look(const std::string& what, int status = 3) {
  const auto o = run_fungi("data --json " + what);
  EXPECT_EQ(o.status, status) << o.err << o.out;
  return o.out.empty() ? json() : json::parse(o.out);
}

TEST(Data, RecognisesEveryPublishedSet) {
  for (const char* name :
       {"flowers", "cars", "cub", "fgvc", "pets", "food", "dtd", "eurosat", "imagenet",
        "imagenet100", "cifar10", "cifar100", "roxford", "rparis", "trec", "sst", "agnews",
        "banking77", "tweeteval"}) {
    const json found = look(kLayouts + name);
    EXPECT_EQ(found["set"], name);
    EXPECT_FALSE(found["whole"]) << "a miniature has too few samples";
    EXPECT_GE(found["splits"].size(), 2u);
    for (const json& split : found["splits"]) {
      EXPECT_EQ(split["error"], "") << name;
      EXPECT_EQ(split["missing"], 0) << name << split["examples"];
    }
  }
  const json flowers = look(kLayouts + "flowers")["splits"][2];
  EXPECT_EQ(flowers["split"], "test");
  EXPECT_EQ(flowers["samples"], 3);
  EXPECT_EQ(flowers["published"], 6149);
  EXPECT_EQ(flowers["classes_off"][0]["least"], 20);
  // Of sets whose classes were counted, each by its own number; also one without any sample.
  const json trec = look(kLayouts + "trec")["splits"][1];
  EXPECT_EQ(trec["classes_off"].size(), 6u) << trec;
  EXPECT_EQ(trec["classes_off"][2]["class"], "DESC");
  EXPECT_EQ(trec["classes_off"][2]["least"], 138);
  EXPECT_EQ(trec["classes_off"][2]["most"], 138);
  EXPECT_EQ(trec["classes_off"][0]["samples"], 0);
  const json eurosat = look(kLayouts + "eurosat")["splits"][0];
  EXPECT_EQ(eurosat["classes_off"][5]["class"], "Pasture");
  EXPECT_EQ(eurosat["classes_off"][5]["most"], 1600);
}

TEST(Data, SaysWhatIsMissingOrDamaged) {
  const test::TemporaryFolder folder;
  const fs::path root = folder / "cub";
  fs::copy(kLayouts + "cub", root, fs::copy_options::recursive);
  const fs::path pictures = root / "CUB_200_2011/images/002.Laysan_Albatross";
  fs::remove(pictures / "Laysan_Albatross_0003_796003.jpg");
  fs::resize_file(pictures / "Laysan_Albatross_0005_796005.jpg", 0);
  fs::resize_file(root /
                      "CUB_200_2011/images/001.Black_footed_Albatross"
                      "/Black_footed_Albatross_0002_796002.jpg",
                  99);
  json train = look(root.string())["splits"][0];
  EXPECT_EQ(train["missing"], 1);
  EXPECT_EQ(train["empty"], 1);
  EXPECT_EQ(train["damaged"], 0);
  train = look("--decode " + root.string())["splits"][0];
  EXPECT_EQ(train["damaged"], 1) << train;
  EXPECT_NE(train["examples"].dump().find("Black_footed_Albatross_0002"), std::string::npos);
  const auto text = run_fungi("data " + root.string());
  EXPECT_NE(text.out.find("train: 1 file(s) missing"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("5994"), std::string::npos) << text.out;
  fs::remove(root / "CUB_200_2011/image_class_labels.txt");
  EXPECT_NE(look(root.string())["splits"][0]["error"].dump().find("list is missing"),
            std::string::npos);
  EXPECT_EQ(run_fungi("data " + (folder / "nowhere").string()).status, 1);
}

TEST(Data, OtherFoldersAreDescribed) {
  const json found = look(FUNGI_SOURCE_DIR "/demo/images/test", 0);
  EXPECT_TRUE(found["set"].is_null());
  EXPECT_EQ(found["kind"], "image, classes");
}

TEST(Data, ExtractTakesOfficialSplits) {
  const test::TemporaryFolder folder;
  const std::string model = " -m " FUNGI_SOURCE_DIR "/demo/model.safetensors --objectives kl -q";
  for (const auto& [split, rows] : {std::pair("train", 3), {"test", 3}}) {
    const auto o = run_fungi("extract " + kLayouts + "flowers --split " + split + model +
                             " --json -o " + (folder / split).string());
    ASSERT_EQ(o.status, 0) << o.err;
    EXPECT_EQ(json::parse(o.out)["rows"], rows);
  }
  std::ofstream(folder / "some.txt") << "n01440764\nn03000134 fence\n";
  const auto o = run_fungi("extract " + kLayouts + "imagenet --split val --classes " +
                           (folder / "some.txt").string() + model + " --json -o " +
                           (folder / "some").string());
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(json::parse(o.out)["rows"], 3);
  for (const char* split : {" --split nothing", ""}) {
    const auto refused = run_fungi("extract " + kLayouts + "flowers" + split + model + " -o " +
                                   (folder / "none").string());
    EXPECT_EQ(refused.status, 1);
    EXPECT_NE(refused.err.find("--split takes train, val, test, or all"), std::string::npos)
        << refused.err;
  }
  const auto all = run_fungi("extract " + kLayouts + "flowers --split all" + model +
                             " --json -o " + (folder / "all").string());
  ASSERT_EQ(all.status, 0) << all.err;
  EXPECT_EQ(json::parse(all.out)["rows"], 9);
}

// Database and queries of revisited Oxford, and the file that tells what belongs together.
TEST(Data, RetrievalSetsByTheirGroundTruth) {
  const test::TemporaryFolder folder;
  const auto at = [&](const char* name) { return (folder / name).string(); };
  const std::string set = kLayouts + "roxford", model = " -m " FUNGI_SOURCE_DIR
                          "/demo/model.safetensors --objectives none -q -o ";
  ASSERT_EQ(run_fungi("extract " + set + " --split database" + model + at("base")).status, 0);
  const auto like = run_fungi("extract " + set + " --split query -q --like " + at("base") + " -o " +
                              at("query"));
  ASSERT_EQ(like.status, 0) << like.err;
  const auto found = run_fungi("retrieve " + at("base") + " " + at("query") + " --truth " + set +
                               "/roxford5k/gnd_roxford5k.pkl --json");
  ASSERT_EQ(found.status, 0) << found.err;
  EXPECT_EQ(json::parse(found.out)[0]["queries"], 1) << found.out;
}

// The page shows pictures of the splits that were extracted.
TEST(Data, ReportsFindThePicturesOfASplit) {
  const test::TemporaryFolder folder;
  const auto at = [&](const char* name) { return (folder / name).string(); };
  const std::string set = kLayouts + "pets";
  ASSERT_EQ(run_fungi("extract " + set + " --split train -m " FUNGI_SOURCE_DIR
                      "/demo/model.safetensors --objectives kl -q -o " + at("train")).status, 0);
  ASSERT_EQ(run_fungi("extract " + set + " --split test -q --like " + at("train") + " -o " +
                      at("test")).status, 0);
  const std::string report = "report " + at("train") + " " + at("test") + " -k 1 --train-data " +
                             set + " --test-data " + set + " -o " + at("page.html");
  const auto without = run_fungi(report);
  EXPECT_EQ(without.status, 1);
  EXPECT_NE(without.err.find("--split takes train, test, or all"), std::string::npos)
      << without.err;
  const auto o = run_fungi(report + " --split train --test-split test");
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(o.err.find("without a picture"), std::string::npos) << o.err;
  EXPECT_NE(test::read_file(folder / "page.html").find("data:image/"), std::string::npos);
}

}  // namespace
}  // namespace fungi
