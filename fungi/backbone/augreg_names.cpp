// SPDX-License-Identifier: Apache-2.0
// The original AugReg checkpoints (.npz from JAX): kernels stored [in, ..., out], attention kernels
// per head.
#include <fmt/format.h>

#include "fungi/backbone/names.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

// Heads are an axis of their own here: in another order the same numbers are another matrix.
void check_heads(const NameReader& names, const Architecture& a, const std::string& tensor,
                 size_t axis) {
  if (const size_t found = names.dimension(tensor, axis); found != a.heads)
    fail(fmt::format("expected {} heads along axis {}, found {}", a.heads, axis, found),
         tensor_place(names.checkpoint().path(), names.full(tensor)),
         "the file is damaged or of another architecture");
}

void read_augreg(const NameReader& names, Architecture& a, RecipeWriter& w) {
  const std::string layer = "Transformer/encoderblock_",
                    attention = "/MultiHeadDotProductAttention_1/";
  a.dialect = "augreg";
  a.width = names.dimension("embedding/kernel", 3);
  a.channels = names.dimension("embedding/kernel", 2);
  a.patch_h = a.stride_h = names.dimension("embedding/kernel", 0);
  a.patch_w = a.stride_w = names.dimension("embedding/kernel", 1);
  a.depth = names.count_blocks(layer, attention + "query/kernel");
  a.heads = names.dimension(layer + "0" + attention + "query/kernel", 1);
  a.mlp_hidden = names.dimension(layer + "0/MlpBlock_3/Dense_0/kernel", 1);
  for (size_t i = 0; i < a.depth; ++i)
    for (const auto& [part, axis] : {std::pair("query/kernel", 1),
                                     {"query/bias", 0},
                                     {"key/kernel", 1},
                                     {"key/bias", 0},
                                     {"value/kernel", 1},
                                     {"value/bias", 0},
                                     {"out/kernel", 0}})
      check_heads(names, a, fmt::format("{}{}{}{}", layer, i, attention, part), size_t(axis));
  const std::string positions = "Transformer/posembed_input/pos_embedding";
  a.position_resize = PositionResize::bilinear;
  set_grid(names, a, names.count(positions) / a.width - 1);
  a.preprocess.transform.mean = a.preprocess.transform.std = {0.5f, 0.5f, 0.5f};
  a.preprocess.transform.resize_size = augreg_resize(a);
  a.preprocess.source = "AugReg";
  a.preprocess.assumed = false;
  a.preprocess.augreg = true;
  settle_facts(names, a);

  auto norm = [&](const std::string& canonical, const std::string& file) {
    w.tensor(canonical + ".weight", file + "/scale");
    w.tensor(canonical + ".bias", file + "/bias");
  };
  auto dense = [&](const std::string& canonical, const std::vector<std::string>& files) {
    for (const std::string& file : files) {
      w.recipes[canonical + ".weight"].parts.push_back(names.full(file + "/kernel"));
      w.recipes[canonical + ".bias"].parts.push_back(names.full(file + "/bias"));
    }
    w.recipes[canonical + ".weight"].transposed = true;
  };
  dense("patch_embed", {"embedding"});
  w.recipes["patch_embed.weight"].transposed = false;
  w.recipes["patch_embed.weight"].jax_convolution = true;
  w.tensor("prefix", "cls");
  w.rows("pos_prefix", positions, 0);
  w.rows("pos_patches", positions, 1);
  for (size_t i = 0; i < a.depth; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), f = fmt::format("{}{}", layer, i),
                      q = f + attention;
    norm(b + "norm1", f + "/LayerNorm_0");
    norm(b + "norm2", f + "/LayerNorm_2");
    dense(b + "attn.qkv", {q + "query", q + "key", q + "value"});
    dense(b + "attn.proj", {q + "out"});
    dense(b + "mlp.fc1", {f + "/MlpBlock_3/Dense_0"});
    dense(b + "mlp.fc2", {f + "/MlpBlock_3/Dense_1"});
  }
  norm("norm", "Transformer/encoder_norm");
}

}  // namespace

const Dialect kAugregNames{
    "AugReg",
    {"Transformer/encoderblock_0/MultiHeadDotProductAttention_1/query/kernel", "embedding/kernel",
     "Transformer/posembed_input/pos_embedding", "Transformer/encoder_norm/scale"},
    read_augreg};

}  // namespace fungi
