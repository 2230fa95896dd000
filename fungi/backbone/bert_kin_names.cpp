// SPDX-License-Identifier: Apache-2.0
// After-norm text encoders with names of their own, as Hugging Face has them: DistilBERT, MPNet and
// ALBERT.
#include <fmt/format.h>

#include "fungi/backbone/names.h"
#include "fungi/backbone/position.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

// What all of them have in common.
void read_words(const NameReader& names, Architecture& a, RecipeWriter& w) {
  const std::string words = "embeddings.word_embeddings.weight",
                    positions = "embeddings.position_embeddings.weight";
  a.dialect = "huggingface", a.input = InputKind::token_ids;
  a.vocabulary = names.dimension(words, 0);
  a.width = names.dimension(words, 1);
  a.max_positions = names.dimension(positions, 0);
  a.prefix_tokens = 0;
  a.post_norm = true, a.norm_pre = true, a.final_norm = false;
  a.norm_epsilon = float(names.config_number("/layer_norm_eps").value_or(1e-12));
  w.tensor("words", words);
  w.tensor("word_positions", positions);
  w.affine("norm_pre", "embeddings.LayerNorm");
}

void read_distilbert(const NameReader& names, Architecture& a, RecipeWriter& w) {
  require_model_type(names, {"distilbert"});
  read_words(names, a, w);
  const std::string block = "transformer.layer.";
  a.family = "distilbert";
  a.depth = names.count_blocks(block, ".attention.q_lin.weight");
  a.token_types = false;
  set_heads(names, a);
  a.mlp_hidden = names.dimension(block + "0.ffn.lin1.weight", 0);
  a.norm_epsilon = 1e-12f;  // which its config.json does not tell
  a.activation = names.config_activation("/activation").value_or(kernel::Activation::gelu);
  settle_facts(names, a);
  for (size_t i = 0; i < a.depth; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), f = fmt::format("{}{}.", block, i),
                      q = f + "attention.";
    w.stacked(b + "attn.qkv", {q + "q_lin", q + "k_lin", q + "v_lin"}, true);
    w.affine(b + "attn.proj", q + "out_lin");
    w.affine(b + "norm1", f + "sa_layer_norm");
    w.affine(b + "mlp.fc1", f + "ffn.lin1");
    w.affine(b + "mlp.fc2", f + "ffn.lin2");
    w.affine(b + "norm2", f + "output_layer_norm");
  }
}

void read_mpnet(const NameReader& names, Architecture& a, RecipeWriter& w) {
  // Its code has these numbers fixed, whatever its config.json says.
  constexpr size_t kBuckets = 32, kDistance = 128, kPadding = 1;
  require_model_type(names, {"mpnet"});
  read_words(names, a, w);
  const std::string block = "encoder.layer.", bias = "encoder.relative_attention_bias.weight";
  a.family = "mpnet";
  a.depth = names.count_blocks(block, ".attention.attn.q.weight");
  a.token_types = false;
  a.padding_id = kPadding;
  if (a.max_positions <= kPadding + 1)
    fail(fmt::format("{} positions, expected more than {}", a.max_positions, kPadding + 1),
         names.checkpoint().path(), "the file is damaged or of another architecture");
  a.relative_buckets = names.dimension(bias, 0), a.relative_distance = kDistance;
  if (a.relative_buckets != kBuckets)
    fail(fmt::format("{} relative buckets, expected {}", a.relative_buckets, kBuckets),
         fmt::format("{}: {}", names.checkpoint().path(), printable(names.full(bias))),
         "MPNet's own code always counts that many; this variant is not known here");
  a.heads = names.dimension(bias, 1);
  if (const auto said = names.config_size("/num_attention_heads"); said && *said != a.heads)
    fail(fmt::format("config.json says num_attention_heads = {}, the tensors say {}", *said,
                     a.heads),
         names.checkpoint().path(), "the two files do not belong together");
  a.mlp_hidden = names.dimension(block + "0.intermediate.dense.weight", 0);
  a.activation = names.config_activation("/hidden_act").value_or(kernel::Activation::gelu);
  settle_facts(names, a);
  w.tensor("relative_bias", bias);
  for (size_t i = 0; i < a.depth; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), f = fmt::format("{}{}.", block, i),
                      q = f + "attention.attn.";
    w.stacked(b + "attn.qkv", {q + "q", q + "k", q + "v"}, true);
    w.affine(b + "attn.proj", q + "o");
    w.affine(b + "norm1", f + "attention.LayerNorm");
    w.affine(b + "mlp.fc1", f + "intermediate.dense");
    w.affine(b + "mlp.fc2", f + "output.dense");
    w.affine(b + "norm2", f + "output.LayerNorm");
  }
}

void read_albert(const NameReader& names, Architecture& a, RecipeWriter& w) {
  require_model_type(names, {"albert"});
  read_words(names, a, w);
  const std::string map = "encoder.embedding_hidden_mapping_in",
                    group = "encoder.albert_layer_groups.", layer = ".albert_layers.0.";
  const std::string place = fmt::format("{}: config.json", names.checkpoint().path());
  a.family = "albert";
  a.word_width = a.width;
  a.width = names.dimension(map + ".weight", 0);
  a.shared_blocks = names.count_blocks(group, layer + "attention.query.weight");
  const auto depth = names.config_size("/num_hidden_layers");
  if (!depth)
    fail("no num_hidden_layers: the tensors do not tell how often ALBERT runs them", place,
         "keep its config.json beside it");
  a.depth = *depth;
  if (const auto groups = names.config_size("/num_hidden_groups");
      groups.value_or(a.shared_blocks) != a.shared_blocks || a.depth < a.shared_blocks)
    fail(fmt::format("{} groups of layers, expected those of the tensors, {}, and not more than "
                     "layers, {}",
                     groups.value_or(a.shared_blocks), a.shared_blocks, a.depth),
         place, "the two files do not belong together");
  if (const auto inner = names.config_size("/inner_group_num").value_or(1); inner != 1)
    fail(fmt::format("inner_group_num is {}, expected 1", inner), place,
         "ALBERT with several layers in a group is not known here");
  set_heads(names, a);
  a.mlp_hidden = names.dimension(group + "0" + layer + "ffn.weight", 0);
  a.activation = names.config_activation("/hidden_act").value_or(kernel::Activation::gelu_tanh);
  settle_facts(names, a);
  w.rows("word_type", "embeddings.token_type_embeddings.weight", 0);
  w.affine("word_map", map);
  for (size_t i = 0; i < a.shared_blocks; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), f = fmt::format("{}{}{}", group, i, layer),
                      q = f + "attention.";
    w.stacked(b + "attn.qkv", {q + "query", q + "key", q + "value"}, true);
    w.affine(b + "attn.proj", q + "dense");
    w.affine(b + "norm1", q + "LayerNorm");
    w.affine(b + "mlp.fc1", f + "ffn");
    w.affine(b + "mlp.fc2", f + "ffn_output");
    w.affine(b + "norm2", f + "full_layer_layer_norm");
  }
}

}  // namespace

const Dialect kDistilbertNames{
    "DistilBERT",
    {"transformer.layer.0.attention.q_lin.weight", "embeddings.word_embeddings.weight",
     "transformer.layer.0.attention.out_lin.weight", "embeddings.position_embeddings.weight"},
    read_distilbert,
    "",
    /*text=*/true};

const Dialect kMpnetNames{
    "MPNet",
    {"encoder.layer.0.attention.attn.q.weight", "encoder.relative_attention_bias.weight",
     "encoder.layer.0.attention.attn.k.weight", "embeddings.word_embeddings.weight"},
    read_mpnet,
    "",
    /*text=*/true};

const Dialect kAlbertNames{"ALBERT",
                           {"encoder.albert_layer_groups.0.albert_layers.0.attention.query.weight",
                            "encoder.embedding_hidden_mapping_in.weight",
                            "encoder.albert_layer_groups.0.albert_layers.0.ffn.weight",
                            "embeddings.word_embeddings.weight"},
                           read_albert,
                           "",
                           /*text=*/true};

}  // namespace fungi
