// SPDX-License-Identifier: Apache-2.0
// The files that sentence-transformers keeps beside a text encoder: they decide how it is pooled,
// and what of them is not known is refused by name.
#include <gtest/gtest.h>

#include <fstream>

#include "fungi/backbone/backbone.h"
#include "fungi/checkpoint/checkpoint.h"
#include "tests/support/errors.h"
#include "tests/support/tiny_checkpoint.h"

namespace fungi {
namespace {

using nlohmann::json;

json module_list(const std::vector<std::string>& types) {
  json list = json::array();
  for (size_t i = 0; i < types.size(); ++i)
    list.push_back({{"idx", i},
                    {"path", i == 0 ? "" : std::to_string(i) + "_" + types[i]},
                    {"type", "sentence_transformers.models." + types[i]}});
  return list;
}

struct SentenceFolder {
  test::TemporaryFolder folder;
  StatedFacts facts{{"heads", "2"}};

  SentenceFolder() {
    test::TinyCheckpoint c = test::tiny_bert();
    c.config = {{"model_type", "bert"}};
    c.write(folder);
  }
  void put(const std::string& name, const json& content) const {
    const auto file = folder / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content;
  }
  void pooling(const json& content) const {
    put("modules.json", module_list({"Transformer", "Pooling"}));
    put("1_Pooling/config.json", content);
  }
  Architecture read() const { return read_architecture(Checkpoint::open(folder.path()), facts); }
  std::vector<std::string> notes() const {
    return read_notes(Checkpoint::open(folder.path()), facts);
  }
  bool noted(const std::string& words) const {
    for (const std::string& note : notes())
      if (note.find(words) != std::string::npos) return true;
    return false;
  }
};

TEST(SentenceModules, WithoutThemTheFirstTokenIsTaken) {
  const SentenceFolder f;
  EXPECT_EQ(f.read().pooling, Pooling::first);
  EXPECT_FALSE(f.read().unit_embedding);
  EXPECT_TRUE(f.notes().empty());
}

TEST(SentenceModules, ThePoolingIsThatOfItsFile) {
  for (const auto& [key, word, pooling] :
       {std::tuple("pooling_mode_cls_token", "cls", Pooling::first),
        {"pooling_mode_mean_tokens", "mean", Pooling::mean_all},
        {"pooling_mode_max_tokens", "max", Pooling::max_all},
        {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", Pooling::mean_sqrt}}) {
    SentenceFolder f;
    json config{{"word_embedding_dimension", 8}, {"pooling_mode_mean_tokens", false}};
    config[key] = true;
    f.pooling(config);
    EXPECT_EQ(f.read().pooling, pooling) << key;
    EXPECT_FALSE(f.read().unit_embedding);
    f.pooling({{"embedding_dimension", 8}, {"pooling_mode", word}});
    EXPECT_EQ(f.read().pooling, pooling) << word;
    f.put("modules.json", module_list({"Transformer", "Pooling", "Dropout", "Normalize"}));
    EXPECT_TRUE(f.read().unit_embedding);
    EXPECT_TRUE(f.notes().empty()) << "all is said";
  }
}

TEST(SentenceModules, AMissingPoolingFileIsNoted) {
  const SentenceFolder f;
  f.put("modules.json", module_list({"Transformer", "Pooling", "Normalize"}));
  EXPECT_EQ(f.read().pooling, Pooling::mean_all);
  EXPECT_TRUE(f.read().unit_embedding);
  EXPECT_TRUE(f.noted("1_Pooling/config.json is not there: the mean"));
}

TEST(SentenceModules, WhatIsStatedHasTheLastWord) {
  SentenceFolder f;
  f.put("modules.json", module_list({"Transformer", "Pooling", "Dense", "Normalize"}));
  f.facts["pooling"] = "max_all";
  EXPECT_EQ(f.read().pooling, Pooling::max_all);
  EXPECT_FALSE(f.read().unit_embedding);
  EXPECT_TRUE(f.noted("'max_all' is stated"));
}

TEST(SentenceModules, WhatIsNotKnownIsRefusedByName) {
  SentenceFolder f;
  f.pooling({{"pooling_mode_mean_tokens", true}});
  for (const auto& [types, named] :
       {std::pair(std::vector<std::string>{"Transformer", "Pooling", "Dense"}, "'Dense'"),
        {{"Transformer", "WeightedLayerPooling", "Pooling"}, "'WeightedLayerPooling'"},
        {{"Transformer", "Normalize"}, "'Normalize'"},
        {{"CLIPModel"}, "'CLIPModel'"},
        {{"Transformer"}, "no module Pooling"}}) {
    f.put("modules.json", module_list(types));
    EXPECT_ERROR(named, f.read());
    EXPECT_ERROR("`stated_facts[pooling]=mean_all`", f.read());
  }
  for (const auto& [config, named] :
       {std::pair(json{{"pooling_mode_lasttoken", true}}, "'lasttoken'"),
        {{{"pooling_mode", "weightedmean"}}, "'weightedmean'"},
        {{{"pooling_mode", {"cls", "mean"}}}, "cls, mean"},
        {{{"pooling_mode_cls_token", true}, {"pooling_mode_mean_tokens", true}}, "cls, mean"},
        {{{"pooling_mode_mean_tokens", true}, {"word_embedding_dimension", 9}}, "width is 8"}}) {
    f.pooling(config);
    EXPECT_ERROR(named, f.read());
  }
  for (const json& broken : {json::object(), json::array(), json(3)}) {
    f.put("modules.json", broken);
    EXPECT_ERROR("modules.json", f.read());
  }
  f.pooling(json::array({1}));
  EXPECT_ERROR("1_Pooling/config.json", f.read());
}

TEST(SentenceModules, PromptsAreNoted) {
  SentenceFolder f;
  f.pooling({{"pooling_mode", "mean"}, {"include_prompt", false}});
  f.put("config_sentence_transformers.json",
        {{"prompts", {{"query", "query: "}, {"document", ""}}}, {"default_prompt_name", "query"}});
  EXPECT_TRUE(f.noted("'query: ' (query)"));
  EXPECT_TRUE(f.noted("that of 'query' before all texts"));
  EXPECT_TRUE(f.noted("leaves the tokens of a prompt out"));
  f.put("config_sentence_transformers.json", {{"prompts", json::object()}});
  EXPECT_FALSE(f.noted("prompts"));
}

TEST(SentenceModules, TheListMayLieAboveTheEncoder) {
  test::TinyCheckpoint c = test::tiny_bert();
  c.config = {{"model_type", "bert"}};
  const test::TemporaryFolder made;
  c.write(made);
  const SentenceFolder f;
  json list = module_list({"Transformer", "Pooling"});
  list[0]["path"] = "0_BERT";
  f.put("modules.json", list);
  f.put("1_Pooling/config.json", {{"pooling_mode", "max"}});
  for (const char* name : {"0_BERT", "other"}) {
    std::filesystem::copy(made.path(), f.folder / name);
    const Checkpoint inner = Checkpoint::open(f.folder / name);
    const bool listed = std::string(name) == "0_BERT";
    EXPECT_EQ(read_architecture(inner, f.facts).pooling, listed ? Pooling::max_all : Pooling::first)
        << name;
  }
}

TEST(SentenceModules, LengthOneHasItsGradient) {
  SentenceFolder f;
  f.pooling({{"pooling_mode", "mean"}});
  Pool pool(1);
  const std::vector<int32_t> ids{2, 5, 7, 3};
  const std::vector<Inputs::Text> texts{{ids, {}}};
  const auto open = [&] {
    return Backbone::open(f.folder.path(), {.precision = Precision::f32, .stated_facts = f.facts},
                          pool);
  };
  const Backbone raw = open();
  f.put("modules.json", module_list({"Transformer", "Pooling", "Normalize"}));
  const Backbone unit = open();
  Workspace workspace;
  Matrix<float> e(1, 8), u(1, 8), g(1, 8), g_raw(1, 8);
  for (size_t j = 0; j < 8; ++j) g(0, j) = float(j % 3) - 0.7f;
  raw.forward(Inputs::text(texts), workspace, e);
  double square = 0, inner = 0;
  for (size_t j = 0; j < 8; ++j)
    square += double(e(0, j)) * e(0, j), inner += double(e(0, j)) * g(0, j);
  const double length = std::sqrt(square);
  for (size_t j = 0; j < 8; ++j)  // (I - u uᵀ) g / |e|
    g_raw(0, j) = float((g(0, j) - inner / square * e(0, j)) / length);
  LayerGradient expected, found;
  raw.backward(g_raw, workspace, expected);
  unit.forward(Inputs::text(texts), workspace, u);
  for (size_t j = 0; j < 8; ++j) EXPECT_NEAR(u(0, j), e(0, j) / length, 1e-6);
  unit.backward(g, workspace, found);
  ASSERT_EQ(found.b.rows(), expected.b.rows());
  for (size_t i = 0; i < found.b.rows(); ++i)
    for (size_t j = 0; j < found.b.cols(); ++j)
      EXPECT_NEAR(found.b(i, j), expected.b(i, j), 1e-6) << i << " " << j;
}

TEST(OwnCode, IsRefusedByName) {
  test::TinyCheckpoint c = test::tiny_bert();
  c.config = {{"model_type", "bert"},
              {"auto_map", {{"AutoModel", "some/implementation--modeling_bert.OtherBertModel"}}}};
  const std::string said = c.refusal({{"heads", "2"}});
  EXPECT_NE(said.find("OtherBertModel"), std::string::npos) << said;
  test::TinyCheckpoint unknown;
  unknown.shapes["encoder.layers.0.attn.Wqkv.weight"] = {24, 8};
  unknown.shapes["embeddings.word_embeddings.weight"] = {12, 8};
  unknown.config = {{"model_type", "nomic_bert"},
                    {"auto_map", {{"AutoModel", "x.NomicBertModel"}}}};
  EXPECT_NE(unknown.refusal().find("'nomic_bert'"), std::string::npos) << unknown.refusal();
}

}  // namespace
}  // namespace fungi
