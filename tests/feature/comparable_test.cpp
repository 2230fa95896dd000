// SPDX-License-Identifier: Apache-2.0
// Which stores may be compared: what decides what a block holds must be equal, and nothing else.
#include "fungi/feature/comparable.h"

#include <functional>
#include <nlohmann/json.hpp>

#include "fungi/backbone/architecture_json.h"
#include "fungi/feature/settings.h"
#include "tests/store/fixture.h"

namespace fungi::test {
namespace {

Settings example_settings() {
  Settings s{.seed = 1,
             .objectives = {{"dino", {{"crops", 2.0}}}, {"kl", {{"temperature", 15.0}}}}};
  s.gradient = GradientSettings{.shape = {6, 5, true}, .projection = {.rows = 3}};
  return s;
}

StoreSpec spec_of(const Settings& settings) {
  StoreSpec spec = example_spec();
  write_settings(settings, spec);
  spec.architecture = to_json(named_architecture("vit_tiny_patch16_224"));
  spec.blocks = {{"embedding", 5}, {"dino", 3}, {"kl_factors_a", 7}, {"kl", 3}};
  return spec;
}

using ChangeSettings = std::function<void(Settings&)>;
using ChangeArchitecture = std::function<void(Architecture&)>;

TEST(Comparable, WhatDecidesABlockAndNothingElse) {
  StoreManifest train;
  train.spec = spec_of(example_settings());
  train.state = {{"dino-head", 1, 1, "d"}, {"kl-head", 1, 1, "k"}};
  const auto differs = [&](const std::vector<std::string>& blocks, bool projected,
                           const auto& change) {
    StoreManifest test = train;
    change(test);
    return error_of([&] { require_comparable(train, test, blocks, projected, "p", "h"); });
  };
  using Change = std::function<void(StoreManifest&)>;
  const auto setting = [](const ChangeSettings& change) -> Change {
    return [=](StoreManifest& m) {
      Settings settings = read_settings(m.spec, "p");
      change(settings);
      write_settings(settings, m.spec);
    };
  };
  const auto fact = [](const ChangeArchitecture& change) -> Change {
    return [=](StoreManifest& m) {
      Architecture a = parse_architecture(m.spec.architecture, "p");
      change(a);
      m.spec.architecture = to_json(a);
    };
  };
  const auto image = [&](const std::function<void(ImageSettings&)>& change) -> Change {
    return setting([=](Settings& s) { change(std::get<ImageSettings>(s.input)); });
  };
  using Names = std::vector<std::string>;
  const Names embedding{"embedding"}, both{"embedding", "kl"}, factors{"kl_factors_a"};
  const auto sha = [](StoreManifest& m) { m.spec.model_sha256 = "ff"; };
  const auto head = [](StoreManifest& m) { m.state[1].checksum = "x"; };
  const Change width = [](StoreManifest& m) { m.spec.blocks[3].width = 4; };
  EXPECT_EQ(differs(both, true, [](StoreManifest&) {}), "");
  EXPECT_NE(differs(embedding, true, sha).find("model.sha256"), std::string::npos);
  EXPECT_NE(differs(embedding, true, image([](auto& i) { i.preprocess.input_size = 9; })), "");
  EXPECT_NE(differs(embedding, true, image([](auto& i) { i.decode.exif_orientation = true; })), "");
  for (const ChangeSettings& change : std::vector<ChangeSettings>{
           [](Settings& s) { s.seed = 2; },
           [](Settings& s) { s.objectives[1].parameters["temperature"] = 1.0; },
           [](Settings& s) { s.gradient->layer = "m"; },
           [](Settings& s) { s.gradient->norm1_as_input = true; },
       }) {
    EXPECT_EQ(differs(embedding, true, setting(change)), "");
    EXPECT_NE(differs(both, true, setting(change)), "");
    EXPECT_NE(differs(factors, false, setting(change)), "");
  }
  EXPECT_NE(differs(both, true, head).find("state.kl-head"), std::string::npos);
  EXPECT_EQ(differs(embedding, true, head), "");
  for (const Change& change :
       {setting([](Settings& s) { s.gradient->projection.rows = 4; }),
        setting([](Settings& s) { s.gradient->projection.seed = 4; }), width}) {
    EXPECT_NE(differs(both, true, change), "");
    EXPECT_EQ(differs(both, false, change), "") << "whole gradients are not projected";
  }
  EXPECT_EQ(
      differs(both, true, setting([](Settings& s) { s.objectives[0].parameters["crops"] = 3.0; })),
      "")
      << "not compared";
  EXPECT_EQ(differs(both, true, image([](auto& i) { i.decode.allow_truncated = true; })), "");
  EXPECT_EQ(differs(both, true, setting([](Settings& s) { s.preset = Preset::lib; })), "")
      << "the rest says what it does";
  // The network as it was run, wherever its facts come from.
  EXPECT_NE(differs(embedding, true, fact([](auto& a) { a.heads = 2; })).find("model.heads"),
            std::string::npos);
  EXPECT_EQ(differs(embedding, true, fact([](auto& a) {
                      a.heads_assumed = true, a.family = "dino", a.dialect = "mae";
                      a.preprocess.source = "stated";
                    })),
            "");
  EXPECT_EQ(differs(both, true, setting([](Settings& s) { s.stated["heads"] = "2"; })), "");
  // A version that did not say it.
  EXPECT_EQ(differs(embedding, true,
                    [](StoreManifest& m) {
                      nlohmann::json facts = nlohmann::json::parse(m.spec.architecture);
                      facts["qkv_bias"] = nullptr;
                      m.spec.architecture = facts.dump();
                    }),
            "");
  const Change own = [&](StoreManifest& m) {  // another objective, whose name begins alike
    setting([](Settings& s) { s.objectives.push_back({"kl-own", {}}); })(m);
    m.spec.blocks.push_back({"kl-own", 3});
    m.state.push_back({"kl-own-head", 1, 1, "o"});
  };
  EXPECT_EQ(differs(both, true, own), "");
  const Change less = [](StoreManifest& m) { m.spec.blocks.pop_back(); };
  EXPECT_NE(differs(both, true, less).find("there is no block 'kl'; the store holds embedding"),
            std::string::npos);
  const Change bf16 = setting([](Settings& s) { s.precision = Precision::bf16; });
  EXPECT_NE(differs(embedding, true, bf16).find("`precision=f32`"), std::string::npos);
  EXPECT_EQ(differs(both, true, [](StoreManifest& m) { m.spec.type = StoreType::float16; }), "");
}

// A store and a run: everything decides, but for what explains, and but for a store that begins to
// take pictures that are cut off.
TEST(Comparable, ARunThatGoesOnWithAStore) {
  const StoreSpec stored = spec_of(example_settings());
  const auto refused = [&](const StoreSpec& before, const ChangeSettings& change) {
    Settings settings = read_settings(before, "p");
    change(settings);
    return error_of([&] { require_same_features(before, spec_of(settings), "p", "the hint"); });
  };
  const auto truncated = [](Settings& s) {
    std::get<ImageSettings>(s.input).decode.allow_truncated ^= true;
  };
  EXPECT_EQ(refused(stored, [](Settings&) {}), "");
  EXPECT_EQ(refused(stored, [](Settings& s) { s.stated["heads"] = "3"; }), "");
  EXPECT_EQ(refused(stored, truncated), "");
  Settings taking = example_settings();
  truncated(taking);
  EXPECT_NE(refused(spec_of(taking), truncated).find("settings.image.allow_truncated"),
            std::string::npos);
  EXPECT_NE(refused(stored, [](Settings& s) { s.preset = Preset::lib; }).find("settings.preset"),
            std::string::npos);
  EXPECT_NE(
      refused(stored, [](Settings& s) { s.gradient->projection.seed = 3; })
          .find("'settings.gradient.projection.seed' differs: the store has 42, this run has 3"),
      std::string::npos);
  const std::string size = refused(
      stored, [](Settings& s) { std::get<ImageSettings>(s.input).preprocess.resize_size = 300; });
  EXPECT_NE(size.find("settings.image.preprocess.resize_size"), std::string::npos) << size;
  EXPECT_NE(size.find("preprocessor_config.json"), std::string::npos) << size;
  StoreSpec wide = stored;
  wide.blocks[0].width = 6;
  EXPECT_NE(
      error_of([&] { require_same_features(stored, wide, "p", "h"); }).find("blocks.embedding"),
      std::string::npos);
}

// Rows of a program that has settings of its own: any JSON object, all of which counts.
TEST(Comparable, SettingsOfOtherPrograms) {
  StoreManifest a, b;
  a.spec = b.spec = example_spec();
  const auto compare = [&] {
    return error_of([&] { require_comparable(a, b, {"embedding"}, true, "p", "h"); }) +
           error_of([&] { require_same_features(a.spec, b.spec, "p", "h"); });
  };
  EXPECT_EQ(compare(), "");
  b.spec.settings = R"({"seed": 1, "kl": {"temperature": 14}})";
  EXPECT_NE(compare().find("settings.kl.temperature"), std::string::npos);
}

}  // namespace
}  // namespace fungi::test
