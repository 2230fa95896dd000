// SPDX-License-Identifier: Apache-2.0
// Hugging Face's ViT, DINOv2 (with or without registers) and AST: one attention naming, three kinds
// of norms and prefix tokens.
#include <fmt/format.h>

#include "fungi/backbone/names.h"

namespace fungi {
namespace {

void set_filter_bank(const NameReader& names, Architecture& a) {
  a.family = "ast", a.input = InputKind::filter_bank;
  a.pooling = Pooling::mean_prefix;
  a.input_h = size_t(names.config_number("/num_mel_bins").value_or(128));
  a.input_w = size_t(names.config_number("/max_length").value_or(1024));
  a.stride_h = size_t(names.config_number("/frequency_stride").value_or(10));
  a.stride_w = size_t(names.config_number("/time_stride").value_or(10));
  a.stored_grid_h = (a.input_h - a.patch_h) / std::max<size_t>(a.stride_h, 1) + 1;
  a.stored_grid_w = (a.input_w - a.patch_w) / std::max<size_t>(a.stride_w, 1) + 1;
}

}  // namespace

std::optional<Reading> read_huggingface_vit_names(const Checkpoint& checkpoint,
                                                  const StatedFacts& stated_facts) {
  NameReader names(checkpoint, stated_facts);
  if (!names.find_prefix("encoder.layer.0.attention.attention.query.weight",
                         "embeddings.cls_token"))
    return {};
  const std::string patch = "embeddings.patch_embeddings.projection";
  const bool dinov2 = names.has("encoder.layer.0.norm1.weight"),
             swiglu = names.has("encoder.layer.0.mlp.weights_in.weight");
  Reading reading;
  Architecture& a = reading.architecture;
  a.dialect = "huggingface";
  a.family = dinov2 ? "dinov2" : "vit";
  a.width = names.dimension(patch + ".weight", 0);
  a.channels = names.dimension(patch + ".weight", 1);
  a.patch_h = a.stride_h = names.dimension(patch + ".weight", 2);
  a.patch_w = a.stride_w = names.dimension(patch + ".weight", 3);
  a.depth = names.count_blocks("encoder.layer.", ".attention.attention.query.weight");
  a.heads = guess_heads(names, a.width);
  a.norm_epsilon = float(names.config_number("/layer_norm_eps").value_or(dinov2 ? 1e-6 : 1e-12));
  a.activation = parse_activation(names.config_text("/hidden_act").value_or("gelu"));
  a.qkv_bias = names.has("encoder.layer.0.attention.attention.query.bias");
  const std::string fc1 = swiglu ? "mlp.weights_in" : dinov2 ? "mlp.fc1" : "intermediate.dense";
  const std::string fc2 = swiglu ? "mlp.weights_out" : dinov2 ? "mlp.fc2" : "output.dense";
  a.mlp_hidden = names.dimension("encoder.layer.0." + fc2 + ".weight", 1);
  a.gated_mlp = swiglu;
  if (swiglu) a.activation = kernel::Activation::silu;
  a.layer_scale = names.has("encoder.layer.0.layer_scale1.lambda1");
  a.mask_token = names.has("embeddings.mask_token");
  a.registers = names.has("embeddings.register_tokens")
                    ? names.count("embeddings.register_tokens") / a.width
                    : 0;
  const bool distilled = names.has("embeddings.distillation_token");
  a.prefix_tokens = 1 + (distilled ? 1 : 0) + a.registers;
  a.position_resize = a.registers ? PositionResize::antialias_bicubic : PositionResize::bicubic;
  const size_t plain = a.prefix_tokens - a.registers,
               positions = names.count("embeddings.position_embeddings") / a.width;
  if (a.channels == 1 && distilled) {
    set_filter_bank(names, a);
  } else {
    set_square_grid(names, a, positions - plain);
    if (distilled) a.family = "deit-distilled";
  }
  a.preprocess.resize = a.input_h * 256 / 224;
  if (a.family == "vit") {
    a.preprocess.mean = a.preprocess.deviation = {0.5f, 0.5f, 0.5f};
    a.preprocess.source = "Hugging Face's ViT processor";
    a.preprocess.resize = a.input_h;
  }
  apply_stated_facts(names, a);
  check(names, a);

  RecipeWriter w(names);
  w.affine("patch_embed", patch);
  w.recipes["prefix"].parts.push_back(names.full("embeddings.cls_token"));
  if (distilled) w.recipes["prefix"].parts.push_back(names.full("embeddings.distillation_token"));
  if (a.registers) w.tensor("registers", "embeddings.register_tokens");
  if (a.mask_token) w.tensor("mask_token", "embeddings.mask_token");
  w.rows("pos_prefix", "embeddings.position_embeddings", 0);
  w.rows("pos_patches", "embeddings.position_embeddings", plain);
  for (size_t i = 0; i < a.depth; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), f = fmt::format("encoder.layer.{}.", i),
                      q = f + "attention.attention.";
    w.affine(b + "norm1", f + (dinov2 ? "norm1" : "layernorm_before"));
    w.affine(b + "norm2", f + (dinov2 ? "norm2" : "layernorm_after"));
    w.stacked(b + "attn.qkv", {q + "query", q + "key", q + "value"}, a.qkv_bias);
    w.affine(b + "attn.proj", f + "attention.output.dense");
    w.affine(b + "mlp.fc1", f + fc1);
    w.affine(b + "mlp.fc2", f + fc2);
    if (a.layer_scale)
      w.tensor(b + "ls1", f + "layer_scale1.lambda1"),
          w.tensor(b + "ls2", f + "layer_scale2.lambda1");
  }
  w.affine("norm", "layernorm");
  reading.recipes = std::move(w.recipes);
  return reading;
}

}  // namespace fungi
