// SPDX-License-Identifier: Apache-2.0
// Hugging Face's ViT, DINOv2 (with or without registers) and AST: one attention naming, three kinds
// of norms and prefix tokens.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "fungi/backbone/names.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

// Whose networks are run here. Others have the same names and compute something else: windows
// (RF-DETR), words beside the picture (ViLT), another way to positions (ViTPose).
const std::set<std::string> kTypes{"audio-spectrogram-transformer",
                                   "deit",
                                   "dinov2",
                                   "dinov2_with_registers",
                                   "dpt",
                                   "flava_image_model",
                                   "vit",
                                   "vit_mae",
                                   "vit_msn"};

void check_type(const NameReader& names) {
  const auto type = names.config_text("/model_type");
  if (names.config_whole_type() == "flava")
    fail("config.json says model_type flava, which does not look at pictures alone",
         names.checkpoint().path(), "give the image model of it by itself");
  if (type && !kTypes.count(*type))
    fail(fmt::format("config.json says {} = {}, expected one of {}",
                     (names.config_root() + "/model_type").substr(1), printable(*type),
                     fmt::join(kTypes, ", ")),
         names.checkpoint().path(),
         "its tensors have the names of these, but it is not known to compute the same; `models` "
         "lists the families");
}

// Tensors beside the blocks that a ViT does not have: words (ViLT), relative positions (BEiT), the
// tokens of a detector (YOLOS); and a projection after the network, as VisionTextDualEncoder has
// it, behind a pooler that is not run here.
void refuse_other_parts(const NameReader& names) {
  const std::string embeddings = names.full("embeddings."), encoder = names.full("encoder.");
  std::string above = names.full("");
  if (above.ends_with("vision_model.")) above.resize(above.size() - 13);
  for (const TensorInfo& t : names.checkpoint().tensors()) {
    if (names.ignored(t.name)) continue;
    bool known = !t.name.starts_with(embeddings) && !t.name.starts_with(encoder);
    for (const char* part :
         {"embeddings.cls_token", "embeddings.distillation_token", "embeddings.register_tokens",
          "embeddings.mask_token", "embeddings.position_embeddings", "embeddings.position_ids",
          "embeddings.patch_embeddings.projection.", "encoder.layer."})
      known |= t.name.starts_with(names.full(part));
    if (!known || t.name == above + "visual_projection.weight")
      fail("the tensor belongs to the network, but nothing here uses it",
           tensor_place(names.checkpoint().path(), t.name),
           "this variant is not among those that `models` lists; the embedding would be "
           "wrong");
  }
}

// Bins, frames and strides are in config.json alone; the defaults are those of the published AST.
// The number of positions tells whether they are the model's.
void set_filter_bank(const NameReader& names, Architecture& a, size_t positions) {
  a.family = "ast", a.input = InputKind::filter_bank;
  a.position_resize = PositionResize::cut_bilinear;  // its authors'; Hugging Face has one length
  SoundFrontEnd front_end = ast_front_end();
  front_end.centre = false;
  set_front_end(a, front_end, "assumed: AudioSet's mean and std", true);
  a.input_h = names.config_size("/num_mel_bins").value_or(128);
  a.input_w = names.config_size("/max_length").value_or(1024);
  a.stride_h = names.config_size("/frequency_stride").value_or(10);
  a.stride_w = names.config_size("/time_stride").value_or(10);
  const bool fits = a.input_h >= a.patch_h && a.input_w >= a.patch_w;
  if (fits) a.stored_grid_h = a.grid_h(), a.stored_grid_w = a.grid_w();
  if (!fits || a.patches() != positions)
    fail(fmt::format("{} patch positions, expected {} for {} mel bins x {} frames in patches of "
                     "{}x{} every {}x{}",
                     positions, fits ? a.patches() : 0, a.input_h, a.input_w, a.patch_h, a.patch_w,
                     a.stride_h, a.stride_w),
         names.checkpoint().path(),
         "num_mel_bins, max_length, frequency_stride and time_stride must be those of the model in "
         "config.json beside the file");
}

void read_huggingface_vit(const NameReader& names, Architecture& a, RecipeWriter& w) {
  check_type(names);
  const std::string patch = "embeddings.patch_embeddings.projection";
  const bool dinov2 = names.has_affine("encoder.layer.0.norm1"),
             swiglu = names.has_affine("encoder.layer.0.mlp.weights_in");
  a.dialect = "huggingface";
  a.family = dinov2 ? "dinov2" : "vit";
  a.width = names.dimension(patch + ".weight", 0);
  a.channels = names.dimension(patch + ".weight", 1);
  a.patch_h = a.stride_h = names.dimension(patch + ".weight", 2);
  a.patch_w = a.stride_w = names.dimension(patch + ".weight", 3);
  a.depth = names.count_blocks("encoder.layer.", ".attention.attention.query.weight");
  // What these types leave out of a config.json has the value that all of them have, but for the
  // epsilon.
  const auto type = names.config_text("/model_type");
  set_heads(names, a, type ? 12 : 0);
  a.norm_epsilon = float(
      names.config_number("/layer_norm_eps").value_or(dinov2 || type == "vit_msn" ? 1e-6 : 1e-12));
  a.activation = names.config_activation("/hidden_act").value_or(kernel::Activation::gelu);
  a.qkv_bias = names.has("encoder.layer.0.attention.attention.query.bias") ||
               names.has("encoder.layer.0.attention.attention.value.bias");
  const std::string fc1 = swiglu ? "mlp.weights_in" : dinov2 ? "mlp.fc1" : "intermediate.dense";
  const std::string fc2 = swiglu ? "mlp.weights_out" : dinov2 ? "mlp.fc2" : "output.dense";
  a.mlp_hidden = names.dimension("encoder.layer.0." + fc2 + ".weight", 1);
  a.gated_mlp = swiglu;
  if (swiglu) a.activation = kernel::Activation::silu;
  a.layer_scale = names.has("encoder.layer.0.layer_scale1.lambda1") ||
                  names.has("encoder.layer.0.layer_scale2.lambda1");
  a.mask_token = names.has("embeddings.mask_token");
  a.registers = names.has("embeddings.register_tokens")
                    ? names.count("embeddings.register_tokens") / a.width
                    : 0;
  const bool distilled = names.has("embeddings.distillation_token");
  if (!a.registers && type == "dinov2_with_registers")
    refuse_missing(names, names.full("embeddings.register_tokens"));
  if (!distilled && (type == "deit" || type == "audio-spectrogram-transformer"))
    refuse_missing(names, names.full("embeddings.distillation_token"));
  a.prefix_tokens = 1 + (distilled ? 1 : 0) + a.registers;
  a.position_resize = a.registers ? PositionResize::antialias_bicubic : PositionResize::bicubic;
  if (names.has("embeddings.detection_tokens"))
    fail("tokens of a detector (YOLOS), expected an encoder of whole images",
         tensor_place(names.checkpoint().path(), names.full("embeddings.detection_tokens")),
         "this variant is not among those that `models` lists");
  refuse_other_parts(names);
  const std::string table = "embeddings.position_embeddings";
  const size_t plain = a.prefix_tokens - a.registers, positions = names.count(table) / a.width;
  if (positions <= plain)
    fail(fmt::format("{} positions, expected {} and those of the patches", positions, plain),
         tensor_place(names.checkpoint().path(), names.full(table)),
         "the file is incomplete or of another architecture");
  if (distilled) a.pooling = Pooling::mean_prefix;  // both were trained, as in timm's DeiT
  if (a.channels == 1 && distilled) {
    set_filter_bank(names, a, positions - plain);
  } else {
    set_grid(names, a, positions - plain, distilled ? "" : "embeddings.distillation_token");
    if (distilled) a.family = "deit-distilled";
  }
  a.preprocess.transform.resize_size = a.input_h * 256 / 224;
  if (a.family == "vit") {
    a.preprocess.transform.mean = a.preprocess.transform.std = {0.5f, 0.5f, 0.5f};
    a.preprocess.source = "Hugging Face's ViT processor, as it is without a file of its own";
    a.preprocess.transform.resize_size = a.input_h;
    a.preprocess.transform.set_squash(true), a.preprocess.transform.set_bilinear(true);
  } else if (a.family == "dinov2") {
    a.preprocess.source = "ImageNet statistics, as for all of this family";
    a.preprocess.assumed = false;
  }
  settle_facts(names, a);

  w.affine("patch_embed", patch);
  w.recipes["prefix"].parts.push_back(names.full("embeddings.cls_token"));
  if (distilled) w.recipes["prefix"].parts.push_back(names.full("embeddings.distillation_token"));
  if (a.registers) w.tensor("registers", "embeddings.register_tokens");
  if (a.mask_token) w.tensor("mask_token", "embeddings.mask_token");
  w.rows("pos_prefix", table, 0);
  w.rows("pos_patches", table, plain);
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
}

}  // namespace

const Dialect kHuggingfaceVitNames{
    "Hugging Face's ViT",
    {"encoder.layer.0.attention.attention.query.weight", "embeddings.cls_token",
     "embeddings.patch_embeddings.projection.weight", "embeddings.position_embeddings"},
    read_huggingface_vit};

}  // namespace fungi
