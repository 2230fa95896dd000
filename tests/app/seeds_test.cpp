// SPDX-License-Identifier: Apache-2.0
// --seeds of choose, cka, report and segment: what each seed alone gives, its mean and deviation.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "fungi/base/random.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/made_store.h"

namespace fungi {
namespace {

using test::Outcome;
using test::run_fungi;
using Json = nlohmann::json;

class SeedsOfVerbs : public testing::Test {
 protected:
  // Stores train-1, train-2, test-1, test-2: the gradients differ by seed, the embeddings do not.
  void SetUp() override {
    for (const char* split : {"train", "test"})
      for (const size_t seed : {1u, 2u}) {
        std::vector<test::MadeRow> rows;
        for (size_t i = 0; i < 60; ++i) {
          rows.push_back({split + std::to_string(i), int64_t(i % 3), {{}, {}}});
          const RandomStream fixed(*split == 'r' ? 7 : 8, split, i), drawn(seed, split, i);
          for (size_t c = 0; c < 8; ++c) {
            const double signal = c == i % 3 ? 1 : 0;
            rows[i].blocks[0].push_back(float(fixed.normal(c) + signal));
            rows[i].blocks[1].push_back(float(drawn.normal(c) + 2 * signal));
          }
        }
        test::write_made_store(at(split) + "-" + std::to_string(seed), rows, {"x", "y", "z"},
                               {"embedding", "kl"});
      }
  }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  static Json json(const std::string& command) {
    const Outcome o = run_fungi(command + " --json");
    EXPECT_EQ(o.status, 0) << command << o.err;
    return o.status == 0 ? Json::parse(o.out) : Json();
  }
  // Numbers or tables of them, one from each seed.
  static void expect_spread(const Json& all, const std::string& name, double a, double b) {
    EXPECT_DOUBLE_EQ(all["mean"][name], (a + b) / 2) << name;
    EXPECT_NEAR(all["deviation"][name], std::abs(a - b) / 2, 1e-12) << name;
  }
  static void expect_refusal(const std::string& command, int status, const std::string& part) {
    const Outcome refused = run_fungi(command);
    EXPECT_EQ(refused.status, status) << refused.out;
    EXPECT_NE(refused.err.find(part), std::string::npos) << refused.err;
  }

  test::TemporaryFolder folder_;
};

TEST_F(SeedsOfVerbs, Choose) {
  const Json all = json("choose '" + at("train-{seed}") + "' -k 5 --seeds 1 2");
  ASSERT_EQ(all["by_seed"].size(), 2u) << all;
  EXPECT_EQ(all["seeds"], Json({1, 2}));
  for (size_t s = 0; s < 2; ++s) {
    const std::string seed = std::to_string(s + 1);
    Json alone = json("choose " + at("train-" + seed) + " -k 5 --seed " + seed);
    alone["seed"] = s + 1;
    EXPECT_EQ(all["by_seed"][s], alone);
  }
  const auto& by = all["by_seed"];
  EXPECT_NE(by[0]["expected_gain"], by[1]["expected_gain"]);
  for (const char* name : {"expected_gain", "expected_accuracy"})
    expect_spread(all, name, by[0][name], by[1][name]);
  const Outcome text = run_fungi("choose '" + at("train-{seed}") + "' -k 5 --seeds 1 2");
  EXPECT_NE(text.out.find("mean gain"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find(by[1]["chosen"]["features"].get<std::string>()), std::string::npos);
  expect_refusal("choose " + at("train-1") + " --seed 1 --seeds 1 2", 2, "excludes");
  expect_refusal("choose '" + at("train-{seed}") + "'", 1, "--seeds");

  // Without labels: the second draw has a place, too.
  const Json stable = json("choose '" + at("train-1") + "' --draw '" + at("train-{seed}") +
                           "' -k 5 --seeds 2");
  EXPECT_EQ(stable["mean"]["gain"], stable["by_seed"][0]["chosen"]["gain"]);
  EXPECT_EQ(stable["deviation"]["gain"], 0);
}

TEST_F(SeedsOfVerbs, Cka) {
  const Json all = json("cka '" + at("train-{seed}") + "' --seeds 1 2");
  const Json one = json("cka " + at("train-1")), two = json("cka " + at("train-2"));
  EXPECT_EQ(all["blocks"], one["blocks"]);
  const double a = one["cka"][0][1], b = two["cka"][0][1];
  EXPECT_NE(a, b);
  EXPECT_DOUBLE_EQ(all["mean"]["cka"][0][1], (a + b) / 2);
  EXPECT_NEAR(all["deviation"]["cka"][1][0], std::abs(a - b) / 2, 1e-12);
  EXPECT_EQ(all["mean"]["cka"][0][0], 1);
  const Outcome text = run_fungi("cka '" + at("train-{seed}") + "' --seeds 1 2");
  EXPECT_NE(text.out.find("1.000 ± 0.000"), std::string::npos) << text.out;
  expect_refusal("cka " + at("train-1") + " --seeds 1 2", 1, "nothing here depends on a seed");
}

std::string fixed_point(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", 100 * share);
  return text;
}

TEST_F(SeedsOfVerbs, Report) {
  const std::string stores = " '" + at("train-{seed}") + "' '" + at("test-{seed}") + "' ",
                    page = at("page.html");
  const Outcome o = run_fungi("report" + stores + "-k 5 --seeds 1 2 -o " + page);
  ASSERT_EQ(o.status, 0) << o.err;
  const std::string html = test::read_file(page);
  // The same as knn over the seeds.
  const Json knn = json("knn" + stores + "-k 5 --seeds 1 2 --features embedding+kl").at(0);
  ASSERT_GT(knn["deviation"]["accuracy"], 0);
  const std::string row = "<td>" + fixed_point(knn["mean"]["accuracy"]) + "</td><td>" +
                          fixed_point(knn["deviation"]["accuracy"]) + "</td>";
  const size_t section = html.find("<h2>Over 2 seeds</h2>");
  ASSERT_NE(section, std::string::npos);
  EXPECT_NE(html.find(row, section), std::string::npos) << row;
  expect_refusal("report " + at("train-1") + " " + at("test-1") + " --seeds 1 2 -o " + page, 1,
                 "nothing here depends on a seed");
}

TEST_F(SeedsOfVerbs, ReportReducesAsKnnDoes) {
  const std::string stores = " " + at("train-1") + " " + at("test-1") + " ",
                    how = "-k 5 --pca 3 --reduce gaussian", page = at("page.html");
  ASSERT_EQ(run_fungi("report" + stores + how + " -o " + page).status, 0);
  const std::string html = test::read_file(page);
  const Json random = json("knn" + stores + how + " --features kl").at(0),
             pca = json("knn" + stores + "-k 5 --pca 3 --features kl").at(0);
  ASSERT_NE(random["accuracy"], pca["accuracy"]);
  const size_t table = html.find("<h2>Accuracy of");
  const size_t row = html.find("<th scope=row>kl</th>", table);
  ASSERT_NE(row, std::string::npos);
  EXPECT_NE(html.substr(row, 400).find("<td>" + fixed_point(random["accuracy"]) + "</td>"),
            std::string::npos)
      << html.substr(row, 400);
  EXPECT_NE(html.find("a random matrix (gaussian) to 3"), std::string::npos);
  // The seeds draw the matrix, too.
  ASSERT_EQ(run_fungi("report" + stores + how + " --seeds 1 2 3 -o " + page).status, 0);
  EXPECT_NE(test::read_file(page).find("<h2>Over 3 seeds</h2>"), std::string::npos);
}

TEST_F(SeedsOfVerbs, Segment) {
  const std::string golden = FUNGI_GOLDEN_DIR "/segment/",
                    command = "segment " + golden + "pairs/train " + golden + "pairs/test -m " +
                              golden + "model.safetensors --set heads=4 --set family=vit " +
                              "--precision f32 --size 40x56 -k 7 --memory 30 --no-page";
  const Json all = json(command + " --seeds 3 4 -o '" + at("out-{seed}") + "'");
  ASSERT_EQ(all.size(), 2u) << all;
  for (const size_t seed : {3u, 4u}) {
    const std::string number = std::to_string(seed);
    const Json alone = json(command + " --seed " + number + " -o " + at("alone-" + number));
    for (size_t kind = 0; kind < 2; ++kind) {
      Json one = alone["results"][kind];
      one["seed"] = seed;
      EXPECT_EQ(all[kind]["by_seed"][seed - 3], one);
    }
    EXPECT_TRUE(std::filesystem::exists(folder_ / ("out-" + number) / "bank"));
  }
  const auto& by = all[1]["by_seed"];
  EXPECT_NE(by[0]["miou"], by[1]["miou"]);
  for (const char* name : {"miou", "miou_present", "pixel_accuracy"})
    expect_spread(all[1], name, by[0][name], by[1][name]);
  const Outcome text = run_fungi(command + " --seeds 3 4 -q -o '" + at("out-{seed}") + "'");
  EXPECT_NE(text.out.find("± is the standard deviation over 2 seeds"), std::string::npos)
      << text.out;
  expect_refusal(command + " --seeds 3 4 -o " + at("out"), 2, "{seed}");
  expect_refusal(command + " -o '" + at("out-{seed}") + "'", 1, "--seeds");
}

}  // namespace
}  // namespace fungi
