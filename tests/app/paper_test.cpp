// SPDX-License-Identifier: Apache-2.0
// The paper's numbers are transcribed consistently.
#include "app/paper.cpp"  // its records: no command shows all that is in them

#include <gtest/gtest.h>

#include <map>

#include "tests/app/reproduce.h"

namespace fungi {
namespace {

using test::json;
using test::reproduce;
using test::row_of;

TEST(Paper, PrintedMeansAreMeansOfThePrintedNumbers) {  // a slip in one of them would show
  size_t checked = 0;
  for (const char* name : {"knn-augreg", "clusters"}) {
    std::map<std::string, std::vector<double>> parts;
    std::map<std::string, double> means;
    const json table = reproduce(name);
    for (const json& row : table["rows"]) {
      const std::string key = row["backbone"].get<std::string>() +
                              row["setting"].get<std::string>() +
                              row["features"].get<std::string>();
      if (row["data"] == "mean")
        means[key] = row["paper"];
      else
        parts[key].push_back(row["paper"]);
    }
    for (const auto& [key, mean] : means) {
      double sum = 0;
      for (const double v : parts[key]) sum += v;
      ASSERT_EQ(parts[key].size(), 11u);
      EXPECT_NEAR(sum / 11, mean, 0.05 + 0.05 + 1e-9)
          << name << " " << key;  // both are rounded to one digit
      ++checked;
    }
  }
  EXPECT_EQ(checked, 17u);
}

TEST(Paper, TablesAgreeWhereTheyPrintTheSameNumber) {
  const json means = reproduce("knn"), sets = reproduce("knn-augreg");
  for (const char* setting : {"full", "5-shot"})
    for (const char* features : {"embedding", "embedding+kl+dino+simclr"})
      EXPECT_EQ(row_of(means, "augreg-in1k-b16", "mean", setting, features)["paper"],
                row_of(sets, "augreg-in1k-b16", "mean", setting, features)["paper"]);
}

// What is printed twice, as a mean and as a figure or with deviations.
TEST(Paper, FiguresRepeatWhatTablesPrint) {
  json others = json::array();
  for (const char* name : {"knn", "knn-more", "knn-large"}) others.push_back(reproduce(name));
  const json sizes = reproduce("sizes");
  for (const json& row : sizes["rows"]) {
    size_t found = 0;
    for (const json& table : others)
      for (const json& other : table["rows"])
        if (other["backbone"] == row["backbone"] && other["setting"] == row["setting"] &&
            other["features"] == row["features"]) {
          EXPECT_EQ(other["paper"], row["paper"]) << row;
          ++found;
        }
    EXPECT_EQ(found, 1u) << row;
  }
  const json seeds = reproduce("knn-deit");
  EXPECT_EQ(seeds["seeds"], (json{42, 43, 44}));
  const json row = row_of(seeds, "deit-b16", "cars", "full", "embedding+kl");
  EXPECT_EQ(row["paper"], 33.5);
  EXPECT_EQ(row["paper_deviation"], 0.2);
  EXPECT_FALSE(row_of(seeds, "deit-b16", "cars", "full", "embedding").contains("paper_deviation"));
}

TEST(Paper, SmallModelsHaveASmallerPca) {  // SPEC 1.7: ViT-S 384, the others 512
  for (const app::PaperBackbone& backbone : app::paper_backbones())
    EXPECT_EQ(backbone.pca, backbone.width == 384 ? 384u : 512u) << backbone.key;
  EXPECT_EQ(app::paper_backbone("augreg-in1k-s16").width, 384u);
  EXPECT_EQ(app::paper_backbone("augreg-in21k-s16").width, 384u);
}

}  // namespace
}  // namespace fungi
