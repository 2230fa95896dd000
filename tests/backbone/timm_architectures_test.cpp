// SPDX-License-Identifier: Apache-2.0
// What timm's names of architectures tell: those of config.json, of the file, and stated ones.
#include "fungi/backbone/timm_architectures.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/support/tiny_checkpoint.h"

namespace fungi {
namespace {

using test::timm_config;
using test::tiny_timm;
using test::TinyCheckpoint;

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TinyCheckpoint wide(size_t width) { return tiny_timm(17, 4, "", width); }

Architecture named(const TinyCheckpoint& c, const std::string& file,
                   const StatedFacts& facts = {}) {
  const test::TemporaryFolder folder;
  c.write(folder);
  std::filesystem::rename(folder / "model.safetensors", folder / file);
  return read_architecture(Checkpoint::open(folder / file), facts);
}

TEST(TimmArchitectures, EachNameStandsOnce) {
  std::set<std::string> seen;
  size_t count = 0;
  const auto take = [&](std::string_view names) {
    ASSERT_TRUE(names.starts_with(' ') && names.ends_with(' '));
    std::istringstream words{std::string(names)};
    for (std::string name; words >> name; ++count) seen.insert(name);
  };
  for (const TimmArchitecture& a : timm_architectures()) {
    EXPECT_TRUE(a.heads > 0 && a.width % a.heads == 0) << a.names;
    take(a.names);
  }
  take(other_timm_architectures());
  EXPECT_EQ(seen.size(), count);
  EXPECT_GT(count, 200u);
}

// As timm's is but for its width, of which a file of a test has less.
nlohmann::json narrow(const std::string& architecture) {
  return {{"architecture", architecture}, {"model_args", {{"embed_dim", 64}}}};
}

TEST(TimmArchitectures, ConfigTellsHeadsActivationPoolingAndEpsilon) {
  TinyCheckpoint c = tiny_timm();
  c.config = {{"architecture", "test_vit"}};
  EXPECT_EQ(c.read().heads, 2u);
  EXPECT_FALSE(c.read().heads_assumed);
  c.config = narrow("vit_base_patch16_gap_224");
  EXPECT_EQ(c.read().heads, 16u);
  EXPECT_EQ(c.read().pooling, Pooling::mean_patches);
  c.config = narrow("vit_large_patch14_clip_quickgelu_224");
  EXPECT_EQ(c.read().activation, kernel::Activation::quick_gelu);
  EXPECT_EQ(c.read().norm_epsilon, 1e-5f);
  EXPECT_EQ(c.read({{"norm_epsilon", "1e-3"}, {"heads", "8"}}).norm_epsilon, 1e-3f);
  EXPECT_EQ(c.read({{"norm_epsilon", "1e-3"}, {"heads", "8"}}).heads, 8u);
  c.config["model_args"]["num_heads"] = 4;
  EXPECT_EQ(c.read().heads, 4u);
}

TEST(TimmArchitectures, TheFilesNameTellsTheSameWhereItFits) {
  const TinyCheckpoint c = wide(256);
  EXPECT_EQ(named(c, "vit_wee_patch16_reg1_gap_256.in1k.safetensors").pooling,
            Pooling::mean_patches);
  EXPECT_EQ(named(c, "vit_xsmall_patch16_clip_224-80ecf9dd.pth").norm_epsilon, 1e-5f);
  EXPECT_FALSE(named(c, "vit_xsmall_patch16_clip_224.pth").heads_assumed);
  EXPECT_TRUE(named(c, "vit_xsmall_patch16_clip_224_of_mine.pth").heads_assumed);
  EXPECT_TRUE(named(c, "vit_small_patch16_224.pth").heads_assumed) << "another width";
  EXPECT_THROW(named(c, "vit_base_patch16_rpn_224.pth"), Error);
}

TEST(TimmArchitectures, AStatedOneGoesBeforeAllOthers) {
  TinyCheckpoint c = wide(64);
  const StatedFacts test{{"architecture", "test_vit"}};
  EXPECT_EQ(c.read(test).heads, 2u);
  EXPECT_EQ(named(c, "test_vit2.pth", test).pooling, Pooling::first);
  c.config = {{"architecture", "test_vit2"}};
  EXPECT_EQ(c.read().pooling, Pooling::mean_patches);
  EXPECT_EQ(c.read(test).pooling, Pooling::first);
  EXPECT_TRUE(says(c.refusal({{"architecture", "vit_bas"}}), "is not a ViT of timm"));
  EXPECT_TRUE(says(c.refusal({{"architecture", "vit_small_patch16_224"}}),
                   "vit_small_patch16_224 is 384 wide, the tensors say 64"));
}

TEST(TimmArchitectures, WhatIsComputedInAnotherWayOrHasAnotherWidthIsRefused) {
  TinyCheckpoint c = tiny_timm();
  c.config = {{"architecture", "vit_base_patch16_rpn_224.sw_in1k"}};
  EXPECT_TRUE(says(c.refusal(), "vit_base_patch16_rpn_224 is the name of an architecture"))
      << c.refusal();
  c.config = {{"architecture", "vit_large_patch16_224"}};
  EXPECT_TRUE(says(c.refusal(), "vit_large_patch16_224 is 1024 wide, the tensors say 64"))
      << c.refusal();
  c.config["model_args"] = {{"embed_dim", 64}};  // its heads stay those of the name
  EXPECT_EQ(c.read().heads, 16u);
}

// Of timm's names one alone has neither, and its tensors are those of a ViT.
TEST(TimmArchitectures, NormsBehindTheLayersAreNotTakenForThoseBefore) {
  TinyCheckpoint c = tiny_timm(16);
  c.shapes.erase("cls_token");
  for (const std::string part : {".weight", ".bias"})
    c.shapes["fc_norm" + part] = {64}, c.shapes.erase("norm" + part);
  EXPECT_EQ(c.refusal(), "");
  for (const char* block : {"blocks.0.", "blocks.1."})
    c.shapes.erase(std::string(block) + "attn.qkv.bias");
  EXPECT_TRUE(says(c.refusal(), "norms after its layers")) << c.refusal();
  EXPECT_EQ(c.refusal({{"family", "vit"}}), "");
  EXPECT_EQ(c.refusal({{"architecture", "test_vit2"}}), "");
}

TEST(TimmArchitectures, AModelThatLeavesOutTheEdgeOfItsPicturesIsRefused) {
  TinyCheckpoint c = tiny_timm(17, 14);
  c.config = narrow("vit_so400m_patch14_siglip_gap_384");
  EXPECT_TRUE(says(c.refusal(), "leaves out the edge")) << c.refusal();
  EXPECT_TRUE(says(c.refusal(), "`stated_facts[size]=378`")) << c.refusal();
  EXPECT_EQ(c.refusal({{"size", "378"}}), "");
  c.config = narrow("vit_so400m_patch14_siglip_gap_378");
  EXPECT_EQ(c.refusal(), "");
}

// A file with a hole for its weights: only names and shapes are read.
std::filesystem::path write_hole(const std::map<std::string, std::vector<size_t>>& shapes,
                                 const test::TemporaryFolder& folder) {
  nlohmann::json header;
  size_t end = 0;
  for (const auto& [name, shape] : shapes) {
    size_t bytes = 4;
    for (const size_t n : shape) bytes *= n;
    header[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {end, end + bytes}}};
    end += bytes;
  }
  const std::string text = header.dump();
  const uint64_t size = text.size();
  std::string start(8, '\0');
  std::memcpy(start.data(), &size, 8);
  std::ofstream(folder / "model.safetensors", std::ios::binary) << start << text;
  std::filesystem::resize_file(folder / "model.safetensors", 8 + size + end);
  return folder / "model.safetensors";
}

// Eight blocks of 768, three times as wide inside, and no bias of the queries.
TEST(TimmArchitectures, TheEarlySmallViTIsRefusedUnlessItsHeadsAreStated) {
  auto shapes = wide(768).shapes;
  for (const auto& [name, shape] : wide(768).shapes)
    for (int i = 2; i < 8 && name.starts_with("blocks.1."); ++i)
      shapes["blocks." + std::to_string(i) + name.substr(8)] = shape;
  for (int i = 0; i < 8; ++i) {
    const std::string b = "blocks." + std::to_string(i);
    shapes.erase(b + ".attn.qkv.bias");
    shapes[b + ".mlp.fc1.weight"] = {2304, 768}, shapes[b + ".mlp.fc1.bias"] = {2304};
    shapes[b + ".mlp.fc2.weight"] = {768, 2304};
  }
  const test::TemporaryFolder folder;
  const auto file = write_hole(shapes, folder);
  for (const bool configured : {false, true}) {
    if (configured)
      std::ofstream(folder / "config.json") << R"({"architecture": "vit_small_patch16_224"})";
    const Checkpoint checkpoint = Checkpoint::open(file);
    const std::string refusal = test::error_of([&] { read_architecture(checkpoint); });
    EXPECT_TRUE(says(refusal, "timm before 0.5")) << refusal;
    const Architecture a = read_architecture(checkpoint, {{"heads", "8"}});
    EXPECT_EQ(a.heads, 8u);
    EXPECT_EQ(a.norm_epsilon, 1e-5f);
  }
}

}  // namespace
}  // namespace fungi
