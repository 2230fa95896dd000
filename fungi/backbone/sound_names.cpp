// SPDX-License-Identifier: Apache-2.0
// Encoders of sounds that are no ViT: Whisper in Hugging Face's names, and the Keyword Transformer
// (KWT), whose tokens are single frames.
#include <fmt/format.h>

#include "fungi/backbone/names.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

void check_type(const NameReader& names) {
  const auto type = names.config_text("/model_type");
  if (type && *type != "whisper")
    fail(fmt::format("the model_type is '{}', expected whisper", printable(*type)),
         fmt::format("{}: config.json", names.checkpoint().path()),
         "its tensors have the names of these, but it is not known to compute the same; `models` "
         "lists the families");
}

void check_convolution(const NameReader& names, const std::string& name, size_t rows) {
  const std::string weight = name + ".weight";
  if (names.dimension(weight, 2) != 3 || names.dimension(weight, 0) != rows)
    fail(fmt::format("expected a convolution over 3 frames to {} channels, found {}x{}x{}", rows,
                     names.dimension(weight, 0), names.dimension(weight, 1),
                     names.dimension(weight, 2)),
         tensor_place(names.checkpoint().path(), names.full(weight)),
         "this variant is not among those that `models` lists");
}

void read_whisper(const NameReader& names, Architecture& a, RecipeWriter& w) {
  check_type(names);
  const std::string table = "embed_positions.weight";
  a.family = "whisper", a.dialect = "huggingface", a.input = InputKind::filter_bank;
  a.convolutions = true, a.channels = 1;
  a.width = names.dimension("conv1.weight", 0);
  const size_t bins = names.dimension("conv1.weight", 1);
  check_convolution(names, "conv1", a.width);
  check_convolution(names, "conv2", a.width);
  a.depth = names.count_blocks("layers.", ".self_attn.q_proj.weight");
  const auto heads = names.config_size("/encoder_attention_heads");
  set_heads(names, a, heads ? *heads : a.width % 64 ? 0 : a.width / 64);  // 64 wide in all of them
  a.mlp_hidden = names.dimension("layers.0.fc1.weight", 0);
  a.activation = names.config_activation("/activation_function").value_or(kernel::Activation::gelu);
  a.norm_epsilon = 1e-5f;
  a.prefix_tokens = 0, a.position_on_prefix = false;
  a.patch_h = a.stride_h = a.input_h = bins;
  a.patch_w = 1, a.stride_w = 2;
  a.stored_grid_h = 1, a.stored_grid_w = names.dimension(table, 0);
  a.input_w = 2 * std::min<size_t>(a.stored_grid_w, 1u << 20);
  a.position_resize = PositionResize::cut;
  a.pooling = Pooling::mean_sound;
  set_front_end(a, whisper_front_end(bins), "as of all Whispers", false);
  settle_facts(names, a);

  w.affine("conv1", "conv1");
  w.affine("conv2", "conv2");
  w.rows("pos_patches", table, 0);
  for (size_t i = 0; i < a.depth; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), f = fmt::format("layers.{}.", i),
                      q = f + "self_attn.";
    w.affine(b + "norm1", f + "self_attn_layer_norm");
    w.stacked(b + "attn.qkv", {q + "q_proj", q + "k_proj", q + "v_proj"}, true, q + "k_proj");
    w.affine(b + "attn.proj", q + "out_proj");
    w.affine(b + "norm2", f + "final_layer_norm");
    w.affine(b + "mlp.fc1", f + "fc1");
    w.affine(b + "mlp.fc2", f + "fc2");
  }
  w.affine("norm", "layer_norm");
}

// The file holds the filters of its front end; they must be of the sizes of those computed here.
void check_filters(const NameReader& names, const Architecture& a) {
  const SoundFrontEnd& f = a.sound.front_end;
  const auto expect = [&](const char* name, size_t axis, size_t expected) {
    if (const size_t found = names.dimension(name, axis); found != expected)
      fail(fmt::format("a front end with {} on axis {}, expected {}", found, axis, expected),
           tensor_place(names.checkpoint().path(), names.full(name)),
           "its MFCC would be others than those computed here");
  };
  if (names.has("frontend.window")) expect("frontend.window", 0, f.window);
  expect("frontend.mel", 0, f.mels);
  if (a.input_h > f.mels)
    fail(fmt::format("{} coefficients of {} filters", a.input_h, f.mels), names.checkpoint().path(),
         "the file is of another architecture");
}

// Its published weights have their norms after the layers and heads of 64.
void read_kwt(const NameReader& names, Architecture& a, RecipeWriter& w) {
  a.family = "kwt", a.dialect = "kwt", a.input = InputKind::filter_bank;
  a.width = names.dimension("patch_embed.proj.weight", 0);
  a.channels = 1;
  a.patch_h = a.stride_h = a.input_h = names.dimension("patch_embed.proj.weight", 1);
  a.patch_w = a.stride_w = 1;
  a.depth = names.count_blocks("blocks.", ".attn.qkv.weight");
  a.mlp_hidden = names.dimension("blocks.0.mlp.fc2.weight", 1);
  a.qkv_bias = names.has("blocks.0.attn.qkv.bias");
  set_heads(names, a);
  a.post_norm = true, a.final_norm = false;
  const size_t rows = names.count("pos_embed") / a.width;
  a.stored_grid_h = 1, a.stored_grid_w = a.input_w = rows > 1 ? rows - 1 : 0;
  a.position_resize = PositionResize::cut;
  set_front_end(a, kwt_front_end(), "as of all KWTs", false);
  check_filters(names, a);
  settle_facts(names, a);

  w.embedding("patch_embed.proj", "cls_token", "pos_embed");
  for (size_t i = 0; i < a.depth; ++i) {
    const std::string b = fmt::format("blocks.{}.", i);
    for (const char* part : {"norm1", "attn.qkv", "attn.proj", "norm2", "mlp.fc1", "mlp.fc2"})
      w.affine(b + part, b + part);
  }
}

}  // namespace

const Dialect kWhisperNames{
    "Whisper",
    {"layers.0.self_attn.q_proj.weight", "conv1.weight", "conv2.weight", "embed_positions.weight"},
    read_whisper,
    "",
    /*text=*/true};

const Dialect kKwtNames{
    "KWT",
    {"frontend.mel", "patch_embed.proj.weight", "blocks.0.attn.qkv.weight", "pos_embed"},
    read_kwt,
    "",
    /*text=*/true};

}  // namespace fungi
