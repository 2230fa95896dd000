// SPDX-License-Identifier: Apache-2.0
// The layer gradient of one sample, M = Σ b_i ⊗ [a_i ; 1], formed a few rows at a time (SPEC 1.2,
// steps 5 and 6). Internal to the library.
#pragma once

#include "fungi/projection/projection.h"

namespace fungi {

class GradientRows {
 public:
  GradientRows(const GradientFactors& factors, const LayerShape& layer);

  // Rows [first, first + count) of M, flattened: count · layer.row_length() floats.
  void form(size_t first, size_t count, float* out) const;

 private:
  const kernel::Kernel& kernel_;
  GradientFactors factors_;
  LayerShape layer_;
  kernel::PackedMatrix inputs_;  // [inputs, views · tokens]
};

}  // namespace fungi
