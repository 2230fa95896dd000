// SPDX-License-Identifier: Apache-2.0
// AIMv2 in Hugging Face's names: RMS norms, one of them on the patches before their positions, a
// gated MLP, no biases in the blocks; with a head a learned query attends to the patches.
#include <fmt/format.h>

#include "fungi/backbone/names.h"

namespace fungi {
namespace {

void read_aimv2(const NameReader& names, Architecture& a, RecipeWriter& w) {
  require_model_type(names, {"aimv2", "aimv2_vision_model"});
  const std::string v = names.tower(), patch = v + "embeddings.patch_embed", head = v + "head.",
                    layers = v + "encoder.layers.", first = layers + "0.";
  if (names.config_flag("/is_native").value_or(false))
    fail("an AIMv2 for pictures of any shape (is_native), expected one of a fixed resolution",
         names.checkpoint().path(), "there are AIMv2 for 224, 336 and 448 pixels");
  a.family = "aimv2", a.dialect = "huggingface";
  a.width = names.dimension(patch + ".weight", 0);
  a.channels = names.dimension(patch + ".weight", 1);
  a.patch_h = a.patch_w = a.stride_h = a.stride_w = names.dimension(patch + ".weight", 2);
  a.depth = names.count_blocks(layers, ".attention.q_proj.weight");
  a.mlp_hidden = names.dimension(first + "ffn.down_proj.weight", 1);
  const bool configured = names.config_text("/model_type").has_value();
  set_heads(names, a, configured ? 8 : a.width / 128);
  a.heads_assumed = !configured && !names.stated("heads");
  a.rms_norm = a.patch_norm = a.gated_mlp = true;
  a.norm_epsilon = float(names.config_number("/rms_norm_eps").value_or(1e-5));
  a.activation = names.config_activation("/hidden_act").value_or(kernel::Activation::silu);
  a.qkv_bias =
      names.has(first + "attention.q_proj.bias") || names.has(first + "attention.v_proj.bias");
  a.linear_bias =
      names.has(first + "attention.out_proj.bias") || names.has(first + "ffn.down_proj.bias");
  a.prefix_tokens = 0, a.position_on_prefix = false;
  a.position_resize = PositionResize::bicubic;
  const std::string positions = v + "embeddings.position_embedding.weight";
  set_grid(names, a, names.dimension(positions, 0));
  const bool attends = names.has(head + "cls_token") || names.has_affine(head + "output_proj");
  if (!attends && names.config_flag("/use_head").value_or(configured))
    refuse_missing(names, names.full(head + "cls_token"));
  a.pooling = attends ? Pooling::attention : Pooling::mean_patches;
  if (attends) {
    a.pool_heads = a.heads, a.pool_query = false;
    a.pool_bias = names.has(head + "k_proj.bias") || names.has(head + "v_proj.bias");
  }
  a.head = names.has("visual_projection.weight");
  check_projection(names, a, "visual_projection.weight");
  if (a.head) a.embedding_width = names.dimension("visual_projection.weight", 0);
  a.preprocess.transform.mean = kClipMean, a.preprocess.transform.std = kClipDeviation;
  a.preprocess.transform.resize_size = a.input_h;
  a.preprocess.source = "AIMv2";
  a.preprocess.assumed = false;
  settle_facts(names, a);

  w.affine("patch_embed", patch);
  w.affine("patch_norm", v + "embeddings.rms_norm");
  w.rows("pos_patches", positions, 0);
  for (size_t i = 0; i < a.depth; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), f = fmt::format("{}{}.", layers, i),
                      q = f + "attention.";
    w.affine(b + "norm1", f + "rms_norm1");
    w.affine(b + "norm2", f + "rms_norm2");
    w.stacked(b + "attn.qkv", {q + "q_proj", q + "k_proj", q + "v_proj"}, a.qkv_bias);
    w.affine(b + "attn.proj", q + "out_proj");
    w.stacked(b + "mlp.fc1", {f + "ffn.gate_proj", f + "ffn.up_proj"}, a.linear_bias);
    w.affine(b + "mlp.fc2", f + "ffn.down_proj");
  }
  w.affine("norm", v + "rms_norm");
  if (a.pooling == Pooling::attention) {
    w.tensor("pool.latent", head + "cls_token");
    w.affine("pool.k", head + "k_proj");
    w.affine("pool.v", head + "v_proj");
    w.affine("pool.proj", head + "output_proj");
  }
  if (a.head) w.affine("head", "visual_projection");
}

}  // namespace

const Dialect kAimv2Names{"Hugging Face's AIMv2",
                          {"encoder.layers.0.ffn.gate_proj.weight", "embeddings.patch_embed.weight",
                           "encoder.layers.0.rms_norm1.weight", "rms_norm.weight"},
                          read_aimv2,
                          "vision_model."};

}  // namespace fungi
