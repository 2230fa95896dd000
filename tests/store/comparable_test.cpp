// SPDX-License-Identifier: Apache-2.0
// Which stores may be compared: what decides what a block holds must be equal, and nothing else.
#include "tests/store/fixture.h"

namespace fungi::test {
namespace {

TEST(Comparable, WhatDecidesABlockAndNothingElse) {
  StoreManifest train;
  train.spec = example_spec();
  train.spec.settings =
      R"({"seed":1,"preset":"native","layer":"l","projection":{"rows":3},"preprocess":{"size":8},
          "objectives":{"kl":{"temperature":15},"dino":{"crops":2}},"allow_truncated":false})";
  train.state = {{"dino-head", 1, 1, "d"}, {"kl-head", 1, 1, "k"}};
  const auto differs = [&](const std::vector<std::string>& blocks, bool projected,
                           const auto& change) {
    StoreManifest test = train;
    change(test);
    return error_of([&] { require_comparable(train, test, blocks, projected, "p", "h"); });
  };
  using Change = std::function<void(StoreManifest&)>;
  const auto setting = [](const std::string& from, const std::string& to) -> Change {
    return [=](StoreManifest& m) {
      const size_t at = m.spec.settings.find(from);
      ASSERT_NE(at, std::string::npos);
      m.spec.settings.replace(at, from.size(), to);
    };
  };
  using Names = std::vector<std::string>;
  const Names embedding{"embedding"}, both{"embedding", "kl"}, factors{"kl_factors_a"};
  train.spec.blocks.push_back({"kl_factors_a", 7});
  std::swap(train.spec.blocks[1], train.spec.blocks[2]);  // kl is the last
  const auto sha = [](StoreManifest& m) { m.spec.model_sha256 = "ff"; };
  const auto head = [](StoreManifest& m) { m.state[1].checksum = "x"; };
  const Change width = [](StoreManifest& m) { m.spec.blocks[2].width = 4; };
  EXPECT_EQ(differs(both, true, [](StoreManifest&) {}), "");
  EXPECT_NE(differs(embedding, true, sha).find("model.sha256"), std::string::npos);
  EXPECT_NE(differs(embedding, true, setting("\"size\":8", "\"size\":9")), "");
  for (const auto& change :
       {setting("\"seed\":1", "\"seed\":2"), setting("15", "1"), setting("\"l\"", "\"m\"")}) {
    EXPECT_EQ(differs(embedding, true, change), "");
    EXPECT_NE(differs(both, true, change), "");
    EXPECT_NE(differs(factors, false, change), "");
  }
  EXPECT_NE(differs(both, true, head).find("state.kl-head"), std::string::npos);
  EXPECT_EQ(differs(embedding, true, head), "");
  for (const Change& change : {setting("\"rows\":3", "\"rows\":4"), width}) {
    EXPECT_NE(differs(both, true, change), "");
    EXPECT_EQ(differs(both, false, change), "") << "whole gradients are not projected";
  }
  EXPECT_EQ(differs(both, true, setting("\"crops\":2", "\"crops\":3")), "") << "not compared";
  EXPECT_EQ(differs(both, true, setting("false", "true")), "");
  EXPECT_EQ(differs(both, true, setting("native", "lib")), "") << "the rest says what it does";
  // The network as it was run, wherever its facts come from.
  const auto facts = [](const char* text) -> Change {
    return [=](StoreManifest& m) { m.spec.architecture = text; };
  };
  EXPECT_NE(differs(embedding, true, facts(R"({"width": 5, "heads": "2"})")).find("model.heads"),
            std::string::npos);
  EXPECT_EQ(differs(embedding, true, facts(R"({"width": 5, "heads_from": "assumed"})")), "");
  EXPECT_EQ(differs(both, true, setting("\"seed\":1", "\"seed\":1,\"stated\":{\"heads\":\"2\"}")),
            "");
  const Change own = [&](StoreManifest& m) {  // another objective, whose name begins alike
    setting("\"kl\":", "\"kl-own\":{},\"kl\":")(m);
    m.state.push_back({"kl-own-head", 1, 1, "o"});
  };
  EXPECT_EQ(differs(both, true, own), "");
  const Change less = [](StoreManifest& m) { m.spec.blocks.pop_back(); };
  EXPECT_NE(differs(both, true, less).find("there is no block 'kl'; the store holds embedding"),
            std::string::npos);
  const Change f32 = [](StoreManifest& m) { m.spec.precision = "bf16"; };
  EXPECT_NE(differs(embedding, true, f32).find("`precision=f32`"), std::string::npos);
  EXPECT_EQ(differs(both, true, [](StoreManifest& m) { m.spec.type = StoreType::float16; }), "");
}

}  // namespace
}  // namespace fungi::test
