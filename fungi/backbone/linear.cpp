// SPDX-License-Identifier: Apache-2.0
#include "fungi/backbone/linear.h"

namespace fungi {

std::vector<float> load_vector(const TensorSource& tensors, const std::string& name, size_t size) {
  const Matrix<float> m = tensors.get(name, 1, size);
  return {m.data(), m.data() + size};
}

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

Linear load_linear(const kernel::Kernel& kernel, const TensorSource& tensors,
                   const LinearRequest& r) {
  const Matrix<float> weight = tensors.get(r.name + ".weight", r.out, r.in);
  std::vector<float> bias;
  if (r.bias) bias = load_vector(tensors, r.name + ".bias", r.out);
  return slice_linear(kernel, weight, bias, 0, r.out, r.backward);
}

}  // namespace fungi
