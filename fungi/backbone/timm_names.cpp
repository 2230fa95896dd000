// SPDX-License-Identifier: Apache-2.0
// timm's names, which DeiT, DINO, DINOv2, MAE, MoCo-v3, CLIP (in timm) and SSAST share; SPEC 4
// lists what differs.
#include <fmt/format.h>

#include <algorithm>

#include "fungi/backbone/names.h"

namespace fungi {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return char(std::tolower(c)); });
  return text;
}

bool mentions(const std::string& text, std::string_view word) {
  return text.find(word) != std::string::npos;
}

// Where a file with these names may come from: the user's word, timm's config.json, or the file's
// own name.
std::string provenance(const NameReader& names) {
  if (const auto family = names.stated("family")) return lower(*family);
  std::string text = names.config_text("/architecture").value_or("") + "." +
                     names.config_text("/pretrained_cfg/tag").value_or("");
  if (text == ".") text = std::filesystem::path(names.checkpoint().path()).filename().string();
  return lower(text);
}

// timm's config.json carries the evaluation transform; without it the family's own is assumed and
// said to be so.
void set_preprocess(const NameReader& names, const std::string& origin, Architecture& a) {
  PreprocessFacts& p = a.preprocess;
  if (const auto mean = names.config_number("/pretrained_cfg/mean/0")) {
    for (size_t i = 0; i < 3; ++i) {
      p.mean[i] = float(
          names.config_number(fmt::format("/pretrained_cfg/mean/{}", i).c_str()).value_or(*mean));
      p.deviation[i] =
          float(names.config_number(fmt::format("/pretrained_cfg/std/{}", i).c_str()).value_or(1));
    }
    const double crop = names.config_number("/pretrained_cfg/crop_pct").value_or(0.875);
    p.resize = size_t(double(a.input_h) / crop);
    p.bilinear =
        names.config_text("/pretrained_cfg/interpolation").value_or("bicubic") == "bilinear";
    p.source = "config.json";
    return;
  }
  p.resize = a.input_h * 256 / 224;
  p.source = "assumed: ImageNet statistics";
  if (mentions(origin, "augreg")) {
    p.mean = p.deviation = {0.5f, 0.5f, 0.5f};
    p.resize = size_t(double(a.input_h) / 0.9);
    p.source = "AugReg, by the file name";
  } else if (a.family == "clip") {
    p.mean = kClipMean, p.deviation = kClipDeviation;
    p.resize = size_t(double(a.input_h) / 0.9);
    p.source = "CLIP";
  } else if (mentions(origin, "mae")) {
    p.resize = size_t(double(a.input_h) / 0.9);
    p.source = "MAE, by the file name";
  } else if (mentions(origin, "moco")) {
    p.bilinear = true;
    p.source = "MoCo-v3, by the file name";
  }
}

void set_tokens(const NameReader& names, Architecture& a) {
  const size_t distilled = names.has("dist_token") ? 1 : 0;
  const char* registers = names.has("register_tokens") ? "register_tokens" : "reg_token";
  a.registers = names.has(registers) ? names.count(registers) / a.width : 0;
  const size_t plain = (names.has("cls_token") ? 1 : 0) + distilled;
  a.prefix_tokens = plain + a.registers;
  const size_t rows = names.count("pos_embed") / a.width;
  const auto square = [](size_t n) {
    const auto s = size_t(std::lround(std::sqrt(double(n))));
    return s * s == n;
  };
  a.position_on_prefix = plain > 0 && rows > plain && (square(rows - plain) || a.channels == 1);
  if (a.channels != 1) set_square_grid(names, a, a.position_on_prefix ? rows - plain : rows);
  if (distilled) a.pooling = Pooling::mean_prefix;
}

// SSAST (SPEC 4.3): 128 bins; the stored table is 8 rows of bins by 64 columns of time, the run
// uses stride 10.
void set_ssast(const NameReader& names, Architecture& a) {
  a.family = "ast", a.dialect = "ssast", a.input = InputKind::filter_bank;
  a.position_resize = PositionResize::cut_bilinear;
  const size_t positions = names.count("pos_embed") / a.width - (a.prefix_tokens - a.registers);
  a.input_h = 128, a.input_w = 1024;
  a.stored_grid_h = a.input_h / a.patch_h;
  a.stored_grid_w = positions / a.stored_grid_h;
  if (a.stored_grid_h * a.stored_grid_w != positions)
    fail(fmt::format("{} positions do not fit {} rows of bins", positions, a.stored_grid_h),
         names.checkpoint().path(), "a table for 128 bins was expected");
  a.stride_h = a.stride_w = a.patch_h > 10 ? 10 : a.patch_h;
}

void set_family(const NameReader& names, const std::string& origin, Architecture& a) {
  if (a.channels == 1 && names.has("dist_token")) return set_ssast(names, a);
  if (a.norm_pre) {
    a.family = "clip";
    a.norm_epsilon = 1e-5f;
    if (mentions(origin, "quickgelu") || mentions(origin, "quick_gelu"))
      a.activation = kernel::Activation::quick_gelu;
    else if (!names.stated("activation") && !names.config_text("/architecture"))
      fail("a CLIP tower in timm's names does not tell its activation", names.checkpoint().path(),
           "state it: --set activation=quick_gelu (OpenAI's weights) or --set activation=gelu");
  } else if (a.layer_scale && names.has("mask_token")) {
    a.family = "dinov2", a.dialect = "dinov2";
    a.position_resize =
        a.registers ? PositionResize::antialias_bicubic : PositionResize::bicubic_offset;
  } else if (a.layer_scale && (a.registers || mentions(origin, "dinov2") || a.gated_mlp)) {
    a.family = "dinov2";
  } else if (a.layer_scale && !a.position_on_prefix) {
    a.family = "deit3";
  } else if (names.has("dist_token")) {
    a.family = "deit-distilled";
  } else if (mentions(origin, "dino") && !names.config_text("/architecture")) {
    a.family = "dino";
    a.position_resize = PositionResize::bicubic_offset;
  }
}

}  // namespace

std::optional<Reading> read_timm_names(const Checkpoint& checkpoint,
                                       const StatedFacts& stated_facts) {
  NameReader names(checkpoint, stated_facts);
  if (!names.find_prefix("blocks.0.attn.qkv.weight", "patch_embed.proj.weight")) return {};
  Reading reading;
  Architecture& a = reading.architecture;
  const bool swiglu = names.has("blocks.0.mlp.w12.weight");  // DINOv2's giant
  const char *fc1 = swiglu ? "mlp.w12" : "mlp.fc1", *fc2 = swiglu ? "mlp.w3" : "mlp.fc2";
  a.width = names.dimension("blocks.0.attn.qkv.weight", 1);
  a.depth = names.count_blocks("blocks.", ".attn.qkv.weight");
  a.heads = guess_heads(names, a.width);
  a.mlp_hidden = names.dimension(fmt::format("blocks.0.{}.weight", fc2), 1);
  a.gated_mlp = names.dimension(fmt::format("blocks.0.{}.weight", fc1), 0) == 2 * a.mlp_hidden;
  if (a.gated_mlp) a.activation = kernel::Activation::silu;
  a.channels = names.dimension("patch_embed.proj.weight", 1);
  a.patch_h = a.stride_h = names.dimension("patch_embed.proj.weight", 2);
  a.patch_w = a.stride_w = names.dimension("patch_embed.proj.weight", 3);
  a.patch_bias = names.has("patch_embed.proj.bias");
  a.qkv_bias = names.has("blocks.0.attn.qkv.bias");
  a.layer_scale = names.has("blocks.0.ls1.gamma");
  a.norm_pre = names.has("norm_pre.weight");
  a.mask_token = names.has("mask_token");
  set_tokens(names, a);
  const std::string origin = provenance(names);
  set_family(names, origin, a);
  if (names.has("fc_norm.weight"))
    a.norm_after_pooling = true, a.pooling = Pooling::mean_patches;
  else if (names.config_text("/global_pool") == "avg" ||
           names.config_text("/model_args/global_pool") == "avg")
    a.pooling = Pooling::mean_patches;
  if (a.family == "clip" && names.has("head.weight")) {
    a.head = true, a.head_bias = names.has("head.bias");
    a.embedding_width = names.dimension("head.weight", 0);
  }
  set_preprocess(names, origin, a);
  apply_stated_facts(names, a);
  check(names, a);

  RecipeWriter w(names);
  w.affine("patch_embed", "patch_embed.proj");
  const size_t plain = a.prefix_tokens - a.registers;
  if (plain) w.recipes["prefix"].parts.push_back(names.full("cls_token"));
  if (names.has("dist_token")) w.recipes["prefix"].parts.push_back(names.full("dist_token"));
  if (a.registers)
    w.tensor("registers", names.has("register_tokens") ? "register_tokens" : "reg_token");
  if (a.position_on_prefix) w.rows("pos_prefix", "pos_embed", 0);
  w.rows("pos_patches", "pos_embed", a.position_on_prefix ? plain : 0);
  if (a.mask_token) w.tensor("mask_token", "mask_token");
  if (a.norm_pre) w.affine("norm_pre", "norm_pre");
  for (size_t i = 0; i < a.depth; ++i) {
    const std::string b = fmt::format("blocks.{}.", i);
    for (const char* part : {"norm1", "attn.qkv", "attn.proj", "norm2"})
      w.affine(b + part, b + part);
    w.affine(b + "mlp.fc1", b + fc1);
    w.affine(b + "mlp.fc2", b + fc2);
    if (a.layer_scale) w.tensor(b + "ls1", b + "ls1.gamma"), w.tensor(b + "ls2", b + "ls2.gamma");
  }
  w.affine("norm", a.norm_after_pooling ? "fc_norm" : "norm");
  if (a.head) w.affine("head", "head");
  reading.recipes = std::move(w.recipes);
  return reading;
}

}  // namespace fungi
