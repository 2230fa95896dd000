// SPDX-License-Identifier: Apache-2.0
#include "fungi/backbone/linear.h"

namespace fungi {

Linear slice_linear(const kernel::Kernel& kernel, View<const float> weight,
                    const std::vector<float>& bias, size_t first, size_t out, bool backward) {
  Linear linear;
  linear.out = out;
  linear.in = weight.cols;
  linear.forward = kernel::pack(kernel, weight.slice(first, out));
  if (backward) linear.backward = kernel::pack(kernel, weight.slice(first, out), true);
  if (!bias.empty())
    linear.bias.assign(bias.begin() + long(first), bias.begin() + long(first + out));
  return linear;
}

Linear load_linear(const kernel::Kernel& kernel, const Tensors& tensors, const std::string& name,
                   bool backward) {
  const Matrix<float> weight = tensors.matrix(name + ".weight");
  return slice_linear(kernel, weight, tensors.vector(name + ".bias"), 0, weight.rows(), backward);
}

}  // namespace fungi
