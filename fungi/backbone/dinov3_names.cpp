// SPDX-License-Identifier: Apache-2.0
// DINOv3 in Hugging Face's names: no table of positions but rotary ones, registers, in the larger
// ones a gated MLP; keys without a bias.
#include <fmt/format.h>

#include "fungi/backbone/names.h"

namespace fungi {
namespace {

void read_dinov3(const NameReader& names, Architecture& a, RecipeWriter& w) {
  require_model_type(names, {"dinov3_vit"});
  const std::string patch = "embeddings.patch_embeddings", first = "layer.0.";
  a.family = "dinov3", a.dialect = "huggingface";
  a.width = names.dimension(patch + ".weight", 0);
  a.channels = names.dimension(patch + ".weight", 1);
  a.patch_h = a.stride_h = names.dimension(patch + ".weight", 2);
  a.patch_w = a.stride_w = names.dimension(patch + ".weight", 3);
  a.depth = names.count_blocks("layer.", ".attention.q_proj.weight");
  const bool configured = names.config_text("/model_type").has_value();
  set_heads(names, a, configured ? 6 : a.width / (a.width == 4096 ? 128 : 64));
  a.heads_assumed = !configured && !names.stated("heads");
  a.norm_epsilon = float(names.config_number("/layer_norm_eps").value_or(1e-5));
  a.mlp_hidden = names.dimension(first + "mlp.down_proj.weight", 1);
  a.gated_mlp = names.has_affine(first + "mlp.gate_proj");
  a.activation = names.config_activation("/hidden_act")
                     .value_or(a.gated_mlp && !configured ? kernel::Activation::silu
                                                          : kernel::Activation::gelu);
  a.qkv_bias = names.has(first + "attention.q_proj.bias") ||
               names.has(first + "attention.k_proj.bias") ||
               names.has(first + "attention.v_proj.bias");
  a.layer_scale = true;
  a.position_table = a.position_on_prefix = false;
  a.rotary = a.rotary_centred = true;
  a.rotary_theta = float(names.config_number("/rope_theta").value_or(100));
  a.mask_token = names.has("embeddings.mask_token");
  const std::string registers = "embeddings.register_tokens";
  const double said = names.config_number("/num_register_tokens").value_or(0);  // perhaps 0
  a.registers = names.has(registers) ? names.count(registers) / a.width : 0;
  if (a.registers == 0 && (said != 0 || !configured))
    refuse_missing(names, names.full(registers));
  if (configured && double(a.registers) != said)
    fail(fmt::format("config.json says {} registers, the tensors say {}", said, a.registers),
         names.checkpoint().path(), "the file is incomplete, or config.json is another model's");
  a.prefix_tokens = 1 + a.registers;
  set_input(names, a, 224);
  // DEVIATION: its processor resizes floats, which are never rounded to bytes.
  a.preprocess.transform.resize_size = a.input_h;
  a.preprocess.transform.set_squash(true), a.preprocess.transform.set_bilinear(true);
  a.preprocess.source = "DINOv3's processor, as it is without a file of its own";
  settle_facts(names, a);

  w.affine("patch_embed", patch);
  w.tensor("prefix", "embeddings.cls_token");
  if (a.registers) w.tensor("registers", registers);
  if (a.mask_token) w.tensor("mask_token", "embeddings.mask_token");
  for (size_t i = 0; i < a.depth; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), f = fmt::format("layer.{}.", i),
                      q = f + "attention.";
    w.affine(b + "norm1", f + "norm1");
    w.affine(b + "norm2", f + "norm2");
    w.stacked(b + "attn.qkv", {q + "q_proj", q + "k_proj", q + "v_proj"}, a.qkv_bias, q + "k_proj");
    w.affine(b + "attn.proj", q + "o_proj");
    if (a.gated_mlp)
      w.stacked(b + "mlp.fc1", {f + "mlp.gate_proj", f + "mlp.up_proj"}, true);
    else
      w.affine(b + "mlp.fc1", f + "mlp.up_proj");
    w.affine(b + "mlp.fc2", f + "mlp.down_proj");
    w.tensor(b + "ls1", f + "layer_scale1.lambda1");
    w.tensor(b + "ls2", f + "layer_scale2.lambda1");
  }
  w.affine("norm", "norm");
}

}  // namespace

const Dialect kDinov3Names{"Hugging Face's DINOv3",
                           {"layer.0.attention.q_proj.weight", "embeddings.cls_token",
                            "embeddings.patch_embeddings.weight", "layer.0.norm1.weight"},
                           read_dinov3};

}  // namespace fungi
