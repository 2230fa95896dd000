// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/column_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/random.h"

namespace fungi {

const char* to_string(Reduce reduce) {
  switch (reduce) {
    case Reduce::pca:
      return "pca";
    case Reduce::sign:
      return "sign";
    case Reduce::gaussian:
      return "gaussian";
    case Reduce::sparse:
      return "sparse";
  }
  return "";
}

Reduce parse_reduce(const std::string& text) {
  for (const Reduce reduce : {Reduce::pca, Reduce::sign, Reduce::gaussian, Reduce::sparse})
    if (text == to_string(reduce)) return reduce;
  fail(fmt::format("there is no reduction '{}'", text), "`reduce`",
       "choose one of: pca, sign, gaussian, sparse");
}

// A row is the gradient of a layer of one output and no bias: what projects gradients serves.
ColumnMap ColumnMap::random(Reduce reduce, size_t columns, size_t width, uint64_t seed) {
  FUNGI_ASSERT(reduce != Reduce::pca);
  ProjectionOptions options;
  options.kind = reduce == Reduce::sign       ? ProjectionKind::sign
                 : reduce == Reduce::gaussian ? ProjectionKind::gaussian
                                              : ProjectionKind::sparse;
  options.rows = columns;
  // Not the matrix that a store's gradients went through, whose seed may be the same.
  options.seed = mix64(seed ^ fnv1a64("reduce"));
  ColumnMap map;
  map.random_ =
      Projection::make(std::move(options), {.outputs = 1, .inputs = width, .bias = false});
  return map;
}

size_t ColumnMap::input_width() const {
  return pca_ ? pca_->input_width() : random_->layer().inputs;
}

size_t ColumnMap::output_width() const { return pca_ ? pca_->output_width() : random_->rows(); }

void ColumnMap::transform(View<const float> rows, View<float> out, Pool& pool) const {
  if (pca_) return pca_->transform(rows, out, pool);
  Matrix<float> ones(rows.rows, 1);
  std::fill_n(ones.data(), rows.rows, 1.0f);
  random_->project_pairs(ones, rows, Precision::f32, out, pool);
}

}  // namespace fungi
