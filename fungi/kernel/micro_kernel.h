// SPDX-License-Identifier: Apache-2.0
// The innermost loop of every product: R rows of A times P panels of B, sums held in registers.
// A panel is a row of kPanel = 2 registers of columns per step, in the order of k. What a step is
// depends on the table:
//   f32                 one k;
//   bf16                one k, widened to f32: a panel row keeps its two registers' columns as the
//                       low and high halves of one word, so that widening is one shift and one
//                       mask;
//   bf16, FUNGI_PAIRS   two neighbouring k in one word, for processors that multiply pairs of bf16
//                       and add both products to an f32 sum (AVX512_BF16);
//   int8                two neighbouring k in one word, as 16-bit numbers: their products, and sums
//                       of two, fit 32 bits whatever they are;
//   int8, FUNGI_VNNI    four neighbouring k in one word, for processors that multiply bytes by
//                       fours and add to a 32-bit sum (VNNI).
// Internal to this room.
#pragma once

#include "fungi/kernel/vector.h"

namespace fungi::kernel {
namespace {

constexpr size_t kPanel = 2 * kLanes;
constexpr size_t kTileRows =
    FUNGI_TILE_ROWS;  // rows of A whose sums fit the registers beside two of B
constexpr size_t kDepth =
    FUNGI_TILE_DEPTH;  // so many steps of k are summed in registers, then their sums are added

constexpr size_t kUnroll = kTileRows > 8 ? 1 : 4;  // of k, where a step is short enough to matter

struct Pair {
  uint32_t bits;  // the bf16 of an even k in the low half, of the next k in the high half
};

// How a product of elements E is carried out: the type of A and of B in the inner loop, and how
// many k one step takes.
template <class E>
struct Factors {
  using Left = float;
  using Right = E;
  static constexpr size_t kStep = 1;
};
#ifdef FUNGI_PAIRS
template <>
struct Factors<bfloat16> {
  using Left = Pair;
  using Right = Pair;
  static constexpr size_t kStep = 2;
};
#endif
struct Shorts {
  uint32_t bits;  // A: 0 .. 255, B: -127 .. 127
};
struct Quad {
  uint32_t bits;  // four bytes, A without and B with a sign
};
template <>
struct Factors<int8_t> {
#ifdef FUNGI_VNNI
  using Left = Quad;
  using Right = Quad;
  static constexpr size_t kStep = 4;
#else
  using Left = Shorts;
  using Right = Shorts;
  static constexpr size_t kStep = 2;
#endif
};
template <class E>
using LeftOf = typename Factors<E>::Left;
template <class E>
using RightOf = typename Factors<E>::Right;
template <class E>
constexpr size_t steps_of(size_t k) {
  return (k + Factors<E>::kStep - 1) / Factors<E>::kStep;
}

FUNGI_INLINE void load_columns(const float* b, Floats& low, Floats& high) {
  low = load(b);
  high = load(b + kLanes);
}
FUNGI_INLINE void load_columns(const bfloat16* b, Floats& low, Floats& high) {
  Words w;
  __builtin_memcpy(&w, b, sizeof w);
  low = Floats(w << 16);
  high = Floats(w & 0xffff0000u);
}

template <class Words32>
FUNGI_INLINE void load_columns(const Words32* b, Floats& low, Floats& high) {
  static_assert(sizeof(Words32) == sizeof(uint32_t));
  __builtin_memcpy(&low, b, sizeof low);
  __builtin_memcpy(&high, b + kLanes, sizeof high);
}

FUNGI_INLINE Floats spread(float a) { return all(a); }
template <class Words32>
FUNGI_INLINE Floats spread(Words32 a) {
  return Floats(a.bits - Words{});
}

// total + left · right
FUNGI_INLINE Floats add_product(float, Floats left, Floats right, Floats total) {
  return fma(left, right, total);
}
FUNGI_INLINE Floats add_product(Pair, Floats left, Floats right, Floats total) {
  return dot_pairs(left, right, total);
}
FUNGI_INLINE Words add_product(Shorts, Floats left, Floats right, Words total) {
  return total + multiply_shorts(Words(left), Words(right));
}
FUNGI_INLINE Words add_product(Quad, Floats left, Floats right, Words total) {
  return dot_bytes(Words(left), Words(right), total);
}

// A register of sums.
template <class A>
struct SumOf {
  using Register = Floats;
};
template <>
struct SumOf<Shorts> {
  using Register = Words;
};
template <>
struct SumOf<Quad> {
  using Register = Words;
};

// c[r, p] = (add ? c : 0) + Σ a[r, k] b[p, k] over k steps; b_stride of B lie between panels. Half:
// of the one panel only its first register of columns.
template <size_t R, size_t P, bool Half = false, class A, class B>
void multiply_tile(size_t k, const A* a, size_t a_stride, const B* b, size_t b_stride, float* c,
                   size_t c_stride, bool add) {
  using Sum = typename SumOf<A>::Register;
  constexpr size_t kColumns = Half ? 1 : 2 * P;
  static_assert(!Half || P == 1);
  Sum total[R][kColumns] = {};
#pragma GCC unroll kUnroll
  for (size_t i = 0; i < k; ++i) {
    Floats right[2 * P];
#pragma GCC unroll 8
    for (size_t p = 0; p < P; ++p)
      load_columns(b + p * b_stride + i * kPanel, right[2 * p], right[2 * p + 1]);
#pragma GCC unroll 16
    for (size_t r = 0; r < R; ++r) {
      const Floats left = spread(a[r * a_stride + i]);
#pragma GCC unroll 16
      for (size_t p = 0; p < kColumns; ++p)
        total[r][p] = add_product(A{}, left, right[p], total[r][p]);
    }
  }
#pragma GCC unroll 16
  for (size_t r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (size_t p = 0; p < kColumns; ++p) {
      float* place = c + r * c_stride + p * kLanes;
      store(place, Floats(add ? Sum(load(place)) + total[r][p] : total[r][p]));
    }
}

// The same for any number of rows up to kTileRows and one panel.
template <bool Half = false, size_t R = kTileRows, class A, class B>
FUNGI_INLINE void multiply_rows(size_t rows, size_t k, const A* a, size_t a_stride, const B* b,
                                float* c, size_t c_stride, bool add) {
  if (rows == R) return multiply_tile<R, 1, Half>(k, a, a_stride, b, 0, c, c_stride, add);
  if constexpr (R > 1) multiply_rows<Half, R - 1>(rows, k, a, a_stride, b, c, c_stride, add);
}

// m x n product for attention: A in rows, B in panels of k steps; n is padded to whole registers in
// c.
template <class A, class B>
void multiply_panels(size_t m, size_t n, size_t k, const A* a, size_t a_stride, const B* b,
                     float* c, size_t c_stride, bool add) {
  const auto panel = [&]<bool Half>(size_t j) {
    for (size_t i = 0; i < m; i += kTileRows)
      multiply_rows<Half>(smaller(kTileRows, m - i), k, a + i * a_stride, a_stride, b + j * k,
                          c + i * c_stride + j, c_stride, add);
  };
  for (size_t j = 0; j < n; j += kPanel)
    n - j > kLanes ? panel.template operator()<false>(j) : panel.template operator()<true>(j);
}

}  // namespace
}  // namespace fungi::kernel
