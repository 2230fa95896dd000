// SPDX-License-Identifier: Apache-2.0
#include "fungi/backbone/linear.h"

#include <algorithm>
#include <cmath>

namespace fungi {
namespace {

// In 8 bits a row of x has one scale for all columns: a few large ones leave few levels to the
// others. What a column of x is divided by, its column of W is multiplied by, halfway between the
// two extents of both (SmoothQuant, with the extents of x told by the norm before it).
std::vector<float> smoothing(View<const float> weight, std::span<const float> inputs) {
  std::vector<float> factors(weight.cols, 0.0f);
  for (size_t i = 0; i < weight.rows; ++i)
    for (size_t j = 0; j < weight.cols; ++j)
      factors[j] = std::max(factors[j], std::abs(weight(i, j)));
  for (size_t j = 0; j < weight.cols; ++j) {
    const float factor = std::sqrt(inputs[j] / factors[j]);
    factors[j] = std::isfinite(factor) ? std::clamp(factor, 1e-3f, 1e3f) : 1.0f;
  }
  return factors;
}

}  // namespace

Linear slice_linear(const LinearTables& tables, View<const float> weight,
                    const std::vector<float>& bias, size_t first, size_t out) {
  Linear linear;
  linear.out = out;
  linear.in = weight.cols;
  linear.table = &tables.forward;
  const View<const float> own = weight.slice(first, out);
  linear.forward = tables.forward.pack_smoothed && !tables.inputs.empty()
                       ? kernel::pack_smoothed(tables.forward, own, smoothing(own, tables.inputs))
                       : kernel::pack(tables.forward, own);
  if (tables.backward) linear.backward = kernel::pack(*tables.backward, own, true);
  if (!bias.empty())
    linear.bias.assign(bias.begin() + long(first), bias.begin() + long(first + out));
  return linear;
}

Linear load_linear(const LinearTables& tables, const Tensors& tensors, const std::string& name) {
  const Matrix<float> weight = tensors.matrix(name + ".weight");
  return slice_linear(tables, weight, tensors.vector(name + ".bias"), 0, weight.rows());
}

}  // namespace fungi
