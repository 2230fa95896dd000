// SPDX-License-Identifier: Apache-2.0
// y = x Wᵀ + b with W packed for one kernel table, and its backward dx = dy W through the packed
// transpose. Internal to this room.
#pragma once

#include <string>
#include <vector>

#include "fungi/backbone/tensors.h"
#include "fungi/kernel/kernel.h"

namespace fungi {

struct Linear {
  size_t out = 0, in = 0;
  kernel::PackedMatrix forward;   // [out, in]
  kernel::PackedMatrix backward;  // [in, out]; empty unless a gradient passes through
  std::vector<float> bias;        // empty = none

  const float* bias_data() const { return bias.empty() ? nullptr : bias.data(); }
};

// `name`.weight and, where there is one, `name`.bias; `backward`: its transpose is packed, too.
Linear load_linear(const kernel::Kernel& kernel, const Tensors& tensors, const std::string& name,
                   bool backward);

// A part of the rows of an already read stacked weight, e.g. the query rows of qkv.
Linear slice_linear(const kernel::Kernel& kernel, View<const float> weight,
                    const std::vector<float>& bias, size_t first, size_t out, bool backward);

}  // namespace fungi
