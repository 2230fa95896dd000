// SPDX-License-Identifier: Apache-2.0
// The gradients of a store that was extracted with --keep-factors, as the factors they are made of:
// G = Σ b_i ⊗ [a_i ; 1]. From them they can be projected anew (project_store.h) or compared exactly
// (retrieve/gradient_search.h), without the model.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fungi/projection/projection.h"
#include "fungi/store/store.h"

namespace fungi {

// Blocks that are neither the embedding nor factors, in the order of the store.
std::vector<std::string> gradient_blocks(const StoreSpec& spec);

// Factors of some rows.
struct FactorRows {
  Matrix<float> b, a;  // as stored: [rows, terms · outputs], [rows, terms · inputs]
  std::vector<GradientFactors> samples;  // views into them, without terms that are zero
};

class KeptFactors {
 public:
  // Error when the store has none of this objective, or holds them rounded to float16. `store` must
  // live as long.
  KeptFactors(const Store& store, const std::string& objective);

  const LayerShape& layer() const { return layer_; }
  size_t terms() const { return terms_; }  // of a sample, at most: views · tokens
  size_t bytes_per_row() const { return sizeof(float) * terms_ * (layer_.outputs + layer_.inputs); }
  FactorRows read(std::span<const size_t> rows) const;

 private:
  const Store& store_;
  std::string b_, a_;  // names of the blocks
  LayerShape layer_;
  size_t terms_ = 0;
};

}  // namespace fungi
