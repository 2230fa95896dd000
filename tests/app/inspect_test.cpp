// SPDX-License-Identifier: Apache-2.0
// inspect of files nobody knows, with names nobody should print; and bench of architectures by name
// with stated facts.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "tests/support/command.h"
#include "tests/support/tiny_checkpoint.h"

namespace fungi {
namespace {

using test::Outcome;
using test::run_fungi;

TEST(Inspect, ListsTheTensorsOfAnUnknownFile) {
  test::TinyCheckpoint c;
  c.shapes = {{"strange.weight", {2, 3}}, {"other", {4}}};
  const test::TemporaryFolder folder;
  const std::string path = c.write(folder).string();
  const Outcome plain = run_fungi("inspect " + path);
  EXPECT_EQ(plain.status, 1);
  EXPECT_NE(plain.err.find("--tensors"), std::string::npos) << plain.err;
  const Outcome list = run_fungi("inspect --tensors " + path);
  EXPECT_EQ(list.status, 1);
  EXPECT_NE(list.out.find("strange.weight"), std::string::npos) << list.out;
  const Outcome json = run_fungi("inspect --tensors --json " + path);
  EXPECT_EQ(json.status, 1);
  const auto out = nlohmann::json::parse(json.out);
  ASSERT_EQ(out["tensor_list"].size(), 2u);
  EXPECT_EQ(out["tensor_list"][1]["name"], "strange.weight");
  EXPECT_EQ(out["tensor_list"][1]["shape"], (std::vector<size_t>{2, 3}));
  EXPECT_FALSE(out.contains("architecture"));
}

TEST(Inspect, NamesCannotSteerTheTerminal) {
  test::TinyCheckpoint c;
  c.shapes = {{std::string("\x1b[2Jred\0end", 11), {2}}};
  const test::TemporaryFolder folder;
  const Outcome o = run_fungi("inspect --tensors " + c.write(folder).string());
  EXPECT_EQ(o.status, 1);
  EXPECT_NE(o.out.find("?[2Jred?end"), std::string::npos) << o.out;
  for (const char bad : {'\x1b', '\0'})
    EXPECT_EQ((o.out + o.err).find(bad), std::string::npos) << o.out << o.err;
}

TEST(Inspect, JsonOfAPathThatIsNotUtf8) {
  const test::TemporaryFolder folder;
  const auto odd = folder /
                   "od\xff"
                   "d";
  std::filesystem::copy(FUNGI_GOLDEN_DIR "/backbone/timm_vit", odd);
  const Outcome o = run_fungi("inspect --json --set heads=4 '" + odd.string() + "'");
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(nlohmann::json::parse(o.out)["architecture"]["heads"], "4");
}

// What is described can be loaded: inspect fails as extract would, in the same words.
TEST(Inspect, RefusesWhatCannotBeLoaded) {
  using Change = std::function<void(test::TinyCheckpoint&)>;
  const std::pair<const char*, Change> changes[] = {
      {"norm.bias: the tensor is missing", [](auto& c) { c.shapes.erase("norm.bias"); }},
      {"blocks.1.mlp.fc2.weight: the shape is 128x64, expected 64x128",
       [](auto& c) {
         std::swap(c.shapes["blocks.1.mlp.fc2.weight"][0], c.shapes["blocks.1.mlp.fc2.weight"][1]);
       }},
      {"patch_embed.proj.weight: the shape is 32x3x4x4",
       [](auto& c) {
         c.shapes["patch_embed.proj.weight"] = {32, 3, 4, 4};
       }},
      {"pos_embed: the shape is 1x64x17", [](auto& c) {
         c.shapes["pos_embed"] = {1, 64, 17};
       }}};
  for (const auto& [message, change] : changes) {
    test::TinyCheckpoint c = test::tiny_timm();
    change(c);
    const test::TemporaryFolder folder;
    const std::string model = c.write(folder).string();
    const Outcome inspect = run_fungi("inspect " + model),
                  extract = run_fungi("extract " FUNGI_SOURCE_DIR "/demo/images/test -m " + model +
                                      " -o " + (folder / "out").string());
    EXPECT_EQ(inspect.status, 1) << message;
    EXPECT_EQ(inspect.out, "");
    EXPECT_NE(inspect.err.find(message), std::string::npos) << inspect.err;
    EXPECT_EQ(extract.status, 1);
    EXPECT_EQ(extract.err, inspect.err);
  }
  const test::TemporaryFolder folder;  // whole numbers for weights
  const auto file = test::tiny_timm().write(folder) / "model.safetensors";
  std::string bytes = test::read_file(file);
  bytes.replace(bytes.find("F32", bytes.find("\"norm.bias\"")), 3, "I32");
  std::ofstream(file, std::ios::binary) << bytes;
  const Outcome integers = run_fungi("inspect " + file.string());
  EXPECT_EQ(integers.status, 1);
  EXPECT_NE(integers.err.find("norm.bias: is of type i32"), std::string::npos) << integers.err;
}

TEST(Inspect, SaysWhenATowerHasNoProjection) {
  test::TinyCheckpoint c = test::tiny_timm();
  c.shapes["norm_pre.weight"] = c.shapes["norm_pre.bias"] = {test::kTimmWidth};
  const auto inspect = [&] {
    const test::TemporaryFolder folder;
    return run_fungi("inspect --set activation=gelu " + c.write(folder).string()).out;
  };
  EXPECT_NE(inspect().find("projection        none found"), std::string::npos) << inspect();
  c.shapes["head.weight"] = {24, test::kTimmWidth}, c.shapes["head.bias"] = {24};
  EXPECT_EQ(inspect().find("projection"), std::string::npos) << inspect();
}

TEST(Inspect, FactsOutOfRangeAreNamedThemselves) {
  const std::string inspect = "inspect tests/golden/backbone/timm_vit --set heads=4 --set ";
  for (const auto& [fact, said] : {std::pair{"size=1000000", "1000000x1000000 is too large"},
                                   {"size=1000000", "choose another one: --set size=16x16"},
                                   {"size=2", "does not hold patches of 4x4"},
                                   {"std=0", "--set std: expected numbers above 0"},
                                   {"std=0.5,-1,0.5", "found '0.5,-1,0.5'"}}) {
    const Outcome o = run_fungi(inspect + fact);
    EXPECT_EQ(o.status, 1) << fact;
    EXPECT_NE(o.err.find(said), std::string::npos) << fact << ": " << o.err;
    EXPECT_EQ(o.err.find("config.json"), std::string::npos) << fact << ": " << o.err;
  }
}

TEST(Bench, NamedArchitecturesTakeFactsOrRefuseThem) {
  const std::string bench = "bench -m dinov2_vits14 --seconds 0.1 --json --objectives none --set ";
  const auto gflop = [&](const std::string& fact) {
    const Outcome o = run_fungi(bench + fact);
    EXPECT_EQ(o.status, 0) << o.err;
    return nlohmann::json::parse(o.out)["gflop_per_sample"].get<double>();
  };
  EXPECT_LT(gflop("size=112x56"), 0.5 * gflop("pooling=mean_patches"));
  for (const char* fact : {"heads=3", "prefix=x", "family=dino", "norm_epsilon=1e-3", "size=100",
                           "size=14x", "size=0", "activation=loud"}) {
    const Outcome o = run_fungi(bench + fact);
    EXPECT_EQ(o.status, 1) << fact;
    EXPECT_EQ(o.err.find("internal"), std::string::npos) << o.err;
  }
  for (const char* name :
       {"vit_base_patch99999999999999999999_224", "dino_vitb99999999999999999999",
        "vit_base_patch16_99999999999999999999"}) {
    const Outcome o = run_fungi(std::string("bench -m ") + name);
    EXPECT_EQ(o.status, 1);
    EXPECT_NE(o.err.find("architecture known by name"), std::string::npos) << o.err;
  }
}

}  // namespace
}  // namespace fungi
