// SPDX-License-Identifier: Apache-2.0
// The image tower of SigLIP and of SigLIP 2 at one resolution, in Hugging Face's names: no class
// token; a learned query attends to the patches.
#include <fmt/format.h>

#include "fungi/backbone/names.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

// SigLIP 2 at any resolution reads patches as rows, however many of each side.
void refuse_rows_of_patches(const NameReader& names, const std::string& patch) {
  if (names.checkpoint().find(names.full(patch))->shape.size() != 2) return;
  fail("a SigLIP 2 for pictures of any shape (NaFlex), expected one of a fixed resolution",
       tensor_place(names.checkpoint().path(), names.full(patch)),
       "there are SigLIP 2 of fixed resolutions, whose model_type is siglip");
}

void read_siglip(const NameReader& names, Architecture& a, RecipeWriter& w) {
  const std::string v = names.tower(), patch = v + "embeddings.patch_embedding", head = v + "head.",
                    layers = v + "encoder.layers.";
  names.count(patch + ".weight");
  refuse_rows_of_patches(names, patch + ".weight");
  require_model_type(names, {"siglip", "siglip_vision_model"});
  a.family = "siglip", a.dialect = "huggingface";
  a.width = names.dimension(patch + ".weight", 0);
  a.channels = names.dimension(patch + ".weight", 1);
  a.patch_h = a.patch_w = a.stride_h = a.stride_w = names.dimension(patch + ".weight", 2);
  a.depth = names.count_blocks(layers, ".self_attn.q_proj.weight");
  a.mlp_hidden = names.dimension(layers + "0.mlp.fc1.weight", 0);
  set_heads(names, a, names.has_config() ? 12 : 0);
  a.norm_epsilon = float(names.config_number("/layer_norm_eps").value_or(1e-6));
  a.activation = names.config_activation("/hidden_act").value_or(kernel::Activation::gelu_tanh);
  a.prefix_tokens = 0, a.position_on_prefix = false;
  a.position_resize = PositionResize::bicubic;
  const std::string positions = v + "embeddings.position_embedding.weight";
  set_grid(names, a, names.dimension(positions, 0));
  a.pooling = Pooling::attention;
  a.pool_heads = a.heads;
  a.pool_hidden = names.dimension(head + "mlp.fc1.weight", 0);
  a.preprocess.transform.mean = a.preprocess.transform.std = {0.5f, 0.5f, 0.5f};
  a.preprocess.transform.resize_size = a.input_h;
  a.preprocess.transform.set_squash(true);
  a.preprocess.source = "SigLIP";
  a.preprocess.assumed = false;
  settle_facts(names, a);
  a.pool_activation = a.activation;

  w.affine("patch_embed", patch);
  w.rows("pos_patches", positions, 0);
  for (size_t i = 0; i < a.depth; ++i)
    w.clip_block(fmt::format("blocks.{}.", i), fmt::format("{}{}.", layers, i));
  w.affine("norm", v + "post_layernorm");
  if (a.pooling != Pooling::attention) return;
  w.tensor("pool.latent", head + "probe");
  const char* parts[] = {"pool.q", "pool.k", "pool.v"};
  for (size_t i = 0; i < 3; ++i) {
    w.rows(parts[i] + std::string(".weight"), head + "attention.in_proj_weight", i * a.width);
    w.rows(parts[i] + std::string(".bias"), head + "attention.in_proj_bias", i);
  }
  w.affine("pool.proj", head + "attention.out_proj");
  w.affine("pool.norm", head + "layernorm");
  w.affine("pool.fc1", head + "mlp.fc1");
  w.affine("pool.fc2", head + "mlp.fc2");
}

}  // namespace

const Dialect kSiglipNames{"Hugging Face's SigLIP",
                           {"head.probe", "embeddings.patch_embedding.weight",
                            "encoder.layers.0.self_attn.q_proj.weight", "post_layernorm.weight"},
                           read_siglip,
                           "vision_model."};

}  // namespace fungi
