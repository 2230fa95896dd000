// SPDX-License-Identifier: Apache-2.0
// timm's names, which DeiT, DINO, DINOv2, MAE, MoCo-v3, CLIP (in timm) and SSAST share; SPEC 4
// lists what differs.
#include <fmt/format.h>

#include <algorithm>

#include "fungi/backbone/timm_architectures.h"
#include "fungi/base/text.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

// Where a file with these names may come from: the user's word, timm's config.json, the prefix that
// a training script left, or the file's own name.
class Origin {
 public:
  explicit Origin(const NameReader& names) {
    text_ = names.architecture().value_or("") + "." +
            names.config_text("/pretrained_cfg/tag").value_or("");
    if (text_ == ".") text_ = std::filesystem::path(names.checkpoint().path()).filename().string();
    if (names.full("").find("base_encoder.") != std::string::npos) text_ += ".moco";
    if (names.full("").find("teacher.backbone.") != std::string::npos) text_ += ".dino";
    if (const auto family = names.stated("family")) text_ = *family, stated_ = true;
    text_ = lower(text_);
    named_ = names.architecture().has_value();
  }
  // As a whole word: "dino" is none of "dinosaur".
  bool mentions(std::string_view word) const {
    const auto letter = [&](size_t i) {
      return i < text_.size() && std::isalnum(static_cast<unsigned char>(text_[i]));
    };
    for (size_t at = 0; (at = text_.find(word, at)) != std::string::npos; ++at)
      if (!letter(at - 1) && !letter(at + word.size())) return true;
    return false;
  }
  bool stated() const { return stated_; }
  bool fine_tuned() const { return text_.find("_ft_") != std::string::npos; }
  // As in vit_small_patch14_reg4_dinov2 and dinov2_vits14_reg4_pretrain.pth; in the names of other
  // files it may mean anything.
  bool has_registers() const {
    const size_t at = text_.find("_reg");
    return (named_ || mentions("dinov2")) && at != std::string::npos &&
           std::isdigit(static_cast<unsigned char>(text_[at + 4]));
  }
  // Whether anything says if this is one of DINO's files or one of those that timm resizes.
  bool known() const {
    if (named_) return true;
    for (const char* word :
         {"dino", "vit", "deit", "mae", "moco", "mocov3", "augreg", "augreg2", "timm"})
      if (mentions(word)) return true;
    return false;
  }

 private:
  std::string text_;
  bool named_ = false;   // by timm's config.json, or by the user
  bool stated_ = false;  // by the user
};

// The activation of a plain MLP, where config.json has an opinion.
std::optional<kernel::Activation> config_activation(const NameReader& names) {
  const auto act = names.config_activation("/model_args/act_layer");
  return act ? act : names.config_activation("/act_layer");
}

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

void set_tokens(const NameReader& names, const Origin& origin, Architecture& a) {
  const size_t distilled = names.has("dist_token") ? 1 : 0;
  const char* registers = names.has("register_tokens") ? "register_tokens" : "reg_token";
  a.registers = names.has(registers) ? names.count(registers) / a.width : 0;
  const size_t plain = (names.has("cls_token") ? 1 : 0) + distilled;
  if (!a.registers && origin.has_registers())
    refuse_missing(names, names.full(names.has("mask_token") ? "register_tokens" : "reg_token"));
  a.prefix_tokens = plain + a.registers;
  if (distilled) a.pooling = Pooling::mean_prefix;
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

void set_family(const NameReader& names, const Origin& origin, const TimmArchitecture* known,
                Architecture& a) {
  if (a.family == "ast") return;
  if (known) a.activation = known->activation, a.norm_epsilon = known->norm_epsilon;
  // The same tensors, run differently; of a file's own name only what hardly means anything else.
  const bool named = names.architecture().has_value();
  for (const char* word : {"rpn", "rope", "parallel"})
    if (origin.mentions(word) && (named || std::string_view(word) != "parallel"))
      fail(fmt::format("'{}' in the name of the model or file: that is run in another way than a "
                       "plain ViT",
                       word),
           names.checkpoint().path(),
           named ? "`models` lists what can be run"
                 : "a plain ViT? Rename the file, or state `stated_facts[family]=vit`");
  if (origin.mentions("siglip") && !known && !names.stated("activation") &&
      !config_activation(names))
    fail("SigLIP's towers have two activations, which nothing tells apart",
         names.checkpoint().path(),
         "state it: `stated_facts[activation]=gelu` (SigLIP) or "
         "`stated_facts[activation]=gelu_tanh` (SigLIP 2)");
  if (!a.qkv_bias && !names.has("cls_token") && !known && !named && !names.stated("family"))
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
    if (!names.has("blocks.0.mlp.w12.weight") && !origin.mentions("dinov2") &&
        !(known && known->activation == kernel::Activation::silu) && !names.stated("activation"))
      fail("a gated MLP in timm's names does not tell its activation", names.checkpoint().path(),
           "state it: `stated_facts[activation]=silu` (SwiGLU, as in DINOv2's giant), gate rows "
           "first");
  }
  if (a.norm_pre) {
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

void set_pooling(const NameReader& names, const TimmArchitecture* known, Architecture& a) {
  a.norm_after_pooling = names.has_affine("fc_norm");
  std::string pool = names.config_text("/model_args/global_pool")
                         .value_or(names.config_text("/global_pool").value_or(""));
  if (pool.empty()) pool = a.norm_after_pooling || (known && known->mean) ? "avg" : "token";
  if (names.stated("pooling")) return;  // settle_facts() has the last word
  if (pool == "avg" && !names.config_flag("/model_args/pool_include_prefix").value_or(false))
    a.pooling = Pooling::mean_patches;
  else if (pool != "token")
    fail(fmt::format("config.json says global_pool {}{}, which is not known here", pool,
                     pool == "avg" ? " with prefix tokens" : ""),
         names.checkpoint().path(), "state another: `stated_facts[pooling]=first` or mean_patches");
}

// The head of a tower is its projection; that of a fine-tuned one tells ImageNet's classes.
void set_head(const NameReader& names, const Origin& origin, Architecture& a) {
  const std::string architecture = names.architecture().value_or("clip");
  if (a.family != "clip" || origin.fine_tuned() || architecture.find("clip") == std::string::npos)
    return;
  if (names.has_affine("head")) {
    const size_t outputs = names.dimension("head.weight", 0);
    a.head = outputs != 1000 && outputs != 11821 && outputs != 21841 && outputs != 21843;
    a.head_bias = a.head;  // timm's heads always have one, of zeros for OpenAI's weights
    if (a.head) a.embedding_width = outputs;
  } else {
    check_projection(names, a, "head.weight");
  }
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

void read_timm(const NameReader& names, Architecture& a, RecipeWriter& w) {
  const bool swiglu = names.has_affine("blocks.0.mlp.w12");  // DINOv2's giant
  const char *fc1 = swiglu ? "mlp.w12" : "mlp.fc1", *fc2 = swiglu ? "mlp.w3" : "mlp.fc2";
  a.width = names.dimension("blocks.0.attn.qkv.weight", 1);
  a.depth = names.count_blocks("blocks.", ".attn.qkv.weight");
  a.mlp_hidden = names.dimension(fmt::format("blocks.0.{}.weight", fc2), 1);
  a.gated_mlp = names.dimension(fmt::format("blocks.0.{}.weight", fc1), 0) == 2 * a.mlp_hidden;
  a.channels = names.dimension("patch_embed.proj.weight", 1);
  if (names.checkpoint().find(names.full("patch_embed.proj.weight"))->shape.size() == 2)
    refuse_missing(names, names.full("frontend.mel"));  // KWT's tokens are rows, no patches
  a.patch_h = a.stride_h = names.dimension("patch_embed.proj.weight", 2);
  a.patch_w = a.stride_w = names.dimension("patch_embed.proj.weight", 3);
  a.patch_bias = names.has("patch_embed.proj.bias");
  a.qkv_bias = names.has("blocks.0.attn.qkv.bias");
  if (is_early_small(a)) set_early_small(names, a);
  const TimmArchitecture* known = find_timm_architecture(names, a);
  set_heads(names, a, known ? known->heads : 0);
  const bool deit = names.has("blocks.0.gamma_1") || names.has("blocks.0.gamma_2");  // DeiT-III's
  a.layer_scale = deit || names.has("blocks.0.ls1.gamma") || names.has("blocks.0.ls2.gamma");
  a.norm_pre = names.has_affine("norm_pre");
  // That of MAE's whole file belongs to the decoder, whose width it has.
  a.mask_token = names.has("mask_token") &&
                 (!names.has("decoder_embed.weight") || names.count("mask_token") == a.width);
  if (!a.patch_bias && !a.norm_pre) names.count("patch_embed.proj.bias");  // missing
  const Origin origin(names);
  set_moco_heads(names, origin, a);
  set_tokens(names, origin, a);
  set_family(names, origin, known, a);
  set_pooling(names, known, a);
  set_head(names, origin, a);
  check_timm_args(names, a);
  check_trunk(names, a);
  set_preprocess(names, origin, a);
  settle_facts(names, a);
  check_resize_known(names, origin, a);

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
    if (!a.layer_scale) continue;
    w.tensor(b + "ls1", b + (deit ? "gamma_1" : "ls1.gamma"));
    w.tensor(b + "ls2", b + (deit ? "gamma_2" : "ls2.gamma"));
  }
  w.affine("norm", a.norm_after_pooling ? "fc_norm" : "norm");
  if (a.head) w.affine("head", "head");
}

}  // namespace

const Dialect kTimmNames{"timm",
                         {"blocks.0.attn.qkv.weight", "patch_embed.proj.weight",
                          "blocks.0.attn.proj.weight", "pos_embed"},
                         read_timm};

}  // namespace fungi
