// SPDX-License-Identifier: Apache-2.0
// How rows are shrunk for an evaluation: by a PCA fitted on training rows (SPEC 1.7), or by a
// random matrix, which knows no rows (SPEC 6.18). Const after construction, safe to share.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "fungi/pca/pca.h"
#include "fungi/projection/projection.h"

namespace fungi {

enum class Reduce {
  pca,
  sign,      // ±1
  gaussian,  // N(0,1)
  sparse,    // ±√3 with probability 1/6 each, otherwise 0
};
const char* to_string(Reduce reduce);
Reduce parse_reduce(const std::string& text);  // Error naming the choices

class ColumnMap {
 public:
  ColumnMap(Pca pca) : pca_(std::move(pca)) {}
  // The matrix [columns, width] over √columns that the seed draws; not a PCA.
  static ColumnMap random(Reduce reduce, size_t columns, size_t width, uint64_t seed);
  // Whether a matrix of that kind shrinks rows of so many numbers; a PCA has a rule of its own.
  static bool applies(size_t columns, size_t width) { return columns > 0 && columns < width; }

  bool is_pca() const { return pca_.has_value(); }
  size_t input_width() const;
  size_t output_width() const;
  // [n, input_width] → [n, output_width]. Each row depends on itself alone.
  void transform(View<const float> rows, View<float> out, Pool& pool) const;

 private:
  ColumnMap() = default;
  std::optional<Pca> pca_;
  std::shared_ptr<const Projection> random_;
};

}  // namespace fungi
