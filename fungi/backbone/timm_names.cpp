// SPDX-License-Identifier: Apache-2.0
// timm's names, which DeiT, DINO, DINOv2, MAE, MoCo-v3, CLIP (in timm) and SSAST share; SPEC 4
// lists what differs.
#include <fmt/format.h>

#include <algorithm>

#include "fungi/backbone/timm_origin.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

// Without timm's config.json the family's own evaluation transform is assumed and said to be so.
void set_preprocess(const NameReader& names, const Origin& origin, Architecture& a) {
  PreprocessFacts& p = a.preprocess;
  const size_t side = std::min(a.input_h, a.input_w);
  p.augreg = origin.mentions("augreg") || origin.mentions("augreg2");
  if (read_timm_transform(names, a) || read_open_clip_transform(names, a)) return;
  p.transform.resize_size = side * 256 / 224;
  p.source = "assumed: ImageNet statistics";
  const auto tell = [&](const char* family, const char* by) {
    p.source = origin.stated() ? fmt::format("{}, as stated", family)
                               : fmt::format("{}, by {}", family, by);
    p.assumed = !origin.stated();
  };
  if (p.augreg) {
    p.transform.mean = p.transform.std = {0.5f, 0.5f, 0.5f};
    p.transform.resize_size = augreg_resize(a);
    tell("AugReg", "the file name");
  } else if (a.family == "clip") {
    p.transform.mean = kClipMean, p.transform.std = kClipDeviation;
    p.transform.resize_size = a.patch_h == 14 ? side : size_t(double(side) / 0.9);  // SPEC 3.4
    p.source = "CLIP as OpenAI's";  // others have other statistics and crops
  } else if (origin.mentions("mae")) {
    p.transform.resize_size = size_t(double(side) / 0.9);
    tell("MAE", "the file name");
  } else if (origin.mentions("moco") || origin.mentions("mocov3")) {
    p.transform.set_bilinear(true);
    tell("MoCo-v3", "its prefix or the file name");
  } else if (a.family == "siglip" || a.family == "perception-encoder") {
    p.transform.mean = p.transform.std = {0.5f, 0.5f, 0.5f};
    p.transform.resize_size = a.family == "siglip" ? size_t(double(side) / 0.9) : side;
    p.source = fmt::format("{} as timm's", a.family);
  } else if (a.family == "aimv2") {
    p.transform.mean = kClipMean, p.transform.std = kClipDeviation;
    p.transform.resize_size = side;
    p.source = "aimv2 as timm's";
  } else if (a.family == "dinov3") {
    p.transform.resize_size = side;
    p.source = "ImageNet statistics";  // those of pictures from satellites are others
  } else if (a.family == "dino" || a.family == "dinov2") {
    p.source = "ImageNet statistics, as for all of this family";
    p.assumed = false;
  }
}

// Whether the positions are sines and cosines that were never trained: a row of zeros for the class
// token, then sin 0 and cos 0 for either axis.
bool has_fixed_positions(const NameReader& names, size_t width) {
  const TensorInfo* info = names.checkpoint().find(names.full("pos_embed"));
  if (!info || !is_float(info->type) || info->count() < 2 * width || width % 4) return false;
  const Matrix<float> table = names.checkpoint().read(info->name);
  for (size_t i = 0; i < 2 * width; ++i)
    if (table.data()[i] != (i >= width && (i - width) / (width / 4) % 2 ? 1.0f : 0.0f))
      return false;
  return true;
}

// MoCo-v3's small ViT has twice as many heads as others of its width. Whatever its tensors are
// called after training, its positions are fixed; of others of this width they are not, but for
// MAE's kind.
void set_moco_heads(const NameReader& names, const Origin& origin, Architecture& a) {
  if (!a.heads_assumed || a.width != 384 || names.architecture()) return;
  const bool mae = origin.mentions("mae") || names.has("decoder_embed.weight");
  if (origin.mentions("moco") || origin.mentions("mocov3") ||
      (!mae && has_fixed_positions(names, a.width)))
    a.heads = 12;
}

// Its published weights were trained with attention scaled by 1/sqrt(768) in place of 1/sqrt(96),
// and nothing tells them from others.
void set_early_small(const NameReader& names, Architecture& a) {
  if (!names.stated("heads"))
    fail(
        "the vit_small of timm before 0.5, whose published weights scale attention in a way that "
        "is not known here",
        names.checkpoint().path(),
        "if it was trained from the start, without them: `stated_facts[heads]=8`");
  a.norm_epsilon = 1e-5f;
}

void set_tokens(const NameReader& names, const Origin& origin, const TimmArchitecture* known,
                Architecture& a) {
  const size_t distilled = names.has("dist_token") ? 1 : 0;
  const char* registers = names.has("register_tokens") ? "register_tokens" : "reg_token";
  a.registers = names.has(registers) ? names.count(registers) / a.width : 0;
  const size_t plain = (names.has("cls_token") ? 1 : 0) + distilled;
  if (!a.registers && origin.has_registers())
    refuse_missing(names, names.full(names.has("mask_token") ? "register_tokens" : "reg_token"));
  a.prefix_tokens = plain + a.registers;
  if (distilled) a.pooling = Pooling::mean_prefix;
  if (!a.position_table) {
    a.position_on_prefix = false;
    return set_input(names, a, known ? known->input : 256);
  }
  const size_t rows = names.count("pos_embed") / a.width;
  const bool sound =
      a.channels == 1 && (is_pretrained_ssast(names) ||
                          (distilled && (names.full("").ends_with("v.") || rows <= plain ||
                                         !find_grid(names, a, rows - plain))));
  if (sound) return set_sound(names, a);
  // A table without rows for the prefix looks like one of a grid that is no square: unless
  // config.json knows the size it needs a sign.
  const bool sign = a.layer_scale || a.registers ||
                    names.config_flag("/model_args/no_embed_class").value_or(false);
  const size_t grid = rows > plain ? rows - plain : 0;
  const bool grid_fits = config_size_has(names, a, grid) || is_square(grid),
             rows_fit = config_size_has(names, a, rows) || (sign && is_square(rows));
  a.position_on_prefix =
      plain > 0 && (config_size_has(names, a, grid) || !config_size_has(names, a, rows)) &&
      (grid_fits ||
       !(rows_fit || (stated_size_has(names, a, rows) && !stated_size_has(names, a, grid))));
  set_grid(names, a, a.position_on_prefix ? rows - plain : rows,
           names.has("cls_token") ? "dist_token" : "cls_token");
}

// DINO's files have the tensors of any ViT, but a rule of their own for other sizes. Theirs is a
// class token with a position, and no classifier.
void check_resize_known(const NameReader& names, const Origin& origin, const Architecture& a) {
  if (a.grid_h() == a.stored_grid_h && a.grid_w() == a.stored_grid_w) return;
  if (a.family != "vit" || origin.known() || !a.position_on_prefix || a.layer_scale ||
      a.registers || a.mask_token || a.norm_after_pooling || names.has_affine("head"))
    return;
  fail(fmt::format("positions of {}x{} patches are to be resized to {}x{}, which DINO does in "
                   "another way than timm, and nothing tells whose file this is",
                   a.stored_grid_h, a.stored_grid_w, a.grid_h(), a.grid_w()),
       names.checkpoint().path(),
       "state it: `stated_facts[family]=dino`, or `stated_facts[family]=vit` for any other; or "
       "keep timm's config.json "
       "beside it");
}

// Of those that the table does not have; of all others it follows from the width.
size_t usual_heads(const Architecture& a) {
  if (a.rms_norm) return a.width / 128;                                 // AIMv2
  if (a.rotary_centred) return a.width / (a.width == 4096 ? 128 : 64);  // DINOv3
  return 0;
}

void write_pool(RecipeWriter& w, const Architecture& a) {
  w.tensor("pool.latent", "attn_pool.latent");
  w.affine("pool.q", "attn_pool.q");
  for (const size_t i : {0, 1}) {
    const std::string name = i == 0 ? "pool.k" : "pool.v";
    w.rows(name + ".weight", "attn_pool.kv.weight", i * a.width);
    if (a.pool_bias) w.rows(name + ".bias", "attn_pool.kv.bias", i);
  }
  w.affine("pool.proj", "attn_pool.proj");
  w.affine("pool.norm", "attn_pool.norm");
  w.affine("pool.fc1", "attn_pool.mlp.fc1");
  w.affine("pool.fc2", "attn_pool.mlp.fc2");
}

void read_timm(const NameReader& names, Architecture& a, RecipeWriter& w) {
  const bool swiglu = names.has_affine("blocks.0.mlp.w12");  // DINOv2's giant
  const char *fc1 = swiglu ? "mlp.w12" : "mlp.fc1", *fc2 = swiglu ? "mlp.w3" : "mlp.fc2";
  a.width = names.dimension("blocks.0.attn.qkv.weight", 1);
  a.depth = names.count_blocks("blocks.", ".attn.qkv.weight");
  a.mlp_hidden = names.dimension(fmt::format("blocks.0.{}.weight", fc2), 1);
  const bool apart =
      names.has_affine("blocks.0.mlp.fc1_g") || names.has_affine("blocks.0.mlp.fc1_x");
  a.gated_mlp =
      apart || names.dimension(fmt::format("blocks.0.{}.weight", fc1), 0) == 2 * a.mlp_hidden;
  a.channels = names.dimension("patch_embed.proj.weight", 1);
  if (names.checkpoint().find(names.full("patch_embed.proj.weight"))->shape.size() == 2)
    refuse_missing(names, names.full("frontend.mel"));  // KWT's tokens are rows, no patches
  a.patch_h = a.stride_h = names.dimension("patch_embed.proj.weight", 2);
  a.patch_w = a.stride_w = names.dimension("patch_embed.proj.weight", 3);
  a.patch_bias = names.has("patch_embed.proj.bias");
  const bool biases_apart =
      !names.has("blocks.0.attn.qkv.bias") &&  // timm's Eva
      (names.has("blocks.0.attn.q_bias") || names.has("blocks.0.attn.v_bias"));
  a.qkv_bias = biases_apart || names.has("blocks.0.attn.qkv.bias");
  a.rms_norm = apart && !names.has("blocks.0.norm1.bias") && !names.has("norm.bias");  // AIMv2
  a.patch_norm = a.rms_norm || names.has_affine("patch_embed.norm");
  if (a.patch_norm)
    a.linear_bias = names.has("blocks.0.attn.proj.bias") || names.has("blocks.0.mlp.fc2.bias");
  if (is_early_small(a)) set_early_small(names, a);
  const TimmArchitecture* known = find_timm_architecture(names, a);
  set_rotary(names, known, a);
  set_heads(names, a, known ? known->heads : usual_heads(a));
  const bool deit = names.has("blocks.0.gamma_1") || names.has("blocks.0.gamma_2");  // DeiT-III's
  a.layer_scale = deit || names.has("blocks.0.ls1.gamma") || names.has("blocks.0.ls2.gamma");
  a.norm_pre = names.has_affine("norm_pre");
  // That of MAE's whole file belongs to the decoder, whose width it has.
  a.mask_token = names.has("mask_token") &&
                 (!names.has("decoder_embed.weight") || names.count("mask_token") == a.width);
  if (!a.patch_bias && !a.norm_pre) names.count("patch_embed.proj.bias");  // missing
  const Origin origin(names);
  set_moco_heads(names, origin, a);
  set_tokens(names, origin, known, a);
  set_family(names, origin, known, a);
  set_pooling(names, known, a);
  set_head(names, origin, a);
  check_timm_args(names, a);
  check_trunk(names, a);
  set_preprocess(names, origin, a);
  settle_facts(names, a);
  if (a.pooling == Pooling::attention && !a.rotary)
    a.pool_activation = a.activation;  // that of timm's Eva is GELU
  check_resize_known(names, origin, a);

  w.affine("patch_embed", "patch_embed.proj");
  const size_t plain = a.prefix_tokens - a.registers;
  if (plain) w.recipes["prefix"].parts.push_back(names.full("cls_token"));
  if (names.has("dist_token")) w.recipes["prefix"].parts.push_back(names.full("dist_token"));
  if (a.registers)
    w.tensor("registers", names.has("register_tokens") ? "register_tokens" : "reg_token");
  if (a.position_on_prefix) w.rows("pos_prefix", "pos_embed", 0);
  if (a.position_table) w.rows("pos_patches", "pos_embed", a.position_on_prefix ? plain : 0);
  if (a.patch_norm) w.affine("patch_norm", "patch_embed.norm");
  if (a.mask_token) w.tensor("mask_token", "mask_token");
  if (a.norm_pre) w.affine("norm_pre", "norm_pre");
  for (size_t i = 0; i < a.depth; ++i) {
    const std::string b = fmt::format("blocks.{}.", i);
    for (const char* part : {"norm1", "attn.qkv", "attn.proj", "norm2"})
      w.affine(b + part, b + part);
    if (biases_apart)
      w.recipes[b + "attn.qkv.bias"].parts = {names.full(b + "attn.q_bias"), "",
                                              names.full(b + "attn.v_bias")};
    if (apart)
      w.stacked(b + "mlp.fc1", {b + "mlp.fc1_g", b + "mlp.fc1_x"}, a.linear_bias);
    else
      w.affine(b + "mlp.fc1", b + fc1);
    w.affine(b + "mlp.fc2", b + fc2);
    if (!a.layer_scale) continue;
    w.tensor(b + "ls1", b + (deit ? "gamma_1" : "ls1.gamma"));
    w.tensor(b + "ls2", b + (deit ? "gamma_2" : "ls2.gamma"));
  }
  if (a.final_norm) w.affine("norm", a.norm_after_pooling ? "fc_norm" : "norm");
  if (a.pooling == Pooling::attention) write_pool(w, a);
  if (a.head) w.affine("head", "head");
}

}  // namespace

const Dialect kTimmNames{"timm",
                         {"blocks.0.attn.qkv.weight", "patch_embed.proj.weight",
                          "blocks.0.attn.proj.weight", "pos_embed"},
                         read_timm};
// Those of DINOv3 and AIMv2, of whose files others of the anchors may be missing.
const Dialect kTimmRotaryNames{"timm's DINOv3",
                               {"blocks.0.attn.qkv.weight", "patch_embed.proj.weight",
                                "blocks.0.attn.proj.weight", "blocks.0.gamma_1"},
                               read_timm};
const Dialect kTimmAimv2Names{"timm's AIMv2",
                              {"blocks.0.attn.qkv.weight", "patch_embed.proj.weight",
                               "blocks.0.mlp.fc1_g.weight", "patch_embed.norm.weight"},
                              read_timm};

}  // namespace fungi
