// SPDX-License-Identifier: Apache-2.0
// y = x Wᵀ + b with W packed for one kernel table, and its backward dx = dy W through the packed
// transpose. In int8 the forward of most layers is packed for another table than all else.
// Internal to this room.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fungi/backbone/tensors.h"
#include "fungi/kernel/kernel.h"

namespace fungi {

struct Linear {
  size_t out = 0, in = 0;
  const kernel::Kernel* table = nullptr;  // that `forward` is packed for
  kernel::PackedMatrix forward;           // [out, in]
  kernel::PackedMatrix backward;          // [in, out]; empty unless a gradient passes through
  std::vector<float> bias;                // empty = none

  const float* bias_data() const { return bias.empty() ? nullptr : bias.data(); }
};

// How a layer is packed: by which table, and its transpose, which a gradient passes through, by
// which, if at all.
struct LinearTables {
  const kernel::Kernel& forward;
  const kernel::Kernel* backward = nullptr;
  std::span<const float> inputs = {};  // how large its inputs are, one number per column; int8 only
};

// `name`.weight and, where there is one, `name`.bias.
Linear load_linear(const LinearTables& tables, const Tensors& tensors, const std::string& name);

// A part of the rows of an already read stacked weight, e.g. the query rows of qkv.
Linear slice_linear(const LinearTables& tables, View<const float> weight,
                    const std::vector<float>& bias, size_t first, size_t out);

}  // namespace fungi
