// SPDX-License-Identifier: Apache-2.0
// What nothing tells about a model is said by every verb that opens it: once, and in JSON instead.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/command.h"

namespace fungi {
namespace {

using nlohmann::json;
using test::Outcome;
using test::run_fungi;

class ModelNotes : public testing::Test {
 protected:
  void SetUp() override {  // without the config.json that lies beside it
    std::filesystem::copy(FUNGI_GOLDEN_DIR "/backbone/timm_vit/model.safetensors", model_);
  }

  static Outcome run(const std::string& command) {
    const Outcome o = run_fungi(command);
    EXPECT_EQ(o.status, 0) << o.err;
    return o;
  }

  static void expect_said_once(const std::string& command) {
    const std::string said = run(command).err, note = "note: nothing in the checkpoint or beside";
    EXPECT_EQ(said.find(note + " it tells activation=gelu, pooling=first"), 0u) << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
    const Outcome o = run(command + " --json");
    EXPECT_EQ(o.err, "");
    EXPECT_EQ(json::parse(o.out)["notes"].size(), 1u) << o.out;
  }

  test::TemporaryFolder folder_;
  const std::filesystem::path model_ = folder_ / "model.safetensors";
};

TEST_F(ModelNotes, OfBench) {
  expect_said_once("bench --seconds 0.1 --objectives none --set heads=4 -m " + model_.string());
}

TEST_F(ModelNotes, OfSearchAndOfExtractThatWritesNothing) {
  const std::string pictures = FUNGI_SOURCE_DIR "/demo/images/test/bag",
                    store = (folder_ / "store").string(),
                    extract = "extract " + pictures + " --set heads=4 --objectives none -m " +
                              model_.string() + " -o " + store;
  expect_said_once(extract + " --dry-run");
  run(extract + " -q");
  const std::string picture = std::filesystem::directory_iterator(pictures)->path().string();
  expect_said_once("search " + store + " --image " + picture + " " + picture);
  const std::string id = std::filesystem::path(picture).filename().string();
  EXPECT_EQ(run("search " + store + " --row " + id).err, "") << "no model is opened";
}

}  // namespace
}  // namespace fungi
