// SPDX-License-Identifier: Apache-2.0
#include "fungi/backbone/tensors.h"

#include <fmt/format.h>

#include <cmath>

#include "fungi/base/random.h"

namespace fungi {

Matrix<float> CheckpointTensors::get(const std::string& name, size_t rows, size_t cols) const {
  const auto found = recipes_.find(name);
  if (found == recipes_.end())
    fail(fmt::format("there is no tensor for '{}' ({}x{})", name, rows, cols), checkpoint_.path(),
         "the file is incomplete or of another architecture; see `fungi inspect`");
  const Recipe& recipe = found->second;
  // Stacked vectors are one row each in the file but stand side by side in the one row asked for.
  const size_t part_size = rows * cols / recipe.parts.size(),
               part_rows = std::max<size_t>(part_size / cols, 1);
  Matrix<float> out(rows, cols);
  for (size_t p = 0; p < recipe.parts.size(); ++p) {
    const std::string& part = recipe.parts[p];
    if (part.empty()) continue;  // zeros
    const TensorInfo* info = checkpoint_.find(part);
    if (!info)
      fail(fmt::format("the tensor is missing (needed as {})", name),
           fmt::format("{}: {}", checkpoint_.path(), part), "the download may be incomplete");
    const size_t skipped = recipe.first_row * cols, wanted = part_size;
    const bool fits = recipe.slice ? info->count() >= skipped + wanted : info->count() == wanted;
    if (!fits || part_size * recipe.parts.size() != rows * cols)
      fail(fmt::format("the shape is {}, expected {} elements for its share of {} ({}x{})",
                       info->shape_text(), wanted, name, rows, cols),
           fmt::format("{}: {}", checkpoint_.path(), part),
           "state the facts the file does not hold, e.g. --set size=384");
    const Matrix<float> source = checkpoint_.read(part);
    const float* from = source.data() + skipped;
    float* to = out.data() + p * part_size;
    if (recipe.transposed) {
      for (size_t i = 0; i < part_rows; ++i)
        for (size_t j = 0; j < cols; ++j) to[i * cols + j] = from[j * part_rows + i];
    } else if (recipe.jax_convolution) {  // [h·w, in, out] → [out, in, h·w]
      const size_t inputs = info->shape.at(2), area = cols / inputs;
      for (size_t o = 0; o < part_rows; ++o)
        for (size_t i = 0; i < inputs; ++i)
          for (size_t s = 0; s < area; ++s)
            to[(o * inputs + i) * area + s] = from[(s * inputs + i) * part_rows + o];
    } else {
      std::copy_n(from, wanted, to);
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
