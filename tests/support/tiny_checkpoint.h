// SPDX-License-Identifier: Apache-2.0
// Checkpoints made in a test: names and shapes with random values in a .safetensors file, and a
// config.json beside it; and what the backbone room makes of them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "fungi/backbone/backbone.h"
#include "fungi/base/error.h"
#include "fungi/base/random.h"
#include "fungi/checkpoint/checkpoint.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"

namespace fungi::test {

struct TinyCheckpoint {
  std::map<std::string, std::vector<size_t>> shapes;
  std::map<std::string, std::vector<float>> values;  // of those that are not random
  // Files beside it (preprocessor_config.json, processor_config.json, open_clip_config.json); null:
  // there is no such file.
  nlohmann::json config, image_processor, processor, open_clip;

  static size_t count(const std::vector<size_t>& shape) {
    size_t n = 1;
    for (size_t side : shape) n *= side;
    return n;
  }

  std::vector<float> floats(const std::string& name) const {
    if (const auto own = values.find(name); own != values.end()) return own->second;
    std::vector<float> x(count(shapes.at(name)));
    const RandomStream random(11, name);
    for (size_t i = 0; i < x.size(); ++i) x[i] = float(random.normal(i)) * 0.5f;
    return x;
  }

  // Into an empty folder; gives the folder, as a user would.
  std::filesystem::path write(const TemporaryFolder& folder) const {
    nlohmann::json header = nlohmann::json::object();
    std::string bytes;
    for (const auto& [name, shape] : shapes) {
      const std::vector<float> x = floats(name);
      const size_t first = bytes.size();
      bytes.append(reinterpret_cast<const char*>(x.data()), 4 * x.size());
      header[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {first, bytes.size()}}};
    }
    const std::string text = header.dump();
    const uint64_t size = text.size();
    std::string file(8, '\0');
    std::memcpy(file.data(), &size, 8);
    std::ofstream(folder / "model.safetensors", std::ios::binary) << file << text << bytes;
    for (const auto& [name, content] : {std::pair("config.json", &config),
                                        {"preprocessor_config.json", &image_processor},
                                        {"processor_config.json", &processor},
                                        {"open_clip_config.json", &open_clip}})
      if (!content->is_null()) std::ofstream(folder / name) << *content;
    return folder.path();
  }

  Architecture read(const StatedFacts& facts = {}) const {
    const TemporaryFolder folder;
    return read_architecture(Checkpoint::open(write(folder)), facts);
  }

  // What is said when it is refused; empty when it is not.
  std::string refusal(const StatedFacts& facts = {}) const {
    return error_of([&] { read(facts); });
  }
};

// The names and shapes of a file, under a prefix, and its config.json.
inline TinyCheckpoint shaped_like(const std::filesystem::path& file,
                                  const std::string& prefix = "") {
  const Checkpoint checkpoint = Checkpoint::open(file);
  TinyCheckpoint c;
  for (const TensorInfo& t : checkpoint.tensors()) c.shapes[prefix + t.name] = t.shape;
  if (const std::string text = checkpoint.beside("config.json"); !text.empty())
    c.config = nlohmann::json::parse(text);
  return c;
}

// With heads of its own, so that the width may be small.
inline TinyCheckpoint tiny_bert(const std::string& prefix = "", size_t types = 2) {
  TinyCheckpoint c;
  const size_t d = 8, hidden = 16;
  auto add = [&](const std::string& name, std::vector<size_t> shape) {
    c.shapes[prefix + name] = std::move(shape);
  };
  auto affine = [&](const std::string& name, size_t out, size_t in) {
    add(name + ".weight", {out, in}), add(name + ".bias", {out});
  };
  auto norm = [&](const std::string& name) {
    add(name + ".weight", {d}), add(name + ".bias", {d});
  };
  add("embeddings.word_embeddings.weight", {12, d});
  add("embeddings.position_embeddings.weight", {10, d});
  add("embeddings.token_type_embeddings.weight", {types, d});
  norm("embeddings.LayerNorm");
  for (const char* part : {"query", "key", "value"})
    affine(std::string("encoder.layer.0.attention.self.") + part, d, d);
  affine("encoder.layer.0.attention.output.dense", d, d);
  norm("encoder.layer.0.attention.output.LayerNorm");
  affine("encoder.layer.0.intermediate.dense", hidden, d);
  affine("encoder.layer.0.output.dense", d, hidden);
  norm("encoder.layer.0.output.LayerNorm");
  return c;
}

inline TinyCheckpoint tiny_t5(bool gated = false, size_t buckets = 8) {
  TinyCheckpoint c;
  const size_t d = 8, inner = 8, heads = 2, hidden = 16;
  c.shapes["shared.weight"] = {12, d};
  c.shapes["encoder.final_layer_norm.weight"] = {d};
  for (const char* block : {"encoder.block.0.", "encoder.block.1."}) {
    const std::string attention = std::string(block) + "layer.0.SelfAttention.",
                      mlp = std::string(block) + "layer.1.DenseReluDense.";
    for (const char* part : {"q", "k", "v"}) c.shapes[attention + part + ".weight"] = {inner, d};
    c.shapes[attention + "o.weight"] = {d, inner};
    c.shapes[std::string(block) + "layer.0.layer_norm.weight"] = {d};
    c.shapes[std::string(block) + "layer.1.layer_norm.weight"] = {d};
    if (gated)
      c.shapes[mlp + "wi_0.weight"] = c.shapes[mlp + "wi_1.weight"] = {hidden, d};
    else
      c.shapes[mlp + "wi.weight"] = {hidden, d};
    c.shapes[mlp + "wo.weight"] = {d, hidden};
  }
  c.shapes["encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"] = {buckets,
                                                                                      heads};
  return c;
}

// Hugging Face's names; one block of width d and patches of 4x4.
inline TinyCheckpoint tiny_vit(size_t channels, bool distilled, size_t patch_positions,
                               size_t d = 8) {
  TinyCheckpoint c;
  const size_t hidden = 16;
  auto affine = [&](const std::string& name, size_t out, size_t in) {
    c.shapes[name + ".weight"] = {out, in}, c.shapes[name + ".bias"] = {out};
  };
  auto norm = [&](const std::string& name) {
    c.shapes[name + ".weight"] = c.shapes[name + ".bias"] = {d};
  };
  c.shapes["embeddings.cls_token"] = {1, 1, d};
  if (distilled) c.shapes["embeddings.distillation_token"] = {1, 1, d};
  c.shapes["embeddings.position_embeddings"] = {1, (distilled ? 2 : 1) + patch_positions, d};
  c.shapes["embeddings.patch_embeddings.projection.weight"] = {d, channels, 4, 4};
  c.shapes["embeddings.patch_embeddings.projection.bias"] = {d};
  const std::string block = "encoder.layer.0.";
  for (const char* part : {"query", "key", "value"})
    affine(block + "attention.attention." + part, d, d);
  affine(block + "attention.output.dense", d, d);
  affine(block + "intermediate.dense", hidden, d);
  affine(block + "output.dense", d, hidden);
  norm(block + "layernorm_before"), norm(block + "layernorm_after"), norm("layernorm");
  return c;
}

// The same with DINOv2's names for norms and MLP, and its layer scale.
inline TinyCheckpoint tiny_dinov2(size_t patch_positions) {
  TinyCheckpoint c = tiny_vit(3, false, patch_positions), out;
  for (const auto& [name, shape] : c.shapes) {
    std::string renamed = name;
    for (const auto& [from, to] : {std::pair("layernorm_before", "norm1"),
                                   {"layernorm_after", "norm2"},
                                   {"intermediate.dense", "mlp.fc1"},
                                   {"0.output.dense", "0.mlp.fc2"}})
      if (const size_t at = renamed.find(from); at != std::string::npos)
        renamed.replace(at, std::string(from).size(), to);
    out.shapes[renamed] = shape;
  }
  for (const char* scale : {"layer_scale1.lambda1", "layer_scale2.lambda1"})
    out.shapes[std::string("encoder.layer.0.") + scale] = {8};
  out.shapes["embeddings.mask_token"] = {1, 8};
  return out;
}

inline constexpr size_t kTimmWidth = 64, kTimmHidden = 128;

// timm's names: `positions` rows, two blocks.
inline TinyCheckpoint tiny_timm(size_t positions = 17, size_t patch = 4,
                                const std::string& prefix = "", size_t width = kTimmWidth) {
  TinyCheckpoint c;
  const auto add = [&](const std::string& name, std::vector<size_t> shape) {
    c.shapes[prefix + name] = std::move(shape);
  };
  const auto affine = [&](const std::string& name, std::vector<size_t> shape) {
    add(name + ".bias", {shape[0]});
    add(name + ".weight", std::move(shape));
  };
  add("cls_token", {1, 1, width});
  add("pos_embed", {1, positions, width});
  affine("patch_embed.proj", {width, 3, patch, patch});
  for (const std::string b : {"blocks.0.", "blocks.1."}) {
    affine(b + "norm1", {width});
    affine(b + "attn.qkv", {3 * width, width});
    affine(b + "attn.proj", {width, width});
    affine(b + "norm2", {width});
    affine(b + "mlp.fc1", {kTimmHidden, width});
    affine(b + "mlp.fc2", {width, kTimmHidden});
  }
  affine("norm", {width});
  return c;
}

// What timm writes beside it: the architecture's name, and in what this one differs.
inline nlohmann::json timm_config(const std::string& architecture) {
  return {{"architecture", architecture},
          {"model_args", {{"embed_dim", kTimmWidth}, {"num_heads", 1}}}};
}

// Hugging Face's CLIP tower: two blocks, 16 pixels in patches of 4x4.
inline TinyCheckpoint tiny_huggingface_clip(const std::string& v, size_t width) {
  TinyCheckpoint c;
  const auto affine = [&](const std::string& name, std::vector<size_t> shape) {
    c.shapes[v + name + ".bias"] = {shape[0]};
    c.shapes[v + name + ".weight"] = std::move(shape);
  };
  c.shapes[v + "embeddings.class_embedding"] = {width};
  c.shapes[v + "embeddings.patch_embedding.weight"] = {width, 3, 4, 4};
  c.shapes[v + "embeddings.position_embedding.weight"] = {17, width};
  affine("pre_layrnorm", {width});
  affine("post_layernorm", {width});
  for (const std::string f : {"encoder.layers.0.", "encoder.layers.1."}) {
    for (const char* part : {"q_proj", "k_proj", "v_proj", "out_proj"})
      affine(f + "self_attn." + part, {width, width});
    affine(f + "layer_norm1", {width});
    affine(f + "layer_norm2", {width});
    affine(f + "mlp.fc1", {kTimmHidden, width});
    affine(f + "mlp.fc2", {width, kTimmHidden});
  }
  return c;
}

// OpenAI's names, as open_clip has them: two blocks, 16 pixels in patches of 4x4.
inline TinyCheckpoint tiny_open_clip(size_t width = kTimmWidth) {
  TinyCheckpoint c;
  const std::string v = "visual.";
  const auto affine = [&](const std::string& name, std::vector<size_t> shape) {
    c.shapes[v + name + ".bias"] = {shape[0]};
    c.shapes[v + name + ".weight"] = std::move(shape);
  };
  c.shapes[v + "class_embedding"] = {width};
  c.shapes[v + "positional_embedding"] = {17, width};
  c.shapes[v + "conv1.weight"] = {width, 3, 4, 4};
  c.shapes[v + "proj"] = {width, 24};
  affine("ln_pre", {width});
  affine("ln_post", {width});
  for (const std::string f : {"transformer.resblocks.0.", "transformer.resblocks.1."}) {
    c.shapes[v + f + "attn.in_proj_weight"] = {3 * width, width};
    c.shapes[v + f + "attn.in_proj_bias"] = {3 * width};
    affine(f + "attn.out_proj", {width, width});
    affine(f + "ln_1", {width});
    affine(f + "ln_2", {width});
    affine(f + "mlp.c_fc", {kTimmHidden, width});
    affine(f + "mlp.c_proj", {width, kTimmHidden});
  }
  return c;
}

}  // namespace fungi::test
