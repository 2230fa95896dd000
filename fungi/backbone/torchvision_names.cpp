// SPDX-License-Identifier: Apache-2.0
// torchvision's ViT: fused in_proj, numbered or (older files) named MLP layers, corner-aligned
// position resize.
#include <fmt/format.h>

#include "fungi/backbone/names.h"

namespace fungi {
namespace {

// The weights that torchvision trained have 224 pixels and patches of 16 or 32; all larger ones,
// and those with patches of 14, are SWAG's, which crops nothing. Some of SWAG's have 224 and 16,
// too.
void set_preprocess(Architecture& a) {
  PreprocessFacts& p = a.preprocess;
  const size_t input = std::min(a.input_h, a.input_w);
  const bool swag = a.stored_grid_h * a.patch_h > 224 || a.patch_h == 14;
  const bool large = a.width == 1024 && a.patch_h == 16;
  p.resize = swag ? input : input * (large ? 242 : 256) / 224;
  p.bilinear = !swag;
  p.source = swag ? "SWAG, by its size" : "torchvision's first weights";
  p.assumed = !swag && a.patch_h == 16;
}

}  // namespace

std::optional<Reading> read_torchvision_names(const Checkpoint& checkpoint,
                                              const StatedFacts& stated_facts) {
  NameReader names(checkpoint, stated_facts);
  const std::string layers = "encoder.layers.encoder_layer_";
  if (!names.find_prefix(kTorchvisionAnchors)) return {};
  const bool old =
      names.has_affine(layers + "0.mlp.linear_1") || names.has_affine(layers + "0.mlp.linear_2");
  const std::string fc1 = old ? ".mlp.linear_1" : ".mlp.0", fc2 = old ? ".mlp.linear_2" : ".mlp.3";
  Reading reading;
  Architecture& a = reading.architecture;
  a.dialect = "torchvision";
  a.width = names.dimension("conv_proj.weight", 0);
  a.channels = names.dimension("conv_proj.weight", 1);
  a.patch_h = a.patch_w = a.stride_h = a.stride_w = names.dimension("conv_proj.weight", 2);
  a.depth = names.count_blocks(layers, ".self_attention.in_proj_weight");
  set_heads(names, a);
  a.mlp_hidden = names.dimension(layers + "0" + fc1 + ".weight", 0);
  a.position_resize = PositionResize::bicubic_corners;
  set_grid(names, a, names.count("encoder.pos_embedding") / a.width - 1);
  set_preprocess(a);
  apply_stated_facts(names, a);
  check(names, a);

  RecipeWriter w(names);
  w.affine("patch_embed", "conv_proj");
  w.tensor("prefix", "class_token");
  w.rows("pos_prefix", "encoder.pos_embedding", 0);
  w.rows("pos_patches", "encoder.pos_embedding", 1);
  for (size_t i = 0; i < a.depth; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), f = fmt::format("{}{}", layers, i);
    w.affine(b + "norm1", f + ".ln_1");
    w.affine(b + "norm2", f + ".ln_2");
    w.tensor(b + "attn.qkv.weight", f + ".self_attention.in_proj_weight");
    w.tensor(b + "attn.qkv.bias", f + ".self_attention.in_proj_bias");
    w.affine(b + "attn.proj", f + ".self_attention.out_proj");
    w.affine(b + "mlp.fc1", f + fc1);
    w.affine(b + "mlp.fc2", f + fc2);
  }
  w.affine("norm", "encoder.ln");
  reading.recipes = std::move(w.recipes);
  reading.prefix = names.full("");
  return reading;
}

}  // namespace fungi
