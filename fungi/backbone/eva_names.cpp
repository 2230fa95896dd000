// SPDX-License-Identifier: Apache-2.0
// EVA-02-CLIP in timm's names (SPEC 4.1): separate q, k, v (no key bias), rotary positions, SwiGLU
// and inner norms.
#include <fmt/format.h>

#include <algorithm>

#include "fungi/backbone/timm_architectures.h"

namespace fungi {
namespace {

void read_eva(const NameReader& names, Architecture& a, RecipeWriter& w) {
  a.family = "eva02-clip";
  if (const auto kind = names.architecture(); kind && !kind->starts_with("eva02"))
    fail(fmt::format("config.json says {}, expected an eva02 model", *kind),
         names.checkpoint().path(), "others with these names are run in another way");
  a.width = names.dimension("blocks.0.attn.q_proj.weight", 1);
  const TimmArchitecture* known = find_timm_architecture(names, a);
  a.depth = names.count_blocks("blocks.", ".attn.q_proj.weight");
  set_heads(names, a, known ? known->heads : 0);
  a.mlp_hidden = names.dimension("blocks.0.mlp.fc1_g.weight", 0);
  a.gated_mlp = true, a.activation = kernel::Activation::silu;
  a.attention_norm = names.has_affine("blocks.0.attn.norm");
  a.mlp_norm = names.has_affine("blocks.0.mlp.norm");
  a.rotary = true;
  a.qkv_bias = names.has("blocks.0.attn.q_proj.bias") || names.has("blocks.0.attn.v_proj.bias");
  a.channels = names.dimension("patch_embed.proj.weight", 1);
  a.patch_h = a.patch_w = a.stride_h = a.stride_w = names.dimension("patch_embed.proj.weight", 2);
  set_grid(names, a, names.count("pos_embed") / a.width - 1);
  const bool fc_norm = names.has_affine("fc_norm");
  const std::string pool =
      names.config_text("/model_args/global_pool")
          .value_or(names.config_text("/global_pool").value_or(fc_norm ? "avg" : "token"));
  if (pool != "token" && (pool != "avg" || !fc_norm))
    fail(fmt::format("config.json says global_pool {}, which is not known here", pool),
         names.checkpoint().path(), "only the class token, or the mean with fc_norm, is");
  a.norm_after_pooling = fc_norm;
  if (pool == "avg") a.pooling = Pooling::mean_patches;
  if (names.has_affine("head") && !a.norm_after_pooling) {
    a.head = a.head_bias = true;  // timm's heads always have a bias
    a.embedding_width = names.dimension("head.weight", 0);
  }
  if (!fc_norm) check_projection(names, a, "head.weight");
  if (!read_timm_transform(names, a) && !read_open_clip_transform(names, a)) {
    a.preprocess.transform.mean = kClipMean, a.preprocess.transform.std = kClipDeviation;
    a.preprocess.transform.resize_size = size_t(double(std::min(a.input_h, a.input_w)) / 0.9);
    a.preprocess.source = "EVA-02-CLIP";
    a.preprocess.assumed = false;
  }
  check_timm_args(names, a);
  check_trunk(names, a);
  settle_facts(names, a);

  w.embedding("patch_embed.proj", "cls_token", "pos_embed");
  for (size_t i = 0; i < a.depth; ++i) {
    const std::string b = fmt::format("blocks.{}.", i);
    for (const char* part : {"norm1", "attn.proj", "norm2", "mlp.fc2"})
      w.affine(b + part, b + part);
    if (a.attention_norm) w.affine(b + "attn.norm", b + "attn.norm");
    if (a.mlp_norm) w.affine(b + "mlp.norm", b + "mlp.norm");
    const std::string key = b + "attn.k_proj";
    w.stacked(b + "attn.qkv", {b + "attn.q_proj", key, b + "attn.v_proj"}, a.qkv_bias, key);
    w.stacked(b + "mlp.fc1", {b + "mlp.fc1_g", b + "mlp.fc1_x"}, true);
  }
  w.affine("norm", a.norm_after_pooling ? "fc_norm" : "norm");
  if (a.head) w.affine("head", "head");
}

}  // namespace

const Dialect kEvaNames{"EVA-02 in timm",
                        {"blocks.0.attn.q_proj.weight", "blocks.0.mlp.fc1_g.weight",
                         "blocks.0.mlp.fc1_x.weight", "pos_embed"},
                        read_eva};

}  // namespace fungi
