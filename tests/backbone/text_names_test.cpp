// SPDX-License-Identifier: Apache-2.0
// Text encoders that share their tensors' names and compute different things: which are run, how,
// and which are refused. The truth of those that are run is in tests/golden/backbone.
#include <gtest/gtest.h>

#include "fungi/backbone/backbone.h"
#include "fungi/backbone/position.h"
#include "tests/support/errors.h"
#include "tests/support/tiny_checkpoint.h"

namespace fungi {
namespace {

using test::tiny_bert;
using test::tiny_t5;
using test::TinyCheckpoint;
using Ids = std::vector<int32_t>;

const StatedFacts kHeads{{"heads", "2"}};

// The mean over all tokens, so that each position counts.
std::vector<float> embed(const TinyCheckpoint& checkpoint, const Ids& ids,
                         const std::vector<uint8_t>& mask = {}) {
  const test::TemporaryFolder folder;
  Pool pool(1);
  BackboneOptions options{.precision = Precision::f32, .layer = "none"};
  options.stated_facts = {{"heads", "2"}, {"pooling", "mean_all"}};
  const Backbone backbone = Backbone::open(checkpoint.write(folder), options, pool);
  Workspace workspace;
  Matrix<float> out(1, backbone.architecture().embedding_width);
  const std::vector<Inputs::Text> texts{{ids, mask}};
  backbone.forward(Inputs::text(texts), workspace, out);
  return {out.row(0), out.row(0) + out.cols()};
}

TEST(Roberta, PositionsStartAfterThePaddingId) {
  for (const char* type : {"roberta", "xlm-roberta", "camembert", "data2vec-text"}) {
    for (const size_t padding : {1, 3}) {
      TinyCheckpoint roberta = tiny_bert("roberta.", 1), bert = tiny_bert("roberta.", 1);
      roberta.config = {{"model_type", type}, {"pad_token_id", padding}};
      bert.config = {{"model_type", "bert"}};
      const std::string table = "roberta.embeddings.position_embeddings.weight";
      std::vector<float> shifted = bert.floats(table);
      std::rotate(shifted.begin(), shifted.begin() + long((padding + 1) * 8), shifted.end());
      bert.values[table] = shifted;
      const Ids ids{0, 5, 7, 6, 2};
      EXPECT_EQ(embed(roberta, ids), embed(bert, ids)) << type << ", padding " << padding;
    }
  }
}

TEST(Roberta, PositionsCountTheTokensThatAreNotPadding) {
  TinyCheckpoint roberta = tiny_bert("roberta.", 1);
  roberta.config = {{"model_type", "roberta"}};  // pad_token_id: 1
  const std::vector<float> alone = embed(roberta, {0, 5, 7, 2});
  EXPECT_EQ(embed(roberta, {0, 5, 7, 2, 1, 1}, {1, 1, 1, 1, 0, 0}), alone);
  EXPECT_EQ(embed(roberta, {1, 1, 0, 5, 7, 2}, {0, 0, 1, 1, 1, 1}), alone) << "padded in front";
  EXPECT_NO_THROW(embed(roberta, {0, 3, 4, 5, 6, 7, 8, 2}));  // 8 of the 10 positions
  EXPECT_ERROR("8 positions", embed(roberta, {0, 3, 4, 5, 6, 7, 8, 9, 2}));  // none for the last
}

TEST(Roberta, ThePaddingIdMustHaveAPosition) {
  for (const double padding : {-1.0, 9.0, 1e30, 1.5}) {
    TinyCheckpoint roberta = tiny_bert("", 1);
    roberta.config = {{"model_type", "roberta"}, {"pad_token_id", padding}};
    EXPECT_NE(roberta.refusal(kHeads).find("pad_token_id"), std::string::npos) << padding;
  }
}

TEST(BertNames, TheModelTypeDecides) {
  for (const char* type : {"bert", "electra", "splinter"}) {
    TinyCheckpoint c = tiny_bert();
    c.config = {{"model_type", type}};
    EXPECT_EQ(c.read(kHeads).family, "bert");
    EXPECT_FALSE(c.read(kHeads).padding_id);
  }
  for (const char* type : {"big_bird", "yoso", "ernie", "layoutlm", "xlm-roberta-xl", "t5"}) {
    TinyCheckpoint c = tiny_bert();
    c.config = {{"model_type", type}};
    const std::string said = c.refusal(kHeads);
    EXPECT_NE(said.find(type), std::string::npos) << said;
    EXPECT_NE(said.find("electra"), std::string::npos) << "must name the choices: " << said;
  }
  TinyCheckpoint decoder = tiny_bert();
  decoder.config = {{"model_type", "bert"}, {"is_decoder", true}};
  EXPECT_NE(decoder.refusal(kHeads).find("is_decoder"), std::string::npos);
}

TEST(BertNames, WithoutAConfigTheNamesDecide) {
  for (const char* prefix : {"bert.", "module.bert.", "electra."})
    EXPECT_EQ(tiny_bert(prefix).read(kHeads).family, "bert") << prefix;
  for (const char* prefix : {"", "0.auto_model."}) {  // RoBERTa may have two token types, too
    EXPECT_NE(tiny_bert(prefix).refusal(kHeads).find("`stated_facts[family]=bert`"),
              std::string::npos)
        << tiny_bert(prefix).refusal(kHeads);
    EXPECT_EQ(tiny_bert(prefix).read({{"heads", "2"}, {"family", "bert"}}).family, "bert");
    EXPECT_NE(tiny_bert(prefix).refusal({{"heads", "2"}, {"family", "roberta"}}), "");
  }
  TinyCheckpoint head = tiny_bert();
  head.shapes["cls.predictions.bias"] = {12};
  EXPECT_EQ(head.refusal(kHeads), "");
  for (const char* prefix : {"roberta.", "module.roberta.", "data2vec_text.", "yoso."})
    EXPECT_NE(tiny_bert(prefix).refusal(kHeads).find("config.json"), std::string::npos) << prefix;
  EXPECT_NE(tiny_bert("", 1).refusal(kHeads).find("RoBERTa"), std::string::npos)
      << "one token type";
  for (const char* extra :
       {"embeddings.task_type_embeddings.weight", "embeddings.x_position_embeddings.weight",
        "embeddings_project.weight", "encoder.layer.0.attention.self.conv.weight",
        "encoder.x_layers.0.visual_attention.att.query.weight",  // LXMERT
        "bbox_embeddings.bbox_projection.weight"}) {             // Bros
    TinyCheckpoint c = tiny_bert();
    c.config = {{"model_type", "bert"}};
    c.shapes[extra] = {8, 8};
    EXPECT_NE(c.refusal(kHeads).find(extra), std::string::npos) << c.refusal(kHeads);
  }
}

TEST(T5Names, OldConfigsTellTheActivationInFeedForwardProj) {
  using enum kernel::Activation;
  const std::tuple<const char*, bool, kernel::Activation> cases[] = {
      {"relu", false, relu},           {"gelu", false, gelu},      {"gelu_new", false, gelu_tanh},
      {"gated-gelu", true, gelu_tanh}, {"gated-silu", true, silu}, {"gated-relu", true, relu}};
  for (const auto& [text, gated, activation] : cases) {
    TinyCheckpoint c = tiny_t5(gated);
    c.config = {{"feed_forward_proj", text}};
    EXPECT_EQ(c.read().activation, activation) << text;
    TinyCheckpoint other = tiny_t5(!gated);
    other.config = c.config;
    EXPECT_NE(other.refusal().find("feed_forward_proj"), std::string::npos) << text;
  }
  TinyCheckpoint both = tiny_t5(true);
  both.config = {{"feed_forward_proj", "gated-gelu"}, {"dense_act_fn", "gelu"}};
  EXPECT_EQ(both.read().activation, gelu) << "what is said plainly counts";
  EXPECT_EQ(tiny_t5(true).read().activation, gelu_tanh);
  EXPECT_EQ(tiny_t5(false).read().activation, relu);
}

TEST(T5Names, OthersAreRefused) {
  TinyCheckpoint named = tiny_t5();
  named.config = {{"model_type", "umt5"}};
  EXPECT_NE(named.refusal().find("umt5"), std::string::npos);
  TinyCheckpoint unnamed = tiny_t5();
  unnamed.shapes["encoder.block.1.layer.0.SelfAttention.relative_attention_bias.weight"] = {8, 2};
  EXPECT_NE(unnamed.refusal().find("UMT5"), std::string::npos) << unnamed.refusal();
  TinyCheckpoint mt5 = tiny_t5(true);
  mt5.config = {{"model_type", "mt5"}};
  EXPECT_EQ(mt5.refusal(), "");
}

TEST(T5Names, BiasesWhichItHasNowhereAreRefused) {
  for (const char* layer : {"encoder.final_layer_norm", "encoder.block.0.layer.0.layer_norm",
                            "encoder.block.0.layer.0.SelfAttention.o"}) {
    TinyCheckpoint biased = tiny_t5();
    biased.shapes[std::string(layer) + ".bias"] = {8};
    EXPECT_NE(biased.refusal().find(std::string(layer) + ".bias"), std::string::npos)
        << layer << ": " << biased.refusal();
  }
}

TEST(T5Names, BucketsMustHoldNearAndFarTokens) {
  for (const size_t buckets : {1, 2, 3})
    EXPECT_NE(tiny_t5(false, buckets).refusal().find("relative buckets"), std::string::npos);
  EXPECT_EQ(tiny_t5(false, 4).refusal(), "");
  for (const double distance : {-3.0, 0.0, 2.0, 1e30, 4.5}) {  // 8 buckets: 2 exact ones each way
    TinyCheckpoint c = tiny_t5();
    c.config = {{"relative_attention_max_distance", distance}};
    EXPECT_NE(c.refusal().find("relative_attention_max_distance"), std::string::npos) << distance;
  }
  for (const size_t distance : {size_t{3}, size_t{1} << 20})
    for (long offset : {-1048576l, -3l, -2l, 0l, 2l, 3l, 1048576l})
      EXPECT_LT(relative_bucket(offset, 8, distance), 8u) << offset;
}

}  // namespace
}  // namespace fungi
