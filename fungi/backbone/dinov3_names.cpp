// SPDX-License-Identifier: Apache-2.0
// DINOv3 in Hugging Face's names and in its authors': no table of positions but rotary ones,
// registers, in the larger ones a gated MLP; keys without a bias.
#include <fmt/format.h>

#include <cmath>

#include "fungi/backbone/dinov3_names.h"
#include "fungi/backbone/names.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

// What both have in common, but for what stands in config.json.
void read_patches(const NameReader& names, Architecture& a, const std::string& patch) {
  a.width = names.dimension(patch + ".weight", 0);
  a.channels = names.dimension(patch + ".weight", 1);
  a.patch_h = a.stride_h = names.dimension(patch + ".weight", 2);
  a.patch_w = a.stride_w = names.dimension(patch + ".weight", 3);
  a.layer_scale = true;
  a.position_table = a.position_on_prefix = false;
  a.rotary = a.rotary_centred = true;
}

void settle(const NameReader& names, Architecture& a) {
  a.prefix_tokens = 1 + a.registers;
  set_input(names, a, 224);
  // DEVIATION: its processor resizes floats, which are never rounded to bytes.
  a.preprocess.transform.resize_size = a.input_h;
  a.preprocess.transform.set_squash(true), a.preprocess.transform.set_bilinear(true);
  a.preprocess.source = "DINOv3's processor, as it is without a file of its own";
  settle_facts(names, a);
}

void read_dinov3(const NameReader& names, Architecture& a, RecipeWriter& w) {
  require_model_type(names, {"dinov3_vit"});
  const std::string patch = "embeddings.patch_embeddings", first = "layer.0.";
  a.family = "dinov3", a.dialect = "huggingface";
  read_patches(names, a, patch);
  a.depth = names.count_blocks("layer.", ".attention.q_proj.weight");
  const bool configured = names.config_text("/model_type").has_value();
  set_heads(names, a, configured ? 6 : a.width / (a.width == 4096 ? 128 : 64));
  a.heads_assumed = !configured && !names.stated("heads");
  a.norm_epsilon = float(names.config_number("/layer_norm_eps").value_or(1e-5));
  a.mlp_hidden = names.dimension(first + "mlp.down_proj.weight", 1);
  a.gated_mlp = names.has_affine(first + "mlp.gate_proj");
  a.activation = names.config_activation("/hidden_act")
                     .value_or(a.gated_mlp && !configured ? kernel::Activation::silu
                                                          : kernel::Activation::gelu);
  a.qkv_bias = names.has(first + "attention.q_proj.bias") ||
               names.has(first + "attention.k_proj.bias") ||
               names.has(first + "attention.v_proj.bias");
  a.rotary_theta = float(names.config_number("/rope_theta").value_or(100));
  a.mask_token = names.has("embeddings.mask_token");
  const std::string registers = "embeddings.register_tokens";
  const double said = names.config_number("/num_register_tokens").value_or(0);  // perhaps 0
  a.registers = names.has(registers) ? names.count(registers) / a.width : 0;
  if (a.registers == 0 && (said != 0 || !configured))
    refuse_missing(names, names.full(registers));
  if (configured && double(a.registers) != said)
    fail(fmt::format("config.json says {} registers, the tensors say {}", said, a.registers),
         names.checkpoint().path(), "the file is incomplete, or config.json is another model's");
  settle(names, a);

  w.affine("patch_embed", patch);
  w.tensor("prefix", "embeddings.cls_token");
  if (a.registers) w.tensor("registers", registers);
  if (a.mask_token) w.tensor("mask_token", "embeddings.mask_token");
  for (size_t i = 0; i < a.depth; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), f = fmt::format("layer.{}.", i),
                      q = f + "attention.";
    w.affine(b + "norm1", f + "norm1");
    w.affine(b + "norm2", f + "norm2");
    w.stacked(b + "attn.qkv", {q + "q_proj", q + "k_proj", q + "v_proj"}, a.qkv_bias, q + "k_proj");
    w.affine(b + "attn.proj", q + "o_proj");
    if (a.gated_mlp)
      w.stacked(b + "mlp.fc1", {f + "mlp.gate_proj", f + "mlp.up_proj"}, true);
    else
      w.affine(b + "mlp.fc1", f + "mlp.up_proj");
    w.affine(b + "mlp.fc2", f + "mlp.down_proj");
    w.tensor(b + "ls1", f + "layer_scale1.lambda1");
    w.tensor(b + "ls2", f + "layer_scale2.lambda1");
  }
  w.affine("norm", "norm");
}

constexpr const char* kPeriods = "rope_embed.periods";

// Their number tells the heads. Theta is that of the published models, see check_periods().
void read_periods(const NameReader& names, Architecture& a) {
  const size_t count = names.count(kPeriods);
  if (a.width % (4 * count) != 0)
    fail(fmt::format("{} periods do not go into a width of {}", count, a.width),
         tensor_place(names.checkpoint().path(), names.full(kPeriods)),
         "the file is damaged or of another architecture");
  set_heads(names, a, a.width / (4 * count));
  a.rotary_theta = 100;
}

void read_authors(const NameReader& names, Architecture& a, RecipeWriter& w) {
  a.family = "dinov3", a.dialect = "dinov3";
  read_patches(names, a, "patch_embed.proj");
  a.depth = names.count_blocks("blocks.", ".attn.qkv.weight");
  read_periods(names, a);
  a.norm_epsilon = 1e-5f;
  a.gated_mlp = names.has_affine("blocks.0.mlp.w1");
  const std::string down = a.gated_mlp ? "mlp.w3" : "mlp.fc2";
  a.mlp_hidden = names.dimension("blocks.0." + down + ".weight", 1);
  a.activation = a.gated_mlp ? kernel::Activation::silu : kernel::Activation::gelu;
  a.qkv_bias = names.has("blocks.0.attn.qkv.bias");
  a.registers = names.count("storage_tokens") / a.width;
  a.mask_token = names.has("mask_token");
  settle(names, a);

  w.affine("patch_embed", "patch_embed.proj");
  w.tensor("prefix", "cls_token");
  w.tensor("registers", "storage_tokens");
  if (a.mask_token) w.tensor("mask_token", "mask_token");
  for (size_t i = 0; i < a.depth; ++i) {
    const std::string b = fmt::format("blocks.{}.", i);
    for (const char* same : {"norm1", "norm2", "attn.qkv", "attn.proj"})
      w.affine(b + same, b + same);
    // Biases of keys are stored, and multiplied by zeros.
    const std::string mask = b + "attn.qkv.bias_mask";
    if (a.qkv_bias && names.has(mask)) w.recipes[b + "attn.qkv.bias"].times = names.full(mask);
    if (a.gated_mlp)
      w.stacked(b + "mlp.fc1", {b + "mlp.w1", b + "mlp.w2"}, true);
    else
      w.affine(b + "mlp.fc1", b + "mlp.fc1");
    w.affine(b + "mlp.fc2", b + down);
    w.tensor(b + "ls1", b + "ls1.gamma");
    w.tensor(b + "ls2", b + "ls2.gamma");
  }
  w.affine("norm", "norm");
}

}  // namespace

void check_periods(const Checkpoint& checkpoint, const Reading& reading) {
  const Architecture& a = reading.architecture;
  if (a.family != "dinov3" || a.dialect != "dinov3") return;
  const std::string name = reading.prefix + kPeriods;
  const Matrix<float> periods = checkpoint.read(name);
  const size_t count = periods.rows() * periods.cols();
  for (size_t i = 0; i < count; ++i) {
    const double expected = std::pow(double(a.rotary_theta), double(i) / double(count));
    if (!(std::abs(periods.data()[i] - expected) < 0.01 * expected))
      fail(fmt::format("expected the period {:.4g} of theta {}, found {:.4g}", expected,
                       a.rotary_theta, periods.data()[i]),
           tensor_place(checkpoint.path(), name),
           "other rotary positions than those of the published DINOv3 are not known here");
  }
}

const Dialect kDinov3AuthorsNames{"DINOv3's authors'",
                                  {"storage_tokens", "blocks.0.attn.qkv.weight",
                                   "patch_embed.proj.weight", "rope_embed.periods"},
                                  read_authors};
const Dialect kDinov3PeriodsNames{"DINOv3's authors'",
                                  {"rope_embed.periods", "blocks.0.attn.qkv.weight",
                                   "patch_embed.proj.weight", "storage_tokens"},
                                  read_authors};

const Dialect kDinov3Names{"Hugging Face's DINOv3",
                           {"layer.0.attention.q_proj.weight", "embeddings.cls_token",
                            "embeddings.patch_embeddings.weight", "layer.0.norm1.weight"},
                           read_dinov3};

}  // namespace fungi
