// SPDX-License-Identifier: Apache-2.0
// A canonical tensor out of those of the file, and whether it can be made.
#include "fungi/backbone/recipes.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

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
  const bool line = info.shape.size() == 1 && info.count() == all * cols;  // biases side by side
  return (line || splits(info.shape, all, cols)) && (recipe.rest ? all == end : all >= end);
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
PartSize part_size(const Recipe& recipe, const CanonicalTensor& t) {
  const size_t count = t.rows * t.cols / recipe.parts.size();
  return {std::max<size_t>(count / t.cols, 1), count};
}

const Recipe& check_recipe(const Checkpoint& checkpoint, const Recipes& recipes,
                           const CanonicalTensor& t) {
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
           place, "the file is damaged or of another architecture");
    if (!is_float(info->type))
      fail(fmt::format("is of type {}; f32, f16, bf16 or f64 was expected", to_string(info->type)),
           place, "give a checkpoint with float weights");
  }
  if (const TensorInfo* info = checkpoint.find(recipe.times);
      !recipe.times.empty() && (!info || info->count() != t.rows * t.cols || !is_float(info->type)))
    fail(fmt::format("expected {} factors of {}, found {}", t.rows * t.cols, t.name,
                     info ? info->shape_text() : "no such tensor"),
         fmt::format("{}: {}", checkpoint.path(), printable(recipe.times)),
         "the file is damaged or of another architecture");
  return recipe;
}

}  // namespace

void check_recipes(const Checkpoint& checkpoint, const Reading& reading) {
  std::set<std::string> listed;
  for (const CanonicalTensor& t : canonical_tensors(reading.architecture)) {
    check_recipe(checkpoint, reading.recipes, t);
    listed.insert(t.name);
  }
  for (const auto& [name, recipe] : reading.recipes)
    if (!listed.count(name))
      fail(fmt::format("the tensor would be {}, which such a network does not have", name),
           tensor_place(checkpoint.path(), recipe.parts[0]),
           "the file is of a variant that is not known here; the embedding would be wrong");
}

Matrix<float> CheckpointTensors::get(const CanonicalTensor& tensor) const {
  const Recipe& recipe = check_recipe(checkpoint_, recipes_, tensor);  // before memory is taken
  const auto [part_rows, part_count] = part_size(recipe, tensor);
  const size_t cols = tensor.cols;
  Matrix<float> out(tensor.rows, cols);
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
  if (!recipe.times.empty()) {
    const Matrix<float> factors = checkpoint_.read(recipe.times);
    for (size_t i = 0; i < tensor.rows * cols; ++i) {
      if (!std::isfinite(factors.data()[i]))
        fail(fmt::format("expected factors of {}, found one that is not finite", tensor.name),
             fmt::format("{}: {}", checkpoint_.path(), printable(recipe.times)),
             "the model was saved before its weights were set");
      out.data()[i] *= factors.data()[i];
    }
  }
  return out;
}

}  // namespace fungi
