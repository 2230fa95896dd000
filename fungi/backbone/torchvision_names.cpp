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
  p.transform.resize_size = swag ? input : input * (large ? 242 : 256) / 224;
  p.transform.set_bilinear(!swag);
  p.source = swag ? "SWAG, by its size" : "torchvision's first weights";
  p.assumed = !swag && a.patch_h == 16;
}

void read_torchvision(const NameReader& names, Architecture& a, RecipeWriter& w) {
  const std::string layers = "encoder.layers.encoder_layer_";
  const bool old =
      names.has_affine(layers + "0.mlp.linear_1") || names.has_affine(layers + "0.mlp.linear_2");
  const std::string fc1 = old ? ".mlp.linear_1" : ".mlp.0", fc2 = old ? ".mlp.linear_2" : ".mlp.3";
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
  settle_facts(names, a);

  w.embedding("conv_proj", "class_token", "encoder.pos_embedding");
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
}

}  // namespace

const Dialect kTorchvisionNames{"torchvision",
                                {"encoder.layers.encoder_layer_0.self_attention.in_proj_weight",
                                 "conv_proj.weight", "encoder.pos_embedding", "encoder.ln.weight"},
                                read_torchvision};

}  // namespace fungi
