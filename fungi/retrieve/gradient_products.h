// SPDX-License-Identifier: Apache-2.0
// Inner products of whole layer gradients, ⟨G, G'⟩ = Σ_v Σ_w (b_v·b'_w)([a_v;1]·[a'_w;1]), from
// their factors: exact but for rounding, nothing is projected (SPEC 1.2).
//
// Two ways to the same number. Multiplying factors costs terms · terms' · (outputs + inputs) per
// pair; where that is more than a gradient has entries, gradients are formed instead, a few rows at
// a time, and multiplied. Products are f32, their sums f64 beyond 2048 terms. A number depends on
// the two gradients and the way alone: not on what else is in the call, nor on threads.
#pragma once

#include <span>
#include <vector>

#include "fungi/base/parallel.h"
#include "fungi/projection/projection.h"

namespace fungi {

class GradientProducts {
 public:
  enum class Way { automatic, factors, gradients };

  // The terms a gradient of either side has at most decide which way is cheaper.
  GradientProducts(const LayerShape& layer, size_t x_terms, size_t y_terms,
                   Way way = Way::automatic);

  Way way() const { return way_; }  // never automatic

  // out(i, j) = ⟨x_i, y_j⟩
  void multiply(std::span<const GradientFactors> x, std::span<const GradientFactors> y,
                View<double> out, Pool& pool) const;

  // ⟨x_i, x_i⟩, the same bits that multiply() gives.
  std::vector<double> squares(std::span<const GradientFactors> x, Pool& pool) const;

 private:
  struct Stacked;  // factors of many gradients, one below the other
  class Panels;    // many gradients, formed a few rows at a time
  void multiply_factors(const Stacked& x, std::span<const GradientFactors> y,
                        View<double> out) const;
  void add_panel(View<const float> x, View<const float> y, size_t length, View<double> out) const;

  const kernel::Kernel& kernel_;
  LayerShape layer_;
  Way way_;
};

}  // namespace fungi
