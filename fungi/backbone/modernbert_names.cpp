// SPDX-License-Identifier: Apache-2.0
// ModernBERT in Hugging Face's names: before-norm with a gated MLP, rotary positions, and most
// blocks see near tokens alone. Its config.json says what no tensor tells, so it must be there.
#include <fmt/format.h>

#include <cmath>

#include "fungi/backbone/names.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

std::string place_of(const NameReader& names) {
  return fmt::format("{}: config.json", names.checkpoint().path());
}

// Of the blocks of one type: in rope_parameters as new files have it, else under its old name.
float theta(const NameReader& names, const std::string& type, const char* old_name,
            double otherwise) {
  const std::string own = "/rope_parameters/" + type;
  const std::string kind = names.config_text((own + "/rope_type").c_str()).value_or("default");
  if (kind != "default" || names.config_has("/rope_scaling"))
    fail(fmt::format("its rotary positions are scaled ({}), expected plain ones",
                     kind != "default" ? printable(kind) : names.config_dump("/rope_scaling")),
         place_of(names), "this variant is not among those that `models` lists");
  const auto said = names.config_number((own + "/rope_theta").c_str());
  const double value = said ? *said : names.config_number(old_name).value_or(otherwise);
  if (!(value > 1 && value < 1e12))
    fail(fmt::format("a theta of rotary positions of {} is impossible", value), place_of(names),
         "see rope_theta in it");
  return float(value);
}

// Every so many blocks see all tokens: as new files list the blocks, or as old ones say it.
size_t global_every(const NameReader& names, size_t depth) {
  if (!names.config_has("/layer_types"))
    return names.config_size("/global_attn_every_n_layers").value_or(3);
  const std::vector<std::string> types = names.config_texts("/layer_types");
  const auto is_global = [&](size_t i) { return types[i] == "full_attention"; };
  size_t every = 1;
  while (every < types.size() && !is_global(every)) ++every;
  bool regular = types.size() == depth;
  for (size_t i = 0; i < types.size(); ++i)
    regular &=
        is_global(i) == (i % every == 0) && (is_global(i) || types[i] == "sliding_attention");
  if (!regular)
    fail(fmt::format("layer_types is {}, expected one type for each of the {} blocks, "
                     "'full_attention' for the first and every so many after it, and "
                     "'sliding_attention' for the others",
                     printable(names.config_dump("/layer_types")), depth),
         place_of(names), "this variant is not among those that `models` lists");
  return every;
}

void read_modernbert(const NameReader& names, Architecture& a, RecipeWriter& w) {
  require_model_type(names, {"modernbert"});
  if (!names.config_text("/model_type"))
    fail("no model_type: the tensors do not tell which tokens ModernBERT's blocks see",
         place_of(names), "keep its config.json beside it");
  const std::string words = "embeddings.tok_embeddings.weight";
  a.family = "modernbert", a.dialect = "huggingface", a.input = InputKind::token_ids;
  a.vocabulary = names.dimension(words, 0);
  a.width = names.dimension(words, 1);
  a.depth = names.count_blocks("layers.", ".attn.Wqkv.weight");
  a.max_positions = names.config_size("/max_position_embeddings").value_or(8192);
  if (constexpr size_t kMost = 1 << 16; a.max_positions > kMost)
    fail(fmt::format("max_position_embeddings is {}, expected at most {}", a.max_positions, kMost),
         place_of(names), "write a smaller number there: longer texts are cut");
  a.position_table = a.token_types = a.first_norm = false;
  set_heads(names, a);
  a.mlp_hidden = names.dimension("layers.0.mlp.Wo.weight", 1);
  a.gated_mlp = true;
  a.activation = names.config_activation("/hidden_activation").value_or(kernel::Activation::gelu);
  a.prefix_tokens = 0;
  a.norm_pre = a.final_norm = true;
  a.norm_epsilon = float(names.config_number("/norm_eps").value_or(1e-5));
  a.norm_bias = names.config_flag("/norm_bias").value_or(false);
  a.qkv_bias = a.linear_bias = names.config_flag("/attention_bias").value_or(false);
  if (a.linear_bias != names.config_flag("/mlp_bias").value_or(false))
    fail("attention_bias and mlp_bias differ, expected them to be alike", place_of(names),
         "this variant is not among those that `models` lists");
  a.rotary = true;
  a.rotary_theta = theta(names, "full_attention", "/global_rope_theta", 160000);
  a.local_rotary_theta = theta(names, "sliding_attention", "/local_rope_theta", 10000);
  a.global_every = global_every(names, a.depth);
  a.local_distance = names.config_size("/local_attention").value_or(128) / 2;
  if (a.local_distance == 0)
    fail("local_attention is 1, expected a window of at least 2 tokens", place_of(names));
  settle_facts(names, a);

  w.tensor("words", words);
  w.affine("norm_pre", "embeddings.norm");
  for (size_t i = 0; i < a.depth; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), f = fmt::format("layers.{}.", i);
    if (i > 0) w.affine(b + "norm1", f + "attn_norm");
    w.affine(b + "attn.qkv", f + "attn.Wqkv");
    w.affine(b + "attn.proj", f + "attn.Wo");
    w.affine(b + "norm2", f + "mlp_norm");
    w.affine(b + "mlp.fc1", f + "mlp.Wi");
    w.affine(b + "mlp.fc2", f + "mlp.Wo");
  }
  w.affine("norm", "final_norm");
}

}  // namespace

const Dialect kModernbertNames{"ModernBERT",
                               {"layers.0.attn.Wqkv.weight", "embeddings.tok_embeddings.weight",
                                "layers.0.mlp.Wi.weight", "final_norm.weight"},
                               read_modernbert,
                               "",
                               /*text=*/true};

}  // namespace fungi
