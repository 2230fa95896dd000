// SPDX-License-Identifier: Apache-2.0
// One SIMD register of floats, by the compiler's vector extensions: the width is the only thing
// that differs between generic, AVX2 and AVX-512. The including file defines FUNGI_VECTOR_BYTES
// (16, 32 or 64).
//
// Multiply-adds are explicit (fma) and the files are compiled without contraction, so that a
// function gives the same bits wherever the compiler inlines it. Row tails go through the same
// full-width arithmetic on padded registers. Internal to this room.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "fungi/kernel/table.h"

namespace fungi::kernel {
namespace {

constexpr size_t kLanes = FUNGI_VECTOR_BYTES / sizeof(float);
using Floats [[gnu::vector_size(FUNGI_VECTOR_BYTES)]] = float;
using Words [[gnu::vector_size(FUNGI_VECTOR_BYTES)]] = uint32_t;
using Halves [[gnu::vector_size(FUNGI_VECTOR_BYTES / 2)]] = uint16_t;

// Small functions, and lambdas in hot loops: the compiler's own estimate leaves calls there.
#define FUNGI_INLINE [[gnu::always_inline]] inline
#define FUNGI_FORCE __attribute__((always_inline))

constexpr size_t padded(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
constexpr size_t smaller(size_t a, size_t b) { return a < b ? a : b; }
constexpr size_t larger(size_t a, size_t b) { return a > b ? a : b; }

FUNGI_INLINE Floats all(float value) { return value - Floats{}; }
// b wherever one of them is NaN, as the instructions have it.
FUNGI_INLINE Floats max(Floats a, Floats b) {
#if defined(__AVX512F__) && FUNGI_VECTOR_BYTES == 64
  return Floats(_mm512_maskz_max_ps(0xffff, __m512(a), __m512(b)));
#else
  return a > b ? a : b;
#endif
}
FUNGI_INLINE Floats min(Floats a, Floats b) {
#if defined(__AVX512F__) && FUNGI_VECTOR_BYTES == 64
  return Floats(_mm512_maskz_min_ps(0xffff, __m512(a), __m512(b)));
#else
  return a < b ? a : b;
#endif
}

FUNGI_INLINE Floats fma(Floats a, Floats b, Floats c) {
#if defined(__AVX512F__) && FUNGI_VECTOR_BYTES == 64
  return Floats(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(c)));
#elif defined(__FMA__) && FUNGI_VECTOR_BYTES == 32
  return Floats(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(c)));
#elif defined(__FMA__)
  for (size_t i = 0; i < kLanes; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return c;
#else
  return a * b + c;
#endif
}

// 1 / x for finite x, to an ulp or so.
FUNGI_INLINE Floats inverse(Floats x) {
#if defined(__AVX512F__) && FUNGI_VECTOR_BYTES == 64
  const Floats r = Floats(_mm512_maskz_rcp14_ps(0xffff, __m512(x)));
  return fma(r, fma(-x, r, all(1.0f)), r);
#else
  return 1.0f / x;
#endif
}

// The same to four digits.
FUNGI_INLINE Floats rough_inverse(Floats x) {
#if defined(__AVX512F__) && FUNGI_VECTOR_BYTES == 64
  return Floats(_mm512_maskz_rcp14_ps(0xffff, __m512(x)));
#else
  return 1.0f / x;
#endif
}

FUNGI_INLINE Floats load(const float* p) {
  Floats v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
FUNGI_INLINE void store(float* p, Floats v) { __builtin_memcpy(p, &v, sizeof v); }

// The first `count` lanes; the others are `fill` (load) or left alone in memory (store).
FUNGI_INLINE Floats load(const float* p, size_t count, float fill = 0) {
  if (count == kLanes) return load(p);
#if defined(__AVX512F__) && FUNGI_VECTOR_BYTES == 64
  return Floats(_mm512_mask_loadu_ps(__m512(all(fill)), __mmask16((1u << count) - 1), p));
#else
  Floats v = all(fill);
  __builtin_memcpy(&v, p, count * sizeof(float));
  return v;
#endif
}
FUNGI_INLINE void store(float* p, size_t count, Floats v) {
  if (count == kLanes) return store(p, v);
#if defined(__AVX512F__) && FUNGI_VECTOR_BYTES == 64
  _mm512_mask_storeu_ps(p, __mmask16((1u << count) - 1), __m512(v));
#else
  __builtin_memcpy(p, &v, count * sizeof(float));
#endif
}

FUNGI_INLINE Floats widen(Halves h) {
#if defined(__AVX512F__) && FUNGI_VECTOR_BYTES == 64
  // GCC 12 makes four instructions of the conversion.
  return Floats(Words(_mm512_maskz_cvtepu16_epi32(0xffff, __m256i(h))) << 16);
#else
  return Floats(__builtin_convertvector(h, Words) << 16);
#endif
}

// Round to nearest, ties to even; NaN stays NaN. The result is the upper half of a float.
FUNGI_INLINE Words rounded_words(Floats x) {
  const Words u = Words(x);
  const Words r = u + 0x7fff + (u >> 16 & 1);
  return x == x ? r : u | 0x400000;
}
// Two registers as one of bf16, the first in the low halves of its words.
FUNGI_INLINE Words rounded_pairs(Floats low, Floats high) {
  return rounded_words(low) >> 16 | (rounded_words(high) & 0xffff0000u);
}
FUNGI_INLINE Halves narrow(Floats x) {
#if defined(__AVX512BF16__) && FUNGI_VECTOR_BYTES == 64
  const auto h = _mm512_cvtneps_pbh(__m512(x));  // subnormals become zero
  return __builtin_bit_cast(Halves, h);
#else
  return __builtin_convertvector(rounded_words(x) >> 16, Halves);
#endif
}
FUNGI_INLINE Floats rounded_to_bf16(Floats x) {
#if defined(__AVX512BF16__) && FUNGI_VECTOR_BYTES == 64
  return widen(narrow(x));
#else
  return Floats(rounded_words(x) & 0xffff0000u);
#endif
}

// Two registers as one of bf16. vcvtne2ps2bf16 would do, but Bochs 3 (tools/amx_vm) writes its
// lower half twice, and next to the exponentials it makes no difference.
FUNGI_INLINE Floats narrow(Floats low, Floats high) {
  const Halves halves[2] = {narrow(low), narrow(high)};
#if defined(__AVX512F__) && FUNGI_VECTOR_BYTES == 64
  // GCC 12 takes the way through memory, where two stores delay the load.
  return Floats(_mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(__m256i(halves[0])),
                                         __m256i(halves[1]), 1));
#else
  return __builtin_bit_cast(Floats, halves);
#endif
}

// total + the two products of bf16 in the low and in the high halves of each word.
FUNGI_INLINE Floats dot_pairs(Floats a, Floats b, Floats total) {
#if defined(__AVX512BF16__) && FUNGI_VECTOR_BYTES == 64
  return Floats(_mm512_dpbf16_ps(__m512(total), __builtin_bit_cast(__m512bh, a),
                                 __builtin_bit_cast(__m512bh, b)));
#else
  total = fma(Floats(Words(a) & 0xffff0000u), Floats(Words(b) & 0xffff0000u), total);
  return fma(Floats(Words(a) << 16), Floats(Words(b) << 16), total);
#endif
}

// a₀b₀ + a₁b₁ of the two signed 16-bit numbers in each word.
FUNGI_INLINE Words multiply_shorts(Words a, Words b) {
#if FUNGI_VECTOR_BYTES == 64 && defined(__AVX512BW__)
  return Words(_mm512_madd_epi16(__m512i(a), __m512i(b)));
#elif FUNGI_VECTOR_BYTES == 32 && defined(__AVX2__)
  return Words(_mm256_madd_epi16(__m256i(a), __m256i(b)));
#elif FUNGI_VECTOR_BYTES == 16
  return Words(_mm_madd_epi16(__m128i(a), __m128i(b)));
#else
  using Ints [[gnu::vector_size(FUNGI_VECTOR_BYTES)]] = int32_t;
  return Words((Ints(a) >> 16) * (Ints(b) >> 16) + (Ints(a << 16) >> 16) * (Ints(b << 16) >> 16));
#endif
}
// total + Σ aᵢbᵢ of the four bytes in each word, a without and b with a sign.
FUNGI_INLINE Words dot_bytes(Words a, Words b, Words total) {
#if FUNGI_VECTOR_BYTES == 64 && defined(__AVX512VNNI__)
  return Words(_mm512_dpbusd_epi32(__m512i(total), __m512i(a), __m512i(b)));
#elif FUNGI_VECTOR_BYTES == 32 && defined(__AVXVNNI__)
  return Words(_mm256_dpbusd_avx_epi32(__m256i(total), __m256i(a), __m256i(b)));
#else
  using Ints [[gnu::vector_size(FUNGI_VECTOR_BYTES)]] = int32_t;
  for (unsigned byte = 0; byte < 32; byte += 8)
    total += (a >> byte & 255) * Words(Ints(b << (24 - byte)) >> 24);
  return total;
#endif
}

// Elements: float or bfloat16 in memory, floats in registers.
FUNGI_INLINE Floats rounded(float, Floats x) { return x; }
FUNGI_INLINE Floats rounded(bfloat16, Floats x) { return rounded_to_bf16(x); }
FUNGI_INLINE Floats load_elements(const float* p, size_t count = kLanes) { return load(p, count); }
FUNGI_INLINE void store_elements(float* p, size_t count, Floats v) { store(p, count, v); }
FUNGI_INLINE Floats load_elements(const bfloat16* p, size_t count = kLanes) {
  Halves h{};
  if (count == kLanes)
    __builtin_memcpy(&h, p, sizeof h);
  else
    __builtin_memcpy(&h, p, count * sizeof(bfloat16));
  return widen(h);
}
FUNGI_INLINE void store_elements(bfloat16* p, size_t count, Floats v) {
  const Halves h = narrow(v);
  if (count == kLanes)
    __builtin_memcpy(p, &h, sizeof h);
  else
    __builtin_memcpy(p, &h, count * sizeof(bfloat16));
}

// Two whole registers side by side.
FUNGI_INLINE void store_two(float* p, Floats low, Floats high) {
  store(p, low);
  store(p + kLanes, high);
}
FUNGI_INLINE void store_two(bfloat16* p, Floats low, Floats high) {
  store(reinterpret_cast<float*>(p), narrow(low, high));
}

// The register folded in halves down to one lane: one order for every caller.
template <class Combine>
FUNGI_INLINE float folded(Floats v, Combine combine) {
  using Quad [[gnu::vector_size(16)]] = float;
  Quad q[kLanes / 4];
  __builtin_memcpy(q, &v, sizeof v);
  for (size_t half = kLanes / 8; half > 0; half /= 2)
    for (size_t i = 0; i < half; ++i) q[i] = combine(q[i], q[i + half]);
  return combine(combine(q[0][0], q[0][2]), combine(q[0][1], q[0][3]));
}
FUNGI_INLINE float sum(Floats v) {
  return folded(v, [](auto a, auto b) { return a + b; });
}
FUNGI_INLINE float largest(Floats v) {
  return folded(v, [](auto a, auto b) { return a > b ? a : b; });
}

FUNGI_INLINE float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }

// Rows become columns: blocks change places across the diagonal, half as large in every stage.
template <size_t Distance, size_t... Lane>
FUNGI_INLINE void exchange_blocks(Words& upper, Words& lower, std::index_sequence<Lane...>) {
  const Words u = upper, l = lower;
  upper = __builtin_shufflevector(u, l, (Lane & Distance ? kLanes + Lane - Distance : Lane)...);
  lower = __builtin_shufflevector(u, l, (Lane & Distance ? kLanes + Lane : Lane + Distance)...);
}
template <size_t Distance = kLanes / 2>
FUNGI_INLINE void transpose(Words (&rows)[kLanes]) {
#pragma GCC unroll 16
  for (size_t i = 0; i < kLanes; ++i)
    if ((i & Distance) == 0)
      exchange_blocks<Distance>(rows[i], rows[i + Distance], std::make_index_sequence<kLanes>());
  if constexpr (Distance > 1) transpose<Distance / 2>(rows);
}

// A register of bf16, `count` of them from memory and zeros.
using Elements [[gnu::vector_size(FUNGI_VECTOR_BYTES)]] = uint16_t;
FUNGI_INLINE Elements load_row(const bfloat16* p, size_t count) {
#if defined(__AVX512BW__) && FUNGI_VECTOR_BYTES == 64
  return Elements(_mm512_maskz_loadu_epi16(__mmask32((uint64_t{1} << count) - 1), p));
#else
  Elements row{};
  if (count == 2 * kLanes)
    __builtin_memcpy(&row, p, sizeof row);
  else
    __builtin_memcpy(&row, p, count * sizeof(bfloat16));
  return row;
#endif
}

// The pairs of even[i] and odd[i], for i in the lower (0) or upper (1) half of the registers.
template <size_t Half, size_t... Lane>
FUNGI_INLINE Words woven(Elements even, Elements odd, std::index_sequence<Lane...>) {
  return Words(
      __builtin_shufflevector(even, odd, (Half * kLanes + Lane / 2 + Lane % 2 * 2 * kLanes)...));
}
template <size_t Half>
FUNGI_INLINE Words woven(Elements even, Elements odd) {
  return woven<Half>(even, odd, std::make_index_sequence<2 * kLanes>());
}

// Sixteen registers, each folded into one lane: rows[i] into lane i, all by the same tree.
template <size_t Distance = kLanes / 2, class Combine>
FUNGI_INLINE Floats fold_rows(Floats* rows, Combine combine) {
#pragma GCC unroll 16
  for (size_t i = 0; i < Distance; ++i) {
    Words first = Words(rows[i]), second = Words(rows[i + Distance]);
    exchange_blocks<Distance>(first, second, std::make_index_sequence<kLanes>());
    rows[i] = combine(Floats(first), Floats(second));
  }
  if constexpr (Distance > 1)
    return fold_rows<Distance / 2>(rows, combine);
  else
    return rows[0];
}

// The compiler must form v anew and may assume nothing about it: for loops that measure.
template <class Register>
FUNGI_INLINE void opaque(Register& v) {
#if FUNGI_VECTOR_BYTES == 64 && !defined(__AVX512F__)
  __asm__ volatile("" : "+m"(v));
#else
  __asm__ volatile("" : "+x"(v));
#endif
}

// Calls f(offset, count) for each register of a row of d floats; count < kLanes only for the last
// one.
template <class F>
FUNGI_INLINE void for_each_vector(size_t d, F f) {
  size_t i = 0;
  for (; i + kLanes <= d; i += kLanes) f(i, kLanes);
  if (i < d) f(i, d - i);
}

// A row folded into one register: total = f(total, offset, count), in four chains to hide latency,
// then combined.
template <class F, class Combine>
FUNGI_INLINE Floats fold_row(size_t d, Floats start, F f, Combine combine) {
  Floats chain[4] = {start, start, start, start};
  size_t i = 0;
  for (; i + 4 * kLanes <= d; i += 4 * kLanes)
    for (size_t c = 0; c < 4; ++c) chain[c] = f(chain[c], i + c * kLanes, kLanes);
  for (; i + kLanes <= d; i += kLanes) chain[0] = f(chain[0], i, kLanes);
  if (i < d) chain[0] = f(chain[0], i, d - i);
  return combine(combine(chain[0], chain[1]), combine(chain[2], chain[3]));
}
template <class F>
FUNGI_INLINE float sum_row(size_t d, F f) {
  return sum(fold_row(d, Floats{}, f, [](Floats a, Floats b) FUNGI_FORCE { return a + b; }));
}

}  // namespace
}  // namespace fungi::kernel
