// SPDX-License-Identifier: Apache-2.0
// Every golden file without one of its tensors at a time: a tensor that the network needs is named
// in the refusal, whatever it decides about the file; one that it does not need may go.
#include <gtest/gtest.h>

#include <set>

#include "fungi/backbone/backbone.h"
#include "fungi/backbone/recipes.h"
#include "tests/support/golden_family.h"
#include "tests/support/print.h"
#include "tests/support/tiny_checkpoint.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using test::TinyCheckpoint;

struct Golden {
  fs::path folder;
  StatedFacts facts;

  explicit Golden(const std::string& name)
      : folder(fs::path(FUNGI_GOLDEN_DIR) / "backbone" / name) {
    const auto all = nlohmann::json::parse(std::ifstream(folder / "facts.json"));
    facts["heads"] = std::to_string(all.at("heads").get<int>());
    if (all.contains("stated_size")) facts["size"] = all.at("stated_size").get<std::string>();
    if (all.at("activation") == "quick_gelu" || name.starts_with("open"))
      facts["activation"] = all.at("activation").get<std::string>();
  }

  Checkpoint open() const {
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() != ".npy" && entry.path().extension() != ".json")
        return Checkpoint::open(entry.path());
    throw std::runtime_error("no model in " + folder.string());
  }
};

// The same names and shapes in a file that is easily written.
TinyCheckpoint tiny(const Checkpoint& checkpoint) {
  TinyCheckpoint c;
  for (const TensorInfo& t : checkpoint.tensors()) {
    c.shapes[t.name] = t.shape;
    c.values[t.name].assign(t.count(), 0.0f);
  }
  if (const std::string text = checkpoint.beside("config.json"); !text.empty())
    c.config = nlohmann::json::parse(text);
  return c;
}

// As a whole name, not as the end of a longer one.
bool names_it(const std::string& said, const std::string& name) {
  const auto belongs = [&](size_t at) {
    return at < said.size() && (std::isalnum(static_cast<unsigned char>(said[at])) ||
                                std::strchr("._/", said[at]) != nullptr);
  };
  for (size_t at = 0; (at = said.find(name, at)) != std::string::npos; ++at)
    if (!belongs(at - 1) && !belongs(at + name.size())) return true;
  return false;
}

class MissingTensors : public testing::TestWithParam<std::string> {};

TEST_P(MissingTensors, AreNamed) {
  const Golden golden(GetParam());
  const Checkpoint checkpoint = golden.open();
  const Reading reading = read_names(checkpoint, golden.facts);
  std::set<std::string> used;
  for (const auto& [canonical, recipe] : reading.recipes)
    used.insert(recipe.parts.begin(), recipe.parts.end());
  used.erase("");  // zeros
  const TinyCheckpoint whole = tiny(checkpoint);
  ASSERT_EQ(whole.refusal(golden.facts), "");
  for (const auto& [name, shape] : whole.shapes) {
    TinyCheckpoint c = whole;
    c.shapes.erase(name);
    const std::string said = c.refusal(golden.facts);
    const bool needed = used.count(name) && !golden::may_go(GetParam(), name);
    EXPECT_TRUE(names_it(said, name) || (said.empty() && !needed)) << name << ": " << said;
  }
}

// Lists what it is asked for.
class Asked : public TensorSource {
 public:
  explicit Asked(const TensorSource& tensors) : tensors_(tensors) {}
  Matrix<float> get(const CanonicalTensor& tensor) const override {
    asked.push_back(tensor.name);
    return tensors_.get(tensor);
  }
  mutable std::vector<std::string> asked;

 private:
  const TensorSource& tensors_;
};

// What is listed and checked is what is loaded, each once, but for blocks that are packed in two
// ways: a name that the list does not have would load nothing.
TEST_P(MissingTensors, AllThatAreListedAreLoaded) {
  const Golden golden(GetParam());
  const Checkpoint checkpoint = golden.open();
  Reading reading = read_names(checkpoint, golden.facts);
  std::vector<std::string> listed;
  for (const CanonicalTensor& t : canonical_tensors(reading.architecture)) listed.push_back(t.name);
  const CheckpointTensors tensors(checkpoint, std::move(reading.recipes));
  const Asked asked(tensors);
  Pool pool(1);
  Backbone::assemble(reading.architecture, asked, {.precision = Precision::f32}, pool);
  std::sort(listed.begin(), listed.end());
  std::sort(asked.asked.begin(), asked.asked.end());
  if (reading.architecture.shared_blocks)
    asked.asked.erase(std::unique(asked.asked.begin(), asked.asked.end()), asked.asked.end());
  EXPECT_EQ(asked.asked, listed);
}

TEST(CanonicalTensors, CountWhatTimmCounts) {  // num_classes=0
  EXPECT_EQ(named_architecture("vit_base_patch16_224").parameters(), 85798656u);
  EXPECT_EQ(named_architecture("deit_tiny_patch16_224").parameters(), 5524416u);
}

// A program's own source may be wrong about shapes.
class Narrow : public TensorSource {
 public:
  explicit Narrow(const char* name) : name_(name) {}
  Matrix<float> get(const CanonicalTensor& tensor) const override {
    return {tensor.rows, tensor.cols - (tensor.name == name_)};
  }

 private:
  std::string name_;
};

TEST(CanonicalTensors, HaveTheirShapesWhoeverGivesThem) {
  Pool pool(1);
  Architecture a = named_architecture("vit_tiny_patch16_224");
  a.depth = 1;
  for (const char* name : {"patch_embed.weight", "prefix", "pos_patches", "blocks.0.norm1.bias",
                           "blocks.0.attn.qkv.weight", "blocks.0.mlp.fc2.bias", "norm.weight"})
    EXPECT_EQ(test::error_of([&] {
                Backbone::assemble(a, Narrow(name), {}, pool);
              }).substr(0, std::string(name).size()),
              name);
}

TEST(MissingRegisters, AreToldByTheFilesName) {
  TinyCheckpoint c = test::tiny_timm();
  c.shapes["mask_token"] = {1, test::kTimmWidth};
  for (const std::string b : {"blocks.0.", "blocks.1."})
    c.shapes[b + "ls1.gamma"] = c.shapes[b + "ls2.gamma"] = {test::kTimmWidth};
  const test::TemporaryFolder folder;
  c.write(folder);
  const auto named = [&](const char* name) {
    fs::copy_file(folder / "model.safetensors", folder / name);
    return read_architecture(Checkpoint::open(folder / name)).registers;
  };
  EXPECT_EQ(named("dinov2_vits14_pretrain.safetensors"), 0u);
  EXPECT_EQ(named("run_reg0.1.safetensors"), 0u);
  EXPECT_THROW(named("dinov2_vits14_reg4_pretrain.safetensors"), Error);
}

TEST(UnknownNames, AreNotTakenForNearlyKnownOnes) {
  TinyCheckpoint c;  // a text tower: nobody misses its image tower's convolution
  c.shapes["text.transformer.resblocks.0.attn.in_proj_weight"] = {24, 8};
  c.shapes["text.token_embedding.weight"] = {20, 8};
  EXPECT_NE(c.refusal().find("none of the 2 tensors"), std::string::npos) << c.refusal();
  c.shapes["visual.transformer.resblocks.0.attn.in_proj_weight"] = {24, 8};
  c.shapes["visual.class_embedding"] = c.shapes["visual.ln_pre.weight"] = {8};
  EXPECT_NE(c.refusal().find("visual.conv1.weight: the tensor is missing"), std::string::npos)
      << c.refusal();
}

INSTANTIATE_TEST_SUITE_P(, MissingTensors, testing::ValuesIn(golden::backbones()),
                         [](const auto& p) { return p.param; });

// Whole files of models that are none of ours, in part named alike: nothing of them is missing.
TEST(UnknownNames, OfWholeModelsMissNothing) {
  using Names = std::vector<std::string>;
  for (const Names& model :
       {Names{"visual.conv1.weight", "visual.layer1.0.conv1.weight", "positional_embedding",
              "transformer.resblocks.0.attn.in_proj_weight", "token_embedding.weight",
              "ln_final.weight", "text_projection"},  // CLIP with a ResNet
        Names{"patch_embed.proj.weight", "layers.0.blocks.0.attn.qkv.weight",
              "layers.0.blocks.0.attn.proj.weight", "layers.0.blocks.0.mlp.fc1.weight",
              "norm.weight"},  // Swin
        Names{"model.shared.weight", "model.encoder.layers.0.self_attn.q_proj.weight",
              "model.encoder.layers.0.fc1.weight", "model.encoder.embed_positions.weight",
              "model.decoder.layers.0.self_attn.q_proj.weight"}}) {  // BART
    TinyCheckpoint c;
    for (const std::string& name : model) c.shapes[name] = {8, 8};
    EXPECT_NE(c.refusal().find("belongs to an architecture known here"), std::string::npos)
        << c.refusal();
  }
}

}  // namespace
}  // namespace fungi
