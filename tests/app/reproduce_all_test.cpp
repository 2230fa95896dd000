// SPDX-License-Identifier: Apache-2.0
// fungi reproduce: from data sets as they are published, a plan, a rehearsal, and the page.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/app/reproduce.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using test::json;
using test::reproduce;
using test::row_of;
using test::run_fungi;

const fs::path kLayouts = fs::absolute(FUNGI_GOLDEN_DIR "/input/layouts");
const std::string kModel = FUNGI_SOURCE_DIR "/demo/model.safetensors";

TEST(ReproduceAll, TakesSetsAsTheyArePublished) {
  const test::TemporaryFolder folder;
  fs::create_directories(folder / "data");
  // Of another name, but what it is; and CIFAR in the folder of its archive.
  fs::create_directory_symlink(kLayouts / "flowers/flowers-102", folder / "data/plants");
  fs::create_directory_symlink(kLayouts / "cifar10/cifar-10-batches-py",
                               folder / "data/cifar-10-batches-py");
  const std::string use = " --data " + (folder / "data").string() + " --use deit-b16=" + kModel +
                          " --work " + (folder / "work").string();
  const json plan = reproduce("all --plan" + use);
  bool planned = false;
  for (const json& run : plan)
    if (run["table"] == "pca" && run["data"] == "flowers") {
      planned = true;
      EXPECT_EQ(run["samples"], 6);
      EXPECT_EQ(run["forward_passes"], 6 * 62);
      EXPECT_GT(run["hours"].get<double>(), 0);
    }
  EXPECT_TRUE(planned) << plan;
  EXPECT_FALSE(fs::exists(folder / "work")) << "a plan starts nothing";

  const json table =
      reproduce("projections --limit 2 --page " + (folder / "page.html").string() + use);
  for (const char* kind : {"binary", "gaussian", "sparse"})
    EXPECT_TRUE(row_of(table, "deit-b16", "flowers", kind, "embedding+kl")["ours"].is_number())
        << table["missing"];
  EXPECT_NE(table["notes"].dump().find("a rehearsal"), std::string::npos);
  EXPECT_NE(table["notes"].dump().find("is not the paper's model"), std::string::npos);
  std::stringstream page;
  page << std::ifstream(folder / "page.html").rdbuf();
  for (const char* said : {"<svg", "A rehearsal: 2 samples", "is not the paper's model",
                           "Random projections by kind", "gaussian"})
    EXPECT_NE(page.str().find(said), std::string::npos) << said << page.str().substr(0, 200);
  EXPECT_EQ(run_fungi("reproduce everything").status, 2);
}

}  // namespace
}  // namespace fungi
