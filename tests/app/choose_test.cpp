// SPDX-License-Identifier: Apache-2.0
// choose: which blocks of a store help, said so that the answer can be used.
#include <gtest/gtest.h>

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

std::vector<float> random_row(size_t seed, size_t row) {
  const RandomStream random(seed, "made row", row);
  std::vector<float> out;
  for (size_t c = 0; c < 8; ++c) out.push_back(float(random.normal(c)));
  return out;
}

TEST(Choose, SaysWhichWeightsAndHowToUseThem) {
  const test::TemporaryFolder folder;
  const auto at = (folder / "train").string();
  std::vector<test::MadeRow> rows;
  for (size_t i = 0; i < 60; ++i)
    rows.push_back({std::to_string(i), int64_t(i % 2), {random_row(1, i), random_row(2, i)}});
  for (test::MadeRow& row : rows) row.blocks[1][0] += row.label ? 4 : -4;
  test::write_made_store(at, rows, {"x", "y"}, {"embedding", "kl"});
  const Outcome text = run_fungi("choose " + at + " -k 5 -j 1");
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("choose embedding+kl"), std::string::npos) << text.out;
  const Outcome o = run_fungi("choose " + at + " -k 5 -j 2 --json");
  const Json choice = Json::parse(o.out);
  EXPECT_EQ(choice["chosen"]["features"], "embedding+kl");  // as good as any, and nearest to equal
  EXPECT_GT(choice["expected_gain"], 0.1);
  // What it names can be used, and means what it says.
  const auto knn = [&](const std::string& more) {
    return Json::parse(run_fungi("knn " + at + " " + at + " -k 5 --json " + more).out).at(0);
  };
  const Json used = knn("--pca 0 --features 'embedding+2*kl'");
  EXPECT_EQ(used["features"], "embedding+2*kl");
  EXPECT_GT(used["accuracy"], knn("--features embedding")["accuracy"]);
  const auto refuses = [](const std::string& command, int status, const std::string& part) {
    const Outcome refused = run_fungi(command);
    EXPECT_EQ(refused.status, status) << refused.out;
    EXPECT_NE(refused.err.find(part), std::string::npos) << refused.err;
  };
  refuses("choose " + at + " --features embedding", 1, "two or more");
  refuses("choose " + at + " --weights 0", 2, "--weights");
  refuses("knn " + at + " " + at + " --features 'embedding+0*kl'", 1, "above 0");
}

// Noise in the second block of one store, the same signal in the third of both.
TEST(Choose, WithoutLabelsByASecondDraw) {
  const test::TemporaryFolder folder;
  const auto write = [&](const char* name, size_t seed) {
    std::vector<test::MadeRow> rows;
    for (size_t i = 0; i < 60; ++i)
      rows.push_back(
          {std::to_string(i), -1, {random_row(1, i), random_row(seed, i), random_row(3, i)}});
    test::write_made_store(folder / name, rows, {}, {"embedding", "kl", "dino"});
    return (folder / name).string();
  };
  const std::string one = write("one", 10), two = write("two", 11);
  const Outcome o = run_fungi("choose " + one + " --draw " + two + " -k 5 --json");
  ASSERT_EQ(o.status, 0) << o.err;
  const Json choice = Json::parse(o.out);
  EXPECT_NE(std::string(choice["chosen"]["features"]).find("dino"), std::string::npos) << o.out;
  EXPECT_EQ(choice["best_of_blocks"].size(), 4u);
  EXPECT_EQ(choice["best_of_blocks"][2]["disputed"], 0);  // embedding+dino, which no draw changes
  EXPECT_GT(choice["best_of_blocks"][1]["disputed"], 0.01);
  const Outcome text = run_fungi("choose " + one + " --draw " + two + " -k 5");
  EXPECT_NE(text.out.find("fungi knn " + one), std::string::npos) << text.out;
  const Outcome unlabelled = run_fungi("choose " + one);
  EXPECT_EQ(unlabelled.status, 1);
  EXPECT_NE(unlabelled.err.find("--draw"), std::string::npos) << unlabelled.err;
}

}  // namespace
}  // namespace fungi
