// SPDX-License-Identifier: Apache-2.0
// Weights in: which of them are read and packed, and for which the transpose is needed, too.
#include <fmt/format.h>

#include <cmath>

#include "fungi/backbone/encode.h"
#include "fungi/backbone/position.h"

namespace fungi {
namespace {

Norm load_norm(const TensorSource& tensors, const Architecture& a, const std::string& name,
               size_t size) {
  Norm norm;
  norm.weight = load_vector(tensors, name + ".weight", size);
  if (!a.rms_norm) norm.bias = load_vector(tensors, name + ".bias", size);
  return norm;
}

Block load_block(const kernel::Kernel& k, const TensorSource& tensors, const Architecture& a,
                 size_t index, const std::optional<LayerId>& layer, bool pruned) {
  const std::string p = fmt::format("blocks.{}.", index);
  const size_t d = a.width, inner = a.attention_width(), fc1 = a.mlp_hidden * (a.gated_mlp ? 2 : 1);
  // A gradient passes through everything that comes after the wanted layer.
  const bool here = layer && layer->block == index, below = layer && layer->block < index;
  using Part = LayerId::Part;
  const bool through_fc2 = below || (here && layer->part != Part::fc2);
  const bool through_fc1 =
      below || (here && (layer->part == Part::proj || layer->part == Part::qkv));
  const bool through_proj = below || (here && layer->part == Part::qkv);
  Block b;
  b.pruned = pruned;
  b.norm1 = load_norm(tensors, a, p + "norm1", d);
  b.norm2 = load_norm(tensors, a, p + "norm2", d);
  if (a.attention_norm) b.attention_norm = load_norm(tensors, a, p + "attn.norm", inner);
  if (a.mlp_norm) b.mlp_norm = load_norm(tensors, a, p + "mlp.norm", a.mlp_hidden);
  if (a.layer_scale) {
    b.scale1 = load_vector(tensors, p + "ls1", d);
    b.scale2 = load_vector(tensors, p + "ls2", d);
  }
  if (pruned) {
    const Matrix<float> weight = tensors.get(p + "attn.qkv.weight", 3 * inner, d);
    std::vector<float> bias;
    if (a.qkv_bias) bias = load_vector(tensors, p + "attn.qkv.bias", 3 * inner);
    b.q = slice_linear(k, weight, bias, 0, inner, below);
    b.kv = slice_linear(k, weight, bias, inner, 2 * inner, below);
  } else {
    b.qkv = load_linear(k, tensors, {p + "attn.qkv", 3 * inner, d, a.qkv_bias, below});
  }
  b.proj = load_linear(k, tensors, {p + "attn.proj", d, inner, a.linear_bias, through_proj});
  b.fc1 = load_linear(k, tensors, {p + "mlp.fc1", fc1, d, a.linear_bias, through_fc1});
  b.fc2 = load_linear(k, tensors, {p + "mlp.fc2", d, a.mlp_hidden, a.linear_bias, through_fc2});
  return b;
}

// The parts of loading that files and random weights share.
template <class Weights>
void load(Weights& w, const TensorSource& tensors, Pool& pool) {
  Architecture& a = w.arch;
  if (!w.options.precision) w.options.precision = kernel::fastest_precision(w.options.isa);
  w.kernel = &kernel::kernel_for(w.options.isa, *w.options.precision);
  if (w.options.layer != "none") w.layer = LayerId::parse(w.options.layer, a.depth);
  w.options.mha_input_as_activation &=
      a.dialect == "torchvision" && w.layer && w.layer->part == LayerId::Part::proj;
  const bool prune = a.pooled_tokens() > 0 && !w.options.tokens;
  w.blocks.resize(a.depth);
  pool.parallel_for(a.depth + 1, 1, [&](size_t i, size_t, unsigned) {
    if (i == a.depth)
      w.embedding = load_embedding(*w.kernel, tensors, a);
    else
      w.blocks[i] = load_block(*w.kernel, tensors, a, i, w.layer, prune && i + 1 == a.depth);
  });
  if (a.final_norm) w.final_norm = load_norm(tensors, a, "norm", a.width);
  if (a.head)
    w.head = load_linear(*w.kernel, tensors,
                         {"head", a.embedding_width, a.width, a.head_bias, w.layer.has_value()});
  if (a.relative_buckets)
    w.relative_table = tensors.get("relative_bias", a.relative_buckets, a.heads);
  if (a.rotary) {
    const Matrix<float> angles = rotary_angles(a.grid_h(), a.grid_w(), a.head_dim, a.rotary_grid);
    w.rotary = Matrix<float>(angles.rows(), 2 * a.head_dim);
    for (size_t i = 0; i < angles.rows(); ++i)
      for (size_t j = 0; j < a.head_dim; ++j)
        w.rotary(i, j) = std::cos(angles(i, j)),
                    w.rotary(i, a.head_dim + j) = std::sin(angles(i, j));
  }
}

// DEVIATION: see BackboneOptions. With GELU stated a tower need not tell its activation, so this
// comes before the reading that may have to refuse it, and leaves complaints to that one.
bool takes_papers_gelu(const Checkpoint& checkpoint, const BackboneOptions& options) {
  if (!options.clip_with_gelu || options.stated_facts.contains("activation")) return false;
  StatedFacts facts = options.stated_facts;
  facts["activation"] = "gelu";
  try {
    return read_names(checkpoint, facts).architecture.family == "clip";
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

Backbone Backbone::open(const std::filesystem::path& path, const BackboneOptions& options_given,
                        Pool& pool) {
  const Checkpoint checkpoint = Checkpoint::open(path);
  BackboneOptions options = options_given;
  options.clip_with_gelu = takes_papers_gelu(checkpoint, options);
  if (options.clip_with_gelu) options.stated_facts["activation"] = "gelu";
  Reading reading = read_names(checkpoint, options.stated_facts);
  const auto weights = std::make_shared<Weights>();
  Weights& w = *weights;
  w.arch = reading.architecture;
  w.options = options;
  w.path = path;
  w.stamp = checkpoint.stamp();
  load(w, CheckpointTensors(checkpoint, std::move(reading.recipes)), pool);
  return Backbone(weights);
}

Backbone Backbone::assemble(const Architecture& architecture, const TensorSource& tensors,
                            const BackboneOptions& options, Pool& pool) {
  const auto weights = std::make_shared<Weights>();
  Weights& w = *weights;
  w.arch = architecture;
  w.options = options;
  w.options.clip_with_gelu = false;  // the architecture is the caller's word
  load(w, tensors, pool);
  return Backbone(weights);
}

}  // namespace fungi
