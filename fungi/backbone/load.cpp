// SPDX-License-Identifier: Apache-2.0
// Weights in: which of them are read and packed, and for which the transpose is needed, too.
#include <fmt/format.h>

#include <cmath>

#include "fungi/backbone/encode.h"
#include "fungi/backbone/position.h"
#include "fungi/backbone/recipes.h"

namespace fungi {
namespace {

Block load_block(const kernel::Kernel& k, const Tensors& tensors, size_t index,
                 const std::optional<LayerId>& layer, bool pruned) {
  const std::string p = fmt::format("blocks.{}.", index);
  // A gradient passes through everything that comes after the wanted layer.
  const bool here = layer && layer->block == index, below = layer && layer->block < index;
  using Part = LayerId::Part;
  const bool through_fc2 = below || (here && layer->part != Part::fc2);
  const bool through_fc1 =
      below || (here && (layer->part == Part::proj || layer->part == Part::qkv));
  const bool through_proj = below || (here && layer->part == Part::qkv);
  Block b;
  b.pruned = pruned;
  b.norm1 = load_norm(tensors, p + "norm1");
  b.norm2 = load_norm(tensors, p + "norm2");
  b.attention_norm = load_norm(tensors, p + "attn.norm");
  b.mlp_norm = load_norm(tensors, p + "mlp.norm");
  b.scale1 = tensors.vector(p + "ls1");
  b.scale2 = tensors.vector(p + "ls2");
  if (pruned) {
    const Matrix<float> weight = tensors.matrix(p + "attn.qkv.weight");
    const std::vector<float> bias = tensors.vector(p + "attn.qkv.bias");
    const size_t inner = weight.rows() / 3;
    b.q = slice_linear(k, weight, bias, 0, inner, below);
    b.kv = slice_linear(k, weight, bias, inner, 2 * inner, below);
  } else {
    b.qkv = load_linear(k, tensors, p + "attn.qkv", below);
  }
  b.proj = load_linear(k, tensors, p + "attn.proj", through_proj);
  b.fc1 = load_linear(k, tensors, p + "mlp.fc1", through_fc1);
  b.fc2 = load_linear(k, tensors, p + "mlp.fc2", through_fc2);
  return b;
}

// The parts of loading that files and random weights share.
template <class Weights>
void load(Weights& w, const TensorSource& source, Pool& pool) {
  const Architecture& a = w.arch;
  const Tensors tensors(a, source);
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
      w.blocks[i] = load_block(*w.kernel, tensors, i, w.layer, prune && i + 1 == a.depth);
  });
  w.final_norm = load_norm(tensors, "norm");
  if (a.head) w.head = load_linear(*w.kernel, tensors, "head", w.layer.has_value());
  w.relative_table = tensors.matrix("relative_bias");
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

Backbone Backbone::open(const std::filesystem::path& path, const BackboneOptions& options,
                        Pool& pool) {
  return open(Checkpoint::open(path), path, options, pool);
}

Backbone Backbone::open(const Checkpoint& checkpoint, const BackboneOptions& options, Pool& pool) {
  return open(checkpoint, std::filesystem::path(checkpoint.in_memory() ? "" : checkpoint.path()),
              options, pool);
}

Backbone Backbone::open(const Checkpoint& checkpoint, const std::filesystem::path& path,
                        const BackboneOptions& options_given, Pool& pool) {
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
  if (checkpoint.in_memory()) w.sha256 = checkpoint.sha256();  // later they may be gone
  w.notes = std::move(reading.notes);
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
