// SPDX-License-Identifier: Apache-2.0
// fungi reproduce: error bars and figures, each number as the verb of its own gives it.
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "fungi/store/store.h"
#include "tests/app/reproduce.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using test::json;
using test::reason_for;
using test::reproduce;
using test::row_of;
using test::run_fungi;

const std::string kModel = FUNGI_SOURCE_DIR "/demo/model.safetensors";

class ReproduceFigures : public ::testing::Test {
 protected:
  void SetUp() override {
    test::link_pictures("train", 4, 6, folder_ / "data/flowers/train");
    test::link_pictures("test", 4, 2, folder_ / "data/flowers/test");
  }
  json table(const std::string& words, int status = 0) const {
    return reproduce(words + " --data " + (folder_ / "data").string() + " --work " + work() +
                         " --use deit-b16=" + kModel,
                     status);
  }
  std::string work() const { return (folder_ / "work").string(); }
  std::string stores(const std::string& name) const { return work() + "/deit-b16/flowers/" + name; }
  static double ours(const json& table, const std::string& setting, const std::string& features) {
    const json row = row_of(table, "deit-b16", "flowers", setting, features);
    return row["ours"].is_number() ? row["ours"].get<double>() : NAN;
  }
  // In percent, mean per class.
  static double knn(const std::string& stores, const std::string& words) {
    const auto o = run_fungi("knn " + stores + "/train " + stores + "/test --json " + words);
    EXPECT_EQ(o.status, 0) << o.err;
    return 100 * json::parse(o.out)[0]["mean_per_class_accuracy"].get<double>();
  }

  test::TemporaryFolder folder_;
};

TEST_F(ReproduceFigures, ErrorBarsAreOverSeeds) {
  const json three = table("knn-deit");
  EXPECT_EQ(three["seeds"], (json{42, 43, 44}));
  for (const char* features : {"embedding", "embedding+kl", "embedding+kl+dino+simclr"}) {
    std::vector<double> values;
    for (const char* name : {"", "-seed43", "-seed44"})
      values.push_back(knn(stores("kl-dino-simclr") + name, std::string("--features ") + features));
    const double mean = (values[0] + values[1] + values[2]) / 3;
    double squares = 0;
    for (const double v : values) squares += (v - mean) * (v - mean);
    const json row = row_of(three, "deit-b16", "flowers", "full", features);
    EXPECT_NEAR(row["ours"], mean, 1e-9) << features;
    EXPECT_NEAR(row["deviation"], std::sqrt(squares / 3), 1e-9) << features;
  }
  // The seed is that of the features.
  const std::string own = (folder_ / "own").string();
  for (const char* split : {"train", "test"})
    ASSERT_EQ(
        run_fungi(fmt::format("extract -q --preset paper --seed 43 -m {} {}/{} -o {}/{}{}", kModel,
                              (folder_ / "data/flowers").string(), split, own, split,
                              split == std::string("test") ? " --like " + own + "/train" : ""))
            .status,
        0);
  const auto mine = Store::open(own + "/test").load("kl+simclr"),
             its = Store::open(stores("kl-dino-simclr-seed43") + "/test").load("kl+simclr");
  ASSERT_EQ(mine.features.rows(), its.features.rows());
  for (size_t i = 0; i < mine.features.rows(); ++i)
    for (size_t c = 0; c < mine.features.cols(); ++c)
      ASSERT_EQ(mine.features.row(i)[c], its.features.row(i)[c]);

  // Seeds that were asked for hold for every table; those that are there are not computed again.
  const auto before = test::contents(folder_ / "work");
  const json asked = table("reductions --seeds 42 44");
  EXPECT_EQ(asked["seeds"], (json{42, 44}));
  EXPECT_TRUE(row_of(asked, "deit-b16", "flowers", "full", "embedding+kl").contains("deviation"));
  EXPECT_EQ(test::contents(folder_ / "work"), before);
  EXPECT_EQ(run_fungi("reproduce knn-deit --seed 1 --seeds 1 2").status, 2);
}

TEST_F(ReproduceFigures, AreWhatTheVerbsCompute) {
  const json alignment = table("cka"), pairs = table("pairs"), shots = table("shots", 3);
  const std::string all = stores("kl-dino-simclr");
  const json cka = json::parse(run_fungi("cka " + all + "/train --json").out);
  const std::vector<std::string> blocks = cka["blocks"];
  for (size_t i = 0; i < blocks.size(); ++i)
    for (size_t j = i + 1; j < blocks.size(); ++j)
      EXPECT_NEAR(ours(alignment, "full", blocks[i] + "~" + blocks[j]),
                  100 * cka["cka"][i][j].get<double>(), 1e-4);
  EXPECT_DOUBLE_EQ(ours(pairs, "full", "kl+simclr"), knn(all, "--features kl+simclr"));
  EXPECT_DOUBLE_EQ(ours(shots, "5-shot", "embedding"), knn(all, "--shots 5 --features embedding"));
  EXPECT_NE(reason_for(shots, "deit-b16 on flowers, 10-shot embedding"), "") << shots["missing"];

  const json classes = table("classes");
  for (const char* features : {"embedding", "embedding+kl+dino+simclr"}) {
    double sum = 0;
    size_t count = 0;
    for (const json& row : classes["rows"])
      if (row["features"] == features && row["data"] == "flowers")
        sum += row["ours"].get<double>(), ++count;
    EXPECT_EQ(count, 4u);
    EXPECT_NEAR(sum / 4, knn(all, std::string("--features ") + features), 1e-9);
  }
  EXPECT_EQ(test::entries(work() + "/deit-b16/flowers").size(), 1u) << "all share their features";
}

TEST_F(ReproduceFigures, LayersAreOneExtraction) {
  const json layers = table("layers");
  size_t gradients = 0;
  for (const json& row : layers["rows"])
    gradients += row["features"].get<std::string>().starts_with("kl@");
  const json model = json::parse(run_fungi("inspect --json " + kModel).out);
  EXPECT_EQ(gradients, 4 * std::stoul(model["architecture"]["depth"].get<std::string>()));
  for (const char* features : {"kl@blocks.0.mlp.fc1", "kl@blocks.1.attn.qkv"})
    EXPECT_DOUBLE_EQ(ours(layers, "full", features),
                     knn(stores("layers"), std::string("--features ") + features));
}

TEST_F(ReproduceFigures, SpeedIsOfTheMachine) {
  const json views = table("views --limit 8"), speed = table("speed --limit 8");
  for (const char* features : {"simclr_4", "simclr_49"})
    EXPECT_GT(row_of(views, "deit-b16", "machine", "images/s", features)["ours"], 0) << views;
  // Twelve times the views take longer, on any machine.
  EXPECT_GT(row_of(views, "deit-b16", "machine", "images/s", "simclr_4")["ours"],
            row_of(views, "deit-b16", "machine", "images/s", "simclr_49")["ours"]);
  EXPECT_EQ(row_of(speed, "deit-b16", "machine", "images/s", "kl")["paper"], 344);
  EXPECT_GT(row_of(speed, "deit-b16", "machine", "rows/s", "embedding")["ours"], 0);
}

TEST_F(ReproduceFigures, ThePageHasThemFirstAndTheMissingFolded) {
  const std::string page = (folder_ / "page.html").string();
  const auto shown = [&](const std::string& words, int status = 0) {
    table(words + " --page " + page, status);
    std::stringstream text;
    text << std::ifstream(page).rdbuf();
    return text.str();
  };
  const std::string classes = shown("classes");
  EXPECT_NE(classes.find("points of accuracy of 4 classes"), std::string::npos);
  const std::string seeds = shown("knn-deit");
  EXPECT_NE(seeds.find("class=error"), std::string::npos) << "error bars";
  EXPECT_NE(seeds.find("33.5 ±0.2"), std::string::npos);
  EXPECT_NE(seeds.find("missing: 28 of 32 numbers; "), std::string::npos) << "with what they cost";
  EXPECT_NE(seeds.find("<svg class=fig"), seeds.find("<table"));
  EXPECT_LT(seeds.find("<svg class=fig"), seeds.find("data set cars"));
}

TEST_F(ReproduceFigures, APlanTellsWhatIsMissingToo) {
  const json plan = table("all --plan");
  const auto find = [&](const std::string& name, const std::string& data) {
    for (const json& pair : plan)
      if (pair["table"] == name && pair["data"] == data && pair["backbone"] == "deit-b16")
        return pair;
    return json();
  };
  const json here = find("knn", "flowers"), there = find("knn", "imagenet");
  EXPECT_TRUE(here["there"].get<bool>());
  EXPECT_EQ(here["forward_passes"], 32 * 62);
  EXPECT_EQ(find("knn-deit", "flowers")["forward_passes"], 3 * 32 * 62);
  EXPECT_EQ(find("layers", "flowers")["forward_passes"], 32);
  EXPECT_TRUE(find("pairs", "flowers")["shared"].get<bool>()) << "the features of knn";
  EXPECT_FALSE(there["there"].get<bool>());
  EXPECT_EQ(there["samples"], 1281167 + 50000);
  EXPECT_EQ(there["forward_passes"], (1281167 + 50000) * 62) << "as many views as here";
  EXPECT_GT(there["hours"].get<double>(), 1);
  EXPECT_FALSE(fs::exists(work())) << "a plan starts nothing";
}

}  // namespace
}  // namespace fungi
