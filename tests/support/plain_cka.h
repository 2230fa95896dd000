// SPDX-License-Identifier: Apache-2.0
// Linear CKA as its definition has it, in f64, of rows as they are.
#pragma once

#include <cmath>

#include "fungi/base/matrix.h"

namespace fungi::test {

inline Matrix<double> centred(View<const float> rows) {
  Matrix<double> out(rows.rows, rows.cols);
  for (size_t c = 0; c < rows.cols; ++c) {
    double sum = 0;
    for (size_t i = 0; i < rows.rows; ++i) sum += double(rows(i, c));
    for (size_t i = 0; i < rows.rows; ++i) out(i, c) = double(rows(i, c)) - sum / double(rows.rows);
  }
  return out;
}

// ‖XᵀY‖²
inline double squared_products(const Matrix<double>& x, const Matrix<double>& y) {
  double squares = 0;
  for (size_t a = 0; a < x.cols(); ++a)
    for (size_t b = 0; b < y.cols(); ++b) {
      double sum = 0;
      for (size_t i = 0; i < x.rows(); ++i) sum += x(i, a) * y(i, b);
      squares += sum * sum;
    }
  return squares;
}

inline double plain_cka(View<const float> a, View<const float> b) {
  const Matrix<double> x = centred(a), y = centred(b);
  return squared_products(x, y) / std::sqrt(squared_products(x, x) * squared_products(y, y));
}

}  // namespace fungi::test
