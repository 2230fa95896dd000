// SPDX-License-Identifier: Apache-2.0
// CLIP image towers in OpenAI's names (which open_clip kept) and in Hugging Face's. The activation
// is a trap: OpenAI trained with QuickGELU, most open_clip weights with GELU, and the tensors look
// the same; so it is taken from config.json, from what OpenAI's own archives hold besides, or from
// the user, never guessed.
#include <fmt/format.h>

#include "fungi/backbone/names.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

void set_clip(const NameReader& names, Architecture& a, size_t positions) {
  a.family = "clip";
  a.norm_pre = true;
  a.norm_epsilon = 1e-5f;
  a.head = true;
  a.patch_h = a.patch_w = a.stride_h = a.stride_w;
  set_grid(names, a, positions - 1);
  a.preprocess.transform.mean = kClipMean, a.preprocess.transform.std = kClipDeviation;
  a.preprocess.transform.resize_size = a.input_h;
  a.preprocess.source = "CLIP";
  a.preprocess.assumed = false;
}

// OpenAI released TorchScript archives, in which what a model was made for stands in tensors.
// Others write TorchScript, too, and such tensors get into state dicts, but not both at once.
bool is_released_by_openai(const NameReader& names) {
  std::string above = names.full("");
  if (above.ends_with("visual.")) above.resize(above.size() - 7);
  for (const char* mark : {"input_resolution", "context_length", "vocab_size"})
    if (!names.checkpoint().find(above + mark)) return false;
  return names.checkpoint().format() == "torchscript";
}

void read_clip(const NameReader& names, Architecture& a, RecipeWriter& w) {
  a.dialect = "openai";
  a.width = names.dimension("conv1.weight", 0);
  a.channels = names.dimension("conv1.weight", 1);
  a.stride_h = a.stride_w = names.dimension("conv1.weight", 2);
  a.patch_bias = names.has("conv1.bias");
  a.depth = names.count_blocks("transformer.resblocks.", ".attn.in_proj_weight");
  a.mlp_hidden = names.dimension("transformer.resblocks.0.mlp.c_fc.weight", 0);
  a.layer_scale = names.has("transformer.resblocks.0.ls_1.gamma") ||
                  names.has("transformer.resblocks.0.ls_2.gamma");
  set_clip(names, a, names.dimension("positional_embedding", 0));
  const bool configured = read_open_clip_config(names, a);
  if (!configured || names.stated("heads")) set_heads(names, a);
  read_open_clip_transform(names, a);
  if (is_released_by_openai(names))  // whatever lies beside it
    a.activation = kernel::Activation::quick_gelu;
  else if (!configured && !names.stated("activation"))
    fail("a CLIP tower in OpenAI's names does not tell its activation", names.checkpoint().path(),
         "keep open_clip_config.json beside it, or state it: `stated_facts[activation]=quick_gelu` "
         "(OpenAI's "
         "weights, and open_clip's -quickgelu) or `stated_facts[activation]=gelu`");
  a.head = names.has("proj");
  check_projection(names, a, "proj");
  if (a.head) a.embedding_width = names.dimension("proj", 1);
  settle_facts(names, a);

  w.embedding("conv1", "class_embedding", "positional_embedding");
  w.affine("norm_pre", "ln_pre");
  for (size_t i = 0; i < a.depth; ++i) {
    const std::string b = fmt::format("blocks.{}.", i),
                      f = fmt::format("transformer.resblocks.{}.", i);
    w.affine(b + "norm1", f + "ln_1");
    w.affine(b + "norm2", f + "ln_2");
    w.tensor(b + "attn.qkv.weight", f + "attn.in_proj_weight");
    w.tensor(b + "attn.qkv.bias", f + "attn.in_proj_bias");
    w.affine(b + "attn.proj", f + "attn.out_proj");
    w.affine(b + "mlp.fc1", f + "mlp.c_fc");
    w.affine(b + "mlp.fc2", f + "mlp.c_proj");
    if (a.layer_scale) w.tensor(b + "ls1", f + "ls_1.gamma"), w.tensor(b + "ls2", f + "ls_2.gamma");
  }
  w.affine("norm", "ln_post");
  if (a.head) {
    w.tensor("head.weight", "proj");
    w.recipes["head.weight"].transposed = true;
  }
}

void read_huggingface_clip(const NameReader& names, Architecture& a, RecipeWriter& w) {
  const std::string v = names.tower();
  a.dialect = "huggingface";
  const std::string patch = v + "embeddings.patch_embedding";
  a.width = names.dimension(patch + ".weight", 0);
  a.channels = names.dimension(patch + ".weight", 1);
  a.stride_h = a.stride_w = names.dimension(patch + ".weight", 2);
  a.patch_bias = names.has(patch + ".bias");
  a.depth = names.count_blocks(v + "encoder.layers.", ".self_attn.q_proj.weight");
  // What has the value that CLIPVisionConfig gives it may be left out of config.json. Others have
  // other values of their own (Idefics, Kosmos-2): what they leave out is not guessed.
  auto type = names.config_text("/model_type");
  if (!type) type = names.config_whole_type();
  const bool defaults = !type || type->starts_with("clip") || type->starts_with("chinese_clip") ||
                        type->starts_with("metaclip_2") || type->starts_with("git");
  const auto require = [&](const char* key, const char* fact, const char* value) {
    if (!defaults && !names.config_has(key) && !names.stated(fact))
      fail(fmt::format("config.json leaves out {}{}, whose value in a {} is not known here",
                       names.config_root().empty() ? "" : names.config_root().substr(1) + "/",
                       key + 1, printable(*type)),
           names.checkpoint().path(),
           fmt::format("state it: `stated_facts[{}]={}`, or whatever it is", fact, value));
  };
  require("/num_attention_heads", "heads", "N");
  require("/hidden_act", "activation", "gelu");
  require("/layer_norm_eps", "norm_epsilon", "1e-5");
  set_heads(names, a, names.has_config() ? 12 : 0);
  a.mlp_hidden = names.dimension(v + "encoder.layers.0.mlp.fc1.weight", 0);
  set_clip(names, a, names.dimension(v + "embeddings.position_embedding.weight", 0));
  a.position_resize = PositionResize::bicubic;
  a.norm_epsilon = float(names.config_number("/layer_norm_eps").value_or(1e-5));
  if (const auto act = names.config_activation("/hidden_act"))
    a.activation = *act;
  else if (!names.has_config() && !names.stated("activation"))
    fail("a CLIP tower without config.json does not tell its activation", names.checkpoint().path(),
         "keep config.json beside it, or state `stated_facts[activation]=quick_gelu` or gelu");
  else
    a.activation = kernel::Activation::quick_gelu;
  a.head = names.has("visual_projection.weight");
  const auto kind = names.config_text("/architectures/0");
  if (!a.head && kind == "CLIPVisionModelWithProjection")
    refuse_missing(names, names.full("visual_projection.weight"));
  check_projection(names, a, "visual_projection.weight");
  if (a.head) a.embedding_width = names.dimension("visual_projection.weight", 0);
  settle_facts(names, a);

  w.embedding(patch, v + "embeddings.class_embedding", v + "embeddings.position_embedding.weight");
  w.affine("norm_pre", v + "pre_layrnorm");  // spelled so in the files
  for (size_t i = 0; i < a.depth; ++i)
    w.clip_block(fmt::format("blocks.{}.", i), fmt::format("{}encoder.layers.{}.", v, i));
  w.affine("norm", v + "post_layernorm");
  if (a.head) w.affine("head", "visual_projection");
}

}  // namespace

void check_projection(const NameReader& names, const Architecture& a, const std::string& file) {
  if (a.head) return;
  for (const TensorInfo& t : names.checkpoint().tensors())
    if (t.name.ends_with("text_projection") || t.name.ends_with("text_projection.weight"))
      refuse_missing(names, names.full(file));
}

const Dialect kClipNames{"OpenAI's CLIP",
                         {"transformer.resblocks.0.attn.in_proj_weight", "conv1.weight",
                          "class_embedding", "ln_pre.weight"},
                         read_clip};

const Dialect kHuggingfaceClipNames{
    "Hugging Face's CLIP",
    {"encoder.layers.0.self_attn.q_proj.weight", "embeddings.class_embedding",
     "embeddings.patch_embedding.weight", "pre_layrnorm.weight"},
    read_huggingface_clip,
    "vision_model."};  // a lone tower has none in transformers 5

}  // namespace fungi
