// SPDX-License-Identifier: Apache-2.0
// The innermost loop of every product: R rows of A times P panels of B, sums held in registers.
// A panel is k rows of kPanel = 2 registers of columns, in the order of k; bf16 panels keep the two
// registers' columns as the low and high halves of one word, so that widening is one shift and one
// mask.
#pragma once

#include "fungi/kernel/vector.h"

namespace fungi::kernel {
namespace {

constexpr size_t kPanel = 2 * kLanes;
constexpr size_t kTileRows =
    FUNGI_TILE_ROWS;  // rows of A whose sums fit the registers beside two of B
constexpr size_t kDepth =
    FUNGI_TILE_DEPTH;  // k is summed in blocks of this many, then the blocks are summed

constexpr size_t kUnroll = kTileRows > 8 ? 1 : 4;  // of k, where a step is short enough to matter

FUNGI_INLINE void load_pair(const float* b, Floats& low, Floats& high) {
  low = load(b);
  high = load(b + kLanes);
}
FUNGI_INLINE void load_pair(const bfloat16* b, Floats& low, Floats& high) {
  Words w;
  __builtin_memcpy(&w, b, sizeof w);
  low = Floats(w << 16);
  high = Floats(w & 0xffff0000u);
}

// c[r, p] = (add ? c : 0) + Σ_k a[r, k] b[p, k]; b_stride elements lie between panels.
template <size_t R, size_t P, class B>
void multiply_tile(size_t k, const float* a, size_t a_stride, const B* b, size_t b_stride, float* c,
                   size_t c_stride, bool add) {
  Floats total[R][2 * P] = {};
#pragma GCC unroll kUnroll
  for (size_t i = 0; i < k; ++i) {
    Floats right[2 * P];
#pragma GCC unroll 8
    for (size_t p = 0; p < P; ++p)
      load_pair(b + p * b_stride + i * kPanel, right[2 * p], right[2 * p + 1]);
#pragma GCC unroll 16
    for (size_t r = 0; r < R; ++r) {
      const Floats left = all(a[r * a_stride + i]);
#pragma GCC unroll 16
      for (size_t p = 0; p < 2 * P; ++p) total[r][p] = fma(left, right[p], total[r][p]);
    }
  }
#pragma GCC unroll 16
  for (size_t r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (size_t p = 0; p < 2 * P; ++p) {
      float* place = c + r * c_stride + p * kLanes;
      store(place, add ? load(place) + total[r][p] : total[r][p]);
    }
}

// The same for any number of rows up to kTileRows and one panel.
template <class B, size_t R = kTileRows>
FUNGI_INLINE void multiply_rows(size_t rows, size_t k, const float* a, size_t a_stride, const B* b,
                                float* c, size_t c_stride, bool add) {
  if (rows == R) return multiply_tile<R, 1>(k, a, a_stride, b, 0, c, c_stride, add);
  if constexpr (R > 1) multiply_rows<B, R - 1>(rows, k, a, a_stride, b, c, c_stride, add);
}

// m x n product for attention: A in rows, B in panels of depth k; n is padded to whole panels in c.
template <class B>
void multiply_panels(size_t m, size_t n, size_t k, const float* a, size_t a_stride, const B* b,
                     float* c, size_t c_stride, bool add) {
  for (size_t j = 0; j < n; j += kPanel)
    for (size_t i = 0; i < m; i += kTileRows)
      multiply_rows(smaller(kTileRows, m - i), k, a + i * a_stride, a_stride, b + j * k,
                    c + i * c_stride + j, c_stride, add);
}

}  // namespace
}  // namespace fungi::kernel
