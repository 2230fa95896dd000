// SPDX-License-Identifier: Apache-2.0
#include "fungi/backbone/tensors.h"

#include <fmt/format.h>

#include <cmath>

#include "fungi/base/random.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

// Whether a shape can be cut somewhere into `before` and `after` elements: [768, 3, 16, 16] holds
// 768 rows of 768, [1, 197, 768] 197 of 768. As many elements in another order are another
// tensor.
bool splits(const std::vector<size_t>& shape, size_t before, size_t after) {
  size_t left = 1, cut = 0;
  while (cut < shape.size() && left < before) left *= shape[cut++];
  if (left != before) return false;
  size_t right = 1;
  for (; cut < shape.size(); ++cut) right *= shape[cut];
  return right == after;
}

bool fits(const Recipe& recipe, const TensorInfo& info, size_t part_rows, size_t part_size) {
  const size_t cols = part_size / part_rows;
  if (recipe.jax_convolution)
    return info.shape.size() == 4 && info.shape[3] == part_rows && info.count() == part_size;
  if (recipe.transposed) return splits(info.shape, cols, part_rows);
  if (!recipe.slice) return splits(info.shape, part_rows, cols);
  const size_t end = recipe.first_row + part_rows, all = info.count() / cols;
  return splits(info.shape, all, cols) && (recipe.rest ? all == end : all >= end);
}

// What the file calls a tensor that no recipe makes: biases are left out where there is none.
std::string file_name(const Recipes& recipes, const std::string& name) {
  constexpr std::string_view bias = ".bias", weight = "weight";
  if (!name.ends_with(bias)) return name;
  const auto found = recipes.find(name.substr(0, name.size() - bias.size()) + ".weight");
  if (found == recipes.end() || !found->second.parts[0].ends_with(weight)) return name;
  const std::string& file = found->second.parts[0];
  return file.substr(0, file.size() - weight.size()) + "bias";
}

struct PartSize {
  size_t rows, count;
};

// Stacked vectors are one row each in the file but stand side by side in the one row asked for.
PartSize part_size(const Recipe& recipe, const WantedTensor& t) {
  const size_t count = t.rows * t.cols / recipe.parts.size();
  return {std::max<size_t>(count / t.cols, 1), count};
}

const Recipe& check_recipe(const Checkpoint& checkpoint, const Recipes& recipes,
                           const WantedTensor& t) {
  const auto found = recipes.find(t.name);
  if (found == recipes.end())
    fail(fmt::format("the tensor is missing (needed as {}, {}x{})", t.name, t.rows, t.cols),
         fmt::format("{}: {}", checkpoint.path(), printable(file_name(recipes, t.name))),
         "the file is incomplete or of another architecture");
  const Recipe& recipe = found->second;
  const auto [rows, count] = part_size(recipe, t);
  for (const std::string& part : recipe.parts) {
    if (part.empty()) continue;  // zeros
    const std::string place = fmt::format("{}: {}", checkpoint.path(), printable(part));
    const TensorInfo* info = checkpoint.find(part);
    if (!info)
      fail(fmt::format("the tensor is missing (needed as {})", t.name), place,
           "the download may be incomplete");
    if (!fits(recipe, *info, rows, count) || count * recipe.parts.size() != t.rows * t.cols)
      fail(fmt::format("the shape is {}, expected {}x{} for its share of {} ({}x{})",
                       info->shape_text(), recipe.slice ? recipe.first_row + rows : rows,
                       count / rows, t.name, t.rows, t.cols),
           place,
           "the file is of another architecture, or facts it does not hold are to be stated: "
           "`stated_facts[heads]=N`, `stated_facts[size]=HxW`");
    if (!is_float(info->type))
      fail(fmt::format("is of type {}; f32, f16, bf16 or f64 was expected", to_string(info->type)),
           place, "give a checkpoint with float weights");
  }
  return recipe;
}

void want_embedding(const Architecture& a, std::vector<WantedTensor>& out) {
  const size_t d = a.width, plain = a.prefix_tokens - a.registers;
  if (a.input == InputKind::token_ids) {
    out.push_back({"words", a.vocabulary, d});
    if (!a.max_positions) return;
    out.push_back({"word_positions", a.max_positions, d});
    out.push_back({"word_type", 1, d});
    return;
  }
  out.push_back({"patch_embed.weight", d, a.channels * a.patch_h * a.patch_w});
  if (a.patch_bias) out.push_back({"patch_embed.bias", 1, d});
  if (plain) out.push_back({"prefix", plain, d});
  if (plain && a.position_on_prefix) out.push_back({"pos_prefix", plain, d});
  out.push_back({"pos_patches", a.stored_grid_h * a.stored_grid_w, d});
  if (a.registers) out.push_back({"registers", a.registers, d});
  if (a.mask_token) out.push_back({"mask_token", 1, d});
}

}  // namespace

std::vector<WantedTensor> wanted_tensors(const Architecture& a) {
  const size_t d = a.width, inner = a.attention_width(), fc1 = a.mlp_hidden * (a.gated_mlp ? 2 : 1);
  std::vector<WantedTensor> out;
  const auto norm = [&](const std::string& name, size_t size) {
    out.push_back({name + ".weight", 1, size});
    if (!a.rms_norm) out.push_back({name + ".bias", 1, size});
  };
  const auto linear = [&](const std::string& name, size_t rows, size_t cols, bool bias) {
    out.push_back({name + ".weight", rows, cols});
    if (bias) out.push_back({name + ".bias", 1, rows});
  };
  want_embedding(a, out);
  if (a.norm_pre) norm("norm_pre", d);
  for (size_t i = 0; i < a.depth; ++i) {
    const std::string b = fmt::format("blocks.{}.", i);
    norm(b + "norm1", d);
    linear(b + "attn.qkv", 3 * inner, d, a.qkv_bias);
    if (a.attention_norm) norm(b + "attn.norm", inner);
    linear(b + "attn.proj", d, inner, a.linear_bias);
    if (a.layer_scale) out.push_back({b + "ls1", 1, d});
    norm(b + "norm2", d);
    linear(b + "mlp.fc1", fc1, d, a.linear_bias);
    if (a.mlp_norm) norm(b + "mlp.norm", a.mlp_hidden);
    linear(b + "mlp.fc2", d, a.mlp_hidden, a.linear_bias);
    if (a.layer_scale) out.push_back({b + "ls2", 1, d});
  }
  if (a.final_norm) norm("norm", d);
  if (a.head) linear("head", a.embedding_width, d, a.head_bias);
  if (a.relative_buckets) out.push_back({"relative_bias", a.relative_buckets, a.heads});
  return out;
}

void check_shapes(const Checkpoint& checkpoint, const Reading& reading) {
  for (const WantedTensor& t : wanted_tensors(reading.architecture))
    check_recipe(checkpoint, reading.recipes, t);
}

Matrix<float> CheckpointTensors::get(const std::string& name, size_t rows, size_t cols) const {
  const WantedTensor wanted{name, rows, cols};
  const Recipe& recipe = check_recipe(checkpoint_, recipes_, wanted);  // before memory is taken
  const auto [part_rows, part_count] = part_size(recipe, wanted);
  Matrix<float> out(rows, cols);
  for (size_t p = 0; p < recipe.parts.size(); ++p) {
    const std::string& part = recipe.parts[p];
    if (part.empty()) continue;
    const Matrix<float> source = checkpoint_.read(part);
    const float* from = source.data() + recipe.first_row * cols;
    float* to = out.data() + p * part_count;
    if (recipe.transposed) {
      for (size_t i = 0; i < part_rows; ++i)
        for (size_t j = 0; j < cols; ++j) to[i * cols + j] = from[j * part_rows + i];
    } else if (recipe.jax_convolution) {  // [h·w, in, out] → [out, in, h·w]
      const size_t inputs = checkpoint_.find(part)->shape.at(2), area = cols / inputs;
      for (size_t o = 0; o < part_rows; ++o)
        for (size_t i = 0; i < inputs; ++i)
          for (size_t s = 0; s < area; ++s)
            to[(o * inputs + i) * area + s] = from[(s * inputs + i) * part_rows + o];
    } else {
      std::copy_n(from, part_count, to);
    }
  }
  return out;
}

Matrix<float> RandomTensors::get(const std::string& name, size_t rows, size_t cols) const {
  Matrix<float> out(rows, cols);
  const RandomStream random(seed_, name);
  const bool gain = rows == 1 && name.find("norm") != std::string::npos && name.ends_with("weight");
  const float scale = rows == 1 ? 0.1f : 1.0f / std::sqrt(float(cols));
  for (size_t i = 0; i < rows * cols;
       ++i) {  // uniform with unit variance: far cheaper than a normal, as good here
    const float u = float((random.uniform(i) - 0.5) * std::sqrt(12.0));
    out.data()[i] = gain ? 1.0f + 0.1f * u : scale * u;
  }
  return out;
}

}  // namespace fungi
