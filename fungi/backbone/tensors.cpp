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

}  // namespace

Matrix<float> CheckpointTensors::get(const std::string& name, size_t rows, size_t cols) const {
  const auto found = recipes_.find(name);
  if (found == recipes_.end())
    fail(fmt::format("there is no tensor for '{}' ({}x{})", name, rows, cols), checkpoint_.path(),
         "the file is incomplete or of another architecture; see `fungi inspect`");
  const Recipe& recipe = found->second;
  // Stacked vectors are one row each in the file but stand side by side in the one row asked for.
  const size_t part_size = rows * cols / recipe.parts.size(),
               part_rows = std::max<size_t>(part_size / cols, 1);
  for (const std::string& part : recipe.parts) {  // all before memory is taken for what they claim
    if (part.empty()) continue;                   // zeros
    const TensorInfo* info = checkpoint_.find(part);
    if (!info)
      fail(fmt::format("the tensor is missing (needed as {})", name),
           fmt::format("{}: {}", checkpoint_.path(), part), "the download may be incomplete");
    if (!fits(recipe, *info, part_rows, part_size) ||
        part_size * recipe.parts.size() != rows * cols)
      fail(fmt::format("the shape is {}, expected {}x{} for its share of {} ({}x{})",
                       info->shape_text(), recipe.slice ? recipe.first_row + part_rows : part_rows,
                       part_size / part_rows, name, rows, cols),
           fmt::format("{}: {}", checkpoint_.path(), printable(part)),
           "the file is of another architecture, or facts it does not hold are to be stated: "
           "--set "
           "heads=N, size=HxW");
  }
  Matrix<float> out(rows, cols);
  for (size_t p = 0; p < recipe.parts.size(); ++p) {
    const std::string& part = recipe.parts[p];
    if (part.empty()) continue;
    const Matrix<float> source = checkpoint_.read(part);
    const float* from = source.data() + recipe.first_row * cols;
    float* to = out.data() + p * part_size;
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
      std::copy_n(from, part_size, to);
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
