// SPDX-License-Identifier: Apache-2.0
// Networks with the same tensors in timm's names that are run in different ways: what tells them
// apart, and what cannot be told (SPEC 4).
#include <fmt/format.h>

#include "fungi/backbone/timm_origin.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

// The activation of a plain MLP, where config.json has an opinion.
std::optional<kernel::Activation> config_activation(const NameReader& names) {
  const auto act = names.config_activation("/model_args/act_layer");
  return act ? act : names.config_activation("/act_layer");
}

}  // namespace

void set_family(const NameReader& names, const Origin& origin, const TimmArchitecture* known,
                Architecture& a) {
  if (a.family == "ast") return;
  if (known) a.activation = known->activation, a.norm_epsilon = known->norm_epsilon;
  // The same tensors, run differently; of a file's own name only what hardly means anything else.
  const bool named = names.architecture().has_value();
  for (const char* word : {"rpn", "rope", "parallel"})
    if (!known && origin.mentions(word) && (named || std::string_view(word) != "parallel"))
      fail(fmt::format("'{}' in the name of the model or file: that is run in another way than a "
                       "plain ViT",
                       word),
           names.checkpoint().path(),
           named ? "`models` lists what can be run"
                 : "a plain ViT? Rename the file, or state `stated_facts[family]=vit`");
  const bool pools = names.has_affine("attn_pool.kv");
  if (pools && a.norm_pre && !known)
    fail("a Perception Encoder, whose rotary positions no tensor tells", names.checkpoint().path(),
         "correct the file's name to that of its architecture in timm, keep timm's config.json "
         "beside it, or state `stated_facts[architecture]`");
  if ((origin.mentions("siglip") || pools) && !known && !names.stated("activation") &&
      !config_activation(names))
    fail("SigLIP's towers have two activations, which nothing tells apart",
         names.checkpoint().path(),
         "state it: `stated_facts[activation]=gelu` (SigLIP) or "
         "`stated_facts[activation]=gelu_tanh` (SigLIP 2)");
  if (!a.qkv_bias && !names.has("cls_token") && !a.rms_norm && !known && !named &&
      !names.stated("family"))
    fail(
        "a ViT without a class token and without biases of queries, keys and values: timm has one "
        "with norms after its layers, which tensors do not tell from others",
        names.checkpoint().path(),
        "state its name, `stated_facts[architecture]`, or `stated_facts[family]=vit` if its norms "
        "come before the layers");
  if (origin.mentions("giantopt") && a.heads_assumed)
    fail("this giant has wider heads than its width tells", names.checkpoint().path(),
         "state their number: `stated_facts[heads]=16`");
  if (names.has_affine("norm") && names.has_affine("fc_norm"))
    fail("two final norms, norm and fc_norm: expected one", names.checkpoint().path(),
         "this variant is not among those that `models` lists");
  const bool quick = origin.mentions("quickgelu") || origin.mentions("quick_gelu");
  if (quick) a.activation = kernel::Activation::quick_gelu;
  if (const auto act = config_activation(names)) a.activation = *act;
  if (a.gated_mlp) {  // timm has several, which tensors do not tell apart
    if (!config_activation(names)) a.activation = kernel::Activation::silu;
    if (!names.has("blocks.0.mlp.w12.weight") && !names.has("blocks.0.mlp.fc1_g.weight") &&
        !origin.mentions("dinov2") && !(known && known->activation == kernel::Activation::silu) &&
        !names.stated("activation"))
      fail("a gated MLP in timm's names does not tell its activation", names.checkpoint().path(),
           "state it: `stated_facts[activation]=silu` (SwiGLU, as in DINOv2's giant), gate rows "
           "first");
  }
  if (a.rotary_centred) {
    a.family = "dinov3";
    if (!known) a.norm_epsilon = 1e-5f;
  } else if (a.rotary && a.norm_pre) {
    a.family = "perception-encoder";
  } else if (a.rotary) {
    a.family = "vit";
  } else if (a.rms_norm) {
    a.family = "aimv2";
    a.norm_epsilon = 1e-5f;
  } else if (pools) {
    a.family = "siglip";
  } else if (a.norm_pre) {
    a.family = "clip";
    // timm's CLIPs have torch's epsilon; another ViT with this norm keeps that of ViTs.
    const std::string architecture = names.architecture().value_or("clip");
    if (!known && architecture.find("clip") != std::string::npos) a.norm_epsilon = 1e-5f;
    if (!known && !quick && !names.stated("activation") && !names.architecture())
      fail("a CLIP tower in timm's names does not tell its activation", names.checkpoint().path(),
           "state it: `stated_facts[activation]=quick_gelu` (OpenAI's weights) or "
           "`stated_facts[activation]=gelu`");
  } else if (a.layer_scale && names.has("mask_token")) {
    a.family = "dinov2", a.dialect = "dinov2";
    a.position_resize =
        a.registers ? PositionResize::antialias_bicubic : PositionResize::bicubic_offset;
  } else if (a.layer_scale && (a.registers || origin.mentions("dinov2") || a.gated_mlp)) {
    a.family = "dinov2";
  } else if (a.layer_scale && !a.position_on_prefix && names.has("cls_token")) {
    a.family = "deit3";
  } else if (names.has("dist_token")) {
    a.family = "deit-distilled";
  } else if (origin.mentions("dino") && (names.stated("family") || !names.architecture())) {
    a.family = "dino";
    a.position_resize = PositionResize::bicubic_offset;
  }
}

void set_rotary(const NameReader& names, const TimmArchitecture* known, Architecture& a) {
  a.position_table = names.has("pos_embed");
  if (known && known->rotary.theta > 0) {
    a.rotary = true;
    a.rotary_theta = known->rotary.theta, a.rotary_grid = known->rotary.grid;
    if (const auto grid = names.config_size("/model_args/ref_feat_shape/0")) a.rotary_grid = *grid;
    a.rotary_offset = known->rotary.offset;
    a.rotary_columns_first = known->rotary.columns_first, a.rotary_centred = known->rotary.centred;
    if (a.position_table == (known->input > 0))
      fail(fmt::format("a table of positions, pos_embed, is {}",
                       a.position_table ? "there, where the architecture has none" : "missing"),
           names.checkpoint().path(), "the file is of another architecture");
    if (a.rotary_centred)  // without them it would look like a whole one
      for (const char* token : {"cls_token", "reg_token"}) names.count(token);
  } else if (!a.position_table) {
    // DINOv3 is the one with a class token, registers and scales of layers.
    if (known || names.architecture() || !names.has("cls_token") || !names.has("reg_token") ||
        !names.has("blocks.0.gamma_1"))
      names.count("pos_embed");  // missing
    a.rotary = a.rotary_centred = true;
    a.rotary_theta = 100;
  }
}

namespace {

// Heads of its own has the query of timm's Eva alone, which looks at the prefix tokens as well.
void set_attention_pool(const NameReader& names, const TimmArchitecture* known, Architecture& a) {
  a.pooling = Pooling::attention;
  a.pool_heads = a.rotary && known && known->pool_heads ? known->pool_heads : a.heads;
  a.pool_heads = names.config_size("/model_args/attn_pool_num_heads").value_or(a.pool_heads);
  a.pool_prefix = a.rotary || names.config_flag("/model_args/pool_include_prefix").value_or(false);
  a.pool_hidden = names.dimension("attn_pool.mlp.fc1.weight", 0);
}

}  // namespace

void set_pooling(const NameReader& names, const TimmArchitecture* known, Architecture& a) {
  a.norm_after_pooling = names.has_affine("fc_norm");
  a.final_norm = names.has_affine("norm") || a.norm_after_pooling || !(known && known->bare);
  std::string pool = names.config_text("/model_args/global_pool")
                         .value_or(names.config_text("/global_pool").value_or(""));
  const bool pools = names.has_affine("attn_pool.kv");
  const bool mean = a.norm_after_pooling || (known && known->pooling == Pooling::mean_patches);
  if (pool.empty()) pool = pools ? "map" : mean || a.rms_norm ? "avg" : "token";
  if (const auto stated = names.stated("pooling")) {  // settle_facts() has the last word
    if (*stated == "attention" && pools) set_attention_pool(names, known, a);
    return;
  }
  if (a.rotary_centred && !known)
    fail("nothing tells how this DINOv3 is pooled", names.checkpoint().path(),
         "keep timm's config.json beside it, or state `stated_facts[pooling]=first` (the class "
         "token, as its authors) or `stated_facts[pooling]=mean_patches` (as timm)");
  if (pool == "map" && pools)
    set_attention_pool(names, known, a);
  else if (pool == "avg" && !names.config_flag("/model_args/pool_include_prefix").value_or(false))
    a.pooling = Pooling::mean_patches;
  else if (pool != "token")
    fail(fmt::format("config.json says global_pool {}{}, which is not known here", pool,
                     pool == "avg" ? " with prefix tokens" : ""),
         names.checkpoint().path(), "state another: `stated_facts[pooling]=first` or mean_patches");
}

// The head of a tower is its projection; that of a fine-tuned one tells ImageNet's classes.
void set_head(const NameReader& names, const Origin& origin, Architecture& a) {
  const std::string architecture = names.architecture().value_or("clip");
  // EVA's first CLIP has no norm before its blocks, by which the others are known.
  const bool eva =
      names.has("blocks.0.attn.q_bias") && (names.architecture() || origin.mentions("clip"));
  const bool clip =
      (a.family == "clip" || eva) && architecture.find("clip") != std::string::npos;
  if (origin.fine_tuned() || (!clip && a.family != "perception-encoder")) return;
  if (names.has_affine("head")) {
    const size_t outputs = names.dimension("head.weight", 0);
    a.head = outputs != 1000 && outputs != 11821 && outputs != 21841 && outputs != 21843;
    a.head_bias = a.head;  // timm's heads always have one, of zeros for OpenAI's weights
    if (a.head) a.embedding_width = outputs;
  } else if (clip) {
    check_projection(names, a, "head.weight");
  }
}

}  // namespace fungi
