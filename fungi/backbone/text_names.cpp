// SPDX-License-Identifier: Apache-2.0
// Text encoders in Hugging Face's names: BERT (after-norm) and T5 (RMS norm, relative positions, no
// biases); SPEC 4.2.
#include <fmt/format.h>

#include "fungi/backbone/names.h"

namespace fungi {

std::optional<Reading> read_bert_names(const Checkpoint& checkpoint,
                                       const StatedFacts& stated_facts) {
  NameReader names(checkpoint, stated_facts);
  if (!names.find_prefix("encoder.layer.0.attention.self.query.weight",
                         "embeddings.word_embeddings.weight"))
    return {};
  Reading reading;
  Architecture& a = reading.architecture;
  a.family = "bert", a.dialect = "huggingface", a.input = InputKind::token_ids;
  a.vocabulary = names.dimension("embeddings.word_embeddings.weight", 0);
  a.width = names.dimension("embeddings.word_embeddings.weight", 1);
  a.max_positions = names.dimension("embeddings.position_embeddings.weight", 0);
  a.depth = names.count_blocks("encoder.layer.", ".attention.self.query.weight");
  a.heads = guess_heads(names, a.width);
  a.mlp_hidden = names.dimension("encoder.layer.0.intermediate.dense.weight", 0);
  a.prefix_tokens = 0;
  a.post_norm = true, a.norm_pre = true, a.final_norm = false;
  a.norm_epsilon = float(names.config_number("/layer_norm_eps").value_or(1e-12));
  a.activation = parse_activation(names.config_text("/hidden_act").value_or("gelu"));
  apply_stated_facts(names, a);
  check(names, a);

  RecipeWriter w(names);
  auto norm = [&](const std::string& canonical,
                  const std::string& file) {  // the oldest files say gamma and beta
    const bool old = names.has(file + ".gamma");
    w.tensor(canonical + ".weight", file + (old ? ".gamma" : ".weight"));
    w.tensor(canonical + ".bias", file + (old ? ".beta" : ".bias"));
  };
  w.tensor("words", "embeddings.word_embeddings.weight");
  w.tensor("word_positions", "embeddings.position_embeddings.weight");
  w.rows("word_type", "embeddings.token_type_embeddings.weight", 0);
  norm("norm_pre", "embeddings.LayerNorm");
  for (size_t i = 0; i < a.depth; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), f = fmt::format("encoder.layer.{}.", i),
                      q = f + "attention.self.";
    w.stacked(b + "attn.qkv", {q + "query", q + "key", q + "value"}, true);
    w.affine(b + "attn.proj", f + "attention.output.dense");
    norm(b + "norm1", f + "attention.output.LayerNorm");
    w.affine(b + "mlp.fc1", f + "intermediate.dense");
    w.affine(b + "mlp.fc2", f + "output.dense");
    norm(b + "norm2", f + "output.LayerNorm");
  }
  reading.recipes = std::move(w.recipes);
  return reading;
}

std::optional<Reading> read_t5_names(const Checkpoint& checkpoint,
                                     const StatedFacts& stated_facts) {
  NameReader names(checkpoint, stated_facts);
  const std::string first = "encoder.block.0.layer.0.SelfAttention.";
  if (!names.find_prefix(first + "q.weight", first + "relative_attention_bias.weight")) return {};
  Reading reading;
  Architecture& a = reading.architecture;
  const std::string words =
      names.has("shared.weight") ? "shared.weight" : "encoder.embed_tokens.weight";
  const std::string mlp = ".layer.1.DenseReluDense.";
  a.family = "t5", a.dialect = "huggingface", a.input = InputKind::token_ids;
  a.vocabulary = names.dimension(words, 0);
  a.width = names.dimension(words, 1);
  a.depth = names.count_blocks("encoder.block.", ".layer.0.SelfAttention.q.weight");
  a.relative_buckets = names.dimension(first + "relative_attention_bias.weight", 0);
  a.relative_distance =
      size_t(names.config_number("/relative_attention_max_distance").value_or(128));
  a.heads = names.dimension(first + "relative_attention_bias.weight", 1);
  a.head_dim = names.dimension(first + "q.weight", 0) / a.heads;
  a.gated_mlp = names.has("encoder.block.0" + mlp + "wi_0.weight");
  a.mlp_hidden = names.dimension("encoder.block.0" + mlp + "wo.weight", 1);
  a.activation = a.gated_mlp ? kernel::Activation::gelu_tanh : kernel::Activation::relu;
  if (const auto act = names.config_text("/dense_act_fn")) a.activation = parse_activation(*act);
  a.prefix_tokens = 0;
  a.rms_norm = true, a.qkv_bias = a.linear_bias = false, a.scale_attention = false;
  a.norm_epsilon = float(names.config_number("/layer_norm_epsilon").value_or(1e-6));
  apply_stated_facts(names, a);
  check(names, a);

  RecipeWriter w(names);
  w.tensor("words", words);
  w.tensor("relative_bias", first + "relative_attention_bias.weight");
  for (size_t i = 0; i < a.depth; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), f = fmt::format("encoder.block.{}", i),
                      q = f + ".layer.0.SelfAttention.";
    w.stacked(b + "attn.qkv", {q + "q", q + "k", q + "v"}, false);
    w.affine(b + "attn.proj", q + "o");
    w.affine(b + "norm1", f + ".layer.0.layer_norm");
    w.affine(b + "norm2", f + ".layer.1.layer_norm");
    if (a.gated_mlp)
      w.stacked(b + "mlp.fc1", {f + mlp + "wi_0", f + mlp + "wi_1"}, false);
    else
      w.affine(b + "mlp.fc1", f + mlp + "wi");
    w.affine(b + "mlp.fc2", f + mlp + "wo");
  }
  w.affine("norm", "encoder.final_layer_norm");
  reading.recipes = std::move(w.recipes);
  return reading;
}

}  // namespace fungi
