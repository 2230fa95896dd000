// SPDX-License-Identifier: Apache-2.0
// Checkpoints with a few sides, tensors and facts changed at random: each is read or refused with
// an Error. A division by a side of zero, or memory for what a file only claims, ends this program.
#include <gtest/gtest.h>

#include "fungi/backbone/backbone.h"
#include "tests/support/print.h"
#include "tests/support/tiny_checkpoint.h"

namespace fungi {
namespace {

using test::TinyCheckpoint;

TinyCheckpoint timm_with(const std::string& what) {
  const std::string v = what == "ssast" ? "module.v." : "";
  TinyCheckpoint c = test::tiny_timm(what == "ssast" ? 18 : 17, 4, v);
  const std::vector<size_t> vector{test::kTimmWidth}, token{1, 1, test::kTimmWidth};
  if (what == "ssast") {
    c.shapes[v + "patch_embed.proj.weight"] = {test::kTimmWidth, 1, 16, 16};
    c.shapes[v + "dist_token"] = token;
    c.shapes["module.p_input_tdim"] = {1};
  } else if (what == "deit3") {
    c.shapes["pos_embed"] = {1, 16, test::kTimmWidth};
    for (const std::string b : {"blocks.0.", "blocks.1."})
      c.shapes[b + "gamma_1"] = c.shapes[b + "gamma_2"] = vector;
  } else if (what == "dinov2") {
    c.shapes["mask_token"] = token;
    c.shapes["register_tokens"] = {1, 2, test::kTimmWidth};
    for (const std::string b : {"blocks.0.", "blocks.1."})
      c.shapes[b + "ls1.gamma"] = c.shapes[b + "ls2.gamma"] = vector;
  } else if (what == "clip") {
    c.shapes["norm_pre.weight"] = c.shapes["norm_pre.bias"] = vector;
    c.shapes["head.weight"] = {32, test::kTimmWidth}, c.shapes["head.bias"] = {32};
  }
  return c;
}

TinyCheckpoint fixture(const std::string& what) {
  if (what == "hf_vit") return test::tiny_vit(3, false, 16);
  if (what == "hf_ast") return test::tiny_vit(1, true, 16);
  if (what == "bert") return test::tiny_bert("bert.");
  if (what == "t5") return test::tiny_t5();
  if (what == "whisper" || what == "kwt") {
    const auto folder = std::filesystem::path(FUNGI_GOLDEN_DIR) / "backbone" / what;
    return test::shaped_like(folder / "model.safetensors");
  }
  return timm_with(what);
}

class MutatedNames : public testing::TestWithParam<const char*> {};

TEST_P(MutatedNames, AreReadOrRefused) {
  const TinyCheckpoint whole = fixture(GetParam());
  const nlohmann::json numbers{0, 1, -1, 4, 16, 224, 1e9, "x", nullptr, nlohmann::json::array({8})};
  const size_t sides[] = {0, 1, 2, 3, 7, 16, 64, 129, 256};
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return size_t(random() % n); };
  Pool pool(1);
  size_t read = 0, refused = 0;
  for (int round = 0; round < 250; ++round) {
    TinyCheckpoint c = whole;
    for (size_t change = below(3); change < 3; ++change) {
      auto at = std::next(c.shapes.begin(), std::ptrdiff_t(below(c.shapes.size())));
      if (below(6) == 0) {
        c.shapes.erase(at);
      } else if (!at->second.empty()) {
        size_t& side = at->second[below(at->second.size())];
        side = sides[below(std::size(sides))];
        // Without elements, another side may claim anything.
        if (side == 0 && below(2)) at->second[below(at->second.size())] = size_t(1) << 40;
        if (TinyCheckpoint::count(at->second) > 1 << 20) side = 0;
      }
    }
    if (below(2))
      for (const char* key : {"num_attention_heads", "image_size", "patch_size", "num_heads"})
        if (below(3) == 0) c.config[key] = numbers[below(numbers.size())];
    if (below(4) == 0)
      c.config["pretrained_cfg"] = {{"input_size", {3, 16, sides[below(std::size(sides))]}}};
    StatedFacts facts;
    if (below(2)) facts["heads"] = std::to_string(1 + below(4));
    if (below(4) == 0) facts["size"] = std::to_string(sides[below(std::size(sides))]);
    if (below(2)) facts["activation"] = "gelu";
    const test::TemporaryFolder folder;
    try {
      Backbone::open(c.write(folder), {.stated_facts = facts}, pool);
      ++read;
    } catch (const Error& e) {
      ++refused;
      EXPECT_FALSE(e.message().empty());
    }
  }
  EXPECT_GT(read, 0u) << "else nothing but refusals was tried";
  EXPECT_GT(refused, 50u);
}

INSTANTIATE_TEST_SUITE_P(Families, MutatedNames,
                         testing::Values("timm", "ssast", "deit3", "dinov2", "clip", "hf_vit",
                                         "hf_ast", "bert", "t5", "whisper", "kwt"));

}  // namespace
}  // namespace fungi
