// SPDX-License-Identifier: Apache-2.0
// Weights in: which of them are read and packed, and for which the transpose is needed, too.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fungi/backbone/dinov3_names.h"
#include "fungi/backbone/encode.h"
#include "fungi/backbone/position.h"
#include "fungi/backbone/recipes.h"
#include "fungi/backbone/word_head.h"

namespace fungi {
namespace {

// Whose weights a block has, and of which layers the gradient needs the transpose.
struct Packing {
  size_t stored = 0;
  bool last = false;  // of all: in int8 what comes after its keys and values stays in bf16
  bool pruned = false, qkv = false, proj = false, fc1 = false, fc2 = false;
  bool operator==(const Packing&) const = default;
};

// The tables of int8 differ: products of the blocks, and all else.
struct Kernels {
  const kernel::Kernel &all, &products;
};

// A gradient passes through everything that comes after the wanted layer.
Packing packing(const Architecture& a, size_t index, const std::optional<LayerId>& layer,
                bool prune) {
  const bool here = layer && layer->block == index, below = layer && layer->block < index;
  using Part = LayerId::Part;
  const bool last = index + 1 == a.depth;
  Packing p{a.stored_block(index), last, prune && last, below};
  p.proj = below || (here && layer->part == Part::qkv);
  p.fc1 = p.proj || (here && layer->part == Part::proj);
  p.fc2 = p.fc1 || (here && layer->part == Part::fc1);
  return p;
}

// How large the outputs of a norm are, column by column: its unit numbers have a mean square of 1.
std::vector<float> extents(const Norm& norm) {
  std::vector<float> out(norm.weight.size());
  for (size_t j = 0; j < out.size(); ++j)
    out[j] = std::hypot(norm.weight[j], norm.bias.empty() ? 0.0f : norm.bias[j]);
  return out;
}

// Those of the norm that a block's qkv reads; none where there is none.
std::vector<float> qkv_inputs(const Architecture& a, const Tensors& tensors, const Block& block,
                              size_t stored) {
  if (!a.post_norm) return extents(block.norm1);
  if (stored > 0) return extents(load_norm(tensors, fmt::format("blocks.{}.norm2", stored - 1)));
  return extents(load_norm(tensors, "norm_pre"));
}

Block load_block(const Architecture& a, const Kernels& kernels, const Tensors& tensors,
                 const Packing& needed) {
  const kernel::Kernel &k = kernels.all, &behind = needed.last ? kernels.all : kernels.products;
  const auto transposed = [&](bool wanted) { return wanted ? &k : nullptr; };
  const std::string p = fmt::format("blocks.{}.", needed.stored);
  Block b;
  b.pruned = needed.pruned;
  b.norm1 = load_norm(tensors, p + "norm1");
  b.norm2 = load_norm(tensors, p + "norm2");
  b.attention_norm = load_norm(tensors, p + "attn.norm");
  b.mlp_norm = load_norm(tensors, p + "mlp.norm");
  b.scale1 = tensors.vector(p + "ls1");
  b.scale2 = tensors.vector(p + "ls2");
  std::vector<float> attended, mixed;
  if (kernels.products.pack_smoothed) {
    attended = qkv_inputs(a, tensors, b, needed.stored);
    mixed = extents(a.post_norm ? b.norm1 : b.norm2);
  }
  const LinearTables qkv{kernels.products, transposed(needed.qkv), attended};
  if (b.pruned) {
    const Matrix<float> weight = tensors.matrix(p + "attn.qkv.weight");
    const std::vector<float> bias = tensors.vector(p + "attn.qkv.bias");
    const size_t inner = weight.rows() / 3;
    b.q = slice_linear({k, qkv.backward}, weight, bias, 0, inner);
    b.kv = slice_linear(qkv, weight, bias, inner, 2 * inner);
  } else {
    b.qkv = load_linear(qkv, tensors, p + "attn.qkv");
  }
  b.proj = load_linear({behind, transposed(needed.proj)}, tensors, p + "attn.proj");
  b.fc1 = load_linear({behind, transposed(needed.fc1), mixed}, tensors, p + "mlp.fc1");
  b.fc2 = load_linear({behind, transposed(needed.fc2)}, tensors, p + "mlp.fc2");
  return b;
}

// The parts of loading that files and random weights share.
template <class Weights>
void load(Weights& w, const TensorSource& source, Pool& pool) {
  const Architecture& a = w.arch;
  const Tensors tensors(a, source);
  if (!w.options.precision) w.options.precision = kernel::fastest_precision(w.options.isa);
  const kernel::Kernel& products = kernel::kernel_for(w.options.isa, *w.options.precision);
  const bool bytes = products.precision == Precision::int8;
  w.products = &products;
  w.kernel = bytes ? &kernel::kernel_for(w.options.isa, Precision::bf16) : &products;
  if (!w.options.layers.empty())
    w.layers = parse_layers(w.options.layers, a.depth);
  else if (w.options.layer != "none")
    w.layers = {LayerId::parse(w.options.layer, a.depth)};
  if (!w.layers.empty()) w.layer = w.layers.front();
  w.options.mha_input_as_activation &=
      a.dialect == "torchvision" &&
      std::any_of(w.layers.begin(), w.layers.end(),
                  [](const LayerId& layer) { return layer.part == LayerId::Part::proj; });
  const bool prune =
      (a.pooled_tokens() > 0 || a.pooling == Pooling::mean_sound) && !w.options.tokens;
  std::vector<Packing> packed;  // each once
  for (size_t i = 0; i < a.depth; ++i) {
    const Packing needed = packing(a, i, w.layer, prune);
    const auto same = std::find(packed.begin(), packed.end(), needed);
    w.packed_of.push_back(size_t(same - packed.begin()));
    if (same == packed.end()) packed.push_back(needed);
  }
  w.packed.resize(packed.size());
  pool.parallel_for(packed.size() + 1, 1, [&](size_t i, size_t, unsigned) {
    if (i == packed.size())
      w.embedding = load_embedding(*w.products, tensors, a);
    else
      w.packed[i] = load_block(a, {*w.kernel, *w.products}, tensors, packed[i]);
  });
  w.final_norm = load_norm(tensors, "norm");
  const LinearTables rest{*w.kernel, w.layer ? w.kernel : nullptr};
  if (a.head) w.head = load_linear(rest, tensors, "head");
  if (a.pooling == Pooling::attention) w.pool = load_attention_pool(rest, tensors, a);
  w.relative_table = tensors.matrix("relative_bias");
  if (a.rotary && a.input == InputKind::token_ids) {
    const auto table = [&](float theta) {
      return cosines_and_sines(word_angles(a.tokens(), a.head_dim, theta));
    };
    w.rotary = table(a.rotary_theta);
    if (a.local_distance) w.local_rotary = table(a.local_rotary_theta);
  } else if (a.rotary) {
    w.rotary = cosines_and_sines(rotary_angles(a));
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

// DEVIATION: see BackboneOptions. Complaints are left to the reading that follows.
bool takes_first_token(const Checkpoint& checkpoint, const BackboneOptions& options) {
  if (!options.text_by_first_token || options.stated_facts.contains("pooling")) return false;
  StatedFacts facts = options.stated_facts;
  facts["pooling"] = "first";
  try {
    return read_names(checkpoint, facts).architecture.input == InputKind::token_ids;
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
  options.text_by_first_token = takes_first_token(checkpoint, options);
  if (options.text_by_first_token) options.stated_facts["pooling"] = "first";
  Reading reading = read_names(checkpoint, options.stated_facts);
  check_periods(checkpoint, reading);
  const auto weights = std::make_shared<Weights>();
  Weights& w = *weights;
  w.arch = reading.architecture;
  w.options = options;
  w.path = path;
  w.stamp = checkpoint.stamp();
  if (checkpoint.in_memory()) w.sha256 = checkpoint.sha256();  // later they may be gone
  w.notes = std::move(reading.notes);
  if (options.word_head)
    w.word_head =
        load_word_head(checkpoint, reading, kernel::kernel_for(options.isa, Precision::f32));
  load(w, CheckpointTensors(checkpoint, std::move(reading.recipes)), pool);
  return Backbone(weights);
}

Backbone Backbone::assemble(const Architecture& architecture, const TensorSource& tensors,
                            const BackboneOptions& options, Pool& pool) {
  const auto weights = std::make_shared<Weights>();
  Weights& w = *weights;
  w.arch = architecture;
  w.options = options;
  w.options.clip_with_gelu = false;  // the architecture is the caller's word, and the next
  w.options.text_by_first_token = false;
  load(w, tensors, pool);
  return Backbone(weights);
}

}  // namespace fungi
