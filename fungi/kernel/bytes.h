// SPDX-License-Identifier: Apache-2.0
// Numbers as bytes. A row of x becomes x ≈ scale · (q - zero) with q in 0 .. 255, a scale and a
// zero of its own: the whole range of the row, zero included. A row of W becomes w ≈ scale · q with
// q in -127 .. 127. Then Σ x w = scale · scale_w · (Σ q q_w - zero · Σ q_w), whose sums are exact.
//
// Packed: PackedBytes, then panels as those of gemm.h. Internal to this room.
#pragma once

#include "fungi/kernel/epilogue.h"
#include "fungi/kernel/micro_kernel.h"

namespace fungi::kernel {
namespace {

constexpr size_t kByteLevels = 253;  // of 255: a rounded zero may move the ends by half a level
constexpr float kLeastRange = 1e-30f;

struct ByteRow {
  float scale, zero, inverse;  // not a number, 0 and 0 where the row is not finite
};

inline ByteRow byte_row(float low, float high) {
  const float range = high - low;
  if (!(range <= __FLT_MAX__)) return {__builtin_nanf(""), 0, 0};
  if (range < kLeastRange) return {0, 0, 0};
  const float inverse = float(kByteLevels) / range;
  return {range / float(kByteLevels), 1.0f + __builtin_rintf(-low * inverse), inverse};
}

// Of columns [0, k) of x, behind which zeros stand up to whole lines.
constexpr size_t kLineElements = 64 / sizeof(bfloat16);
using SignedHalves [[gnu::vector_size(FUNGI_VECTOR_BYTES)]] = int16_t;

// The bits of a bf16 as a number that grows with it; NaN lies beyond the infinities. Its own
// inverse.
template <class T>
FUNGI_INLINE T ordered_bits(T bits) {
  return bits ^ (bits >> 15 & 0x7fff);
}

inline ByteRow plain_byte_row(const bfloat16* x, size_t k) {
  SignedHalves low{}, high{};
  for (size_t j = 0; j < padded(k, kLineElements); j += 2 * kLanes) {
    SignedHalves v;
    __builtin_memcpy(&v, x + j, sizeof v);
    v = ordered_bits(v);
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  int16_t least = 0, most = 0;
  for (size_t l = 0; l < 2 * kLanes; ++l) {
    least = low[l] < least ? low[l] : least;
    most = high[l] > most ? high[l] : most;
  }
  const auto number = [](int16_t ordered) {
    return __builtin_bit_cast(float, uint32_t(uint16_t(ordered_bits(ordered))) << 16);
  };
  return byte_row(number(least), number(most));
}

inline ByteRow smoothed_byte_row(const bfloat16* x, size_t k, const float* factors) {
  Floats low{}, high{}, finite{};
  for (size_t j = 0; j < padded(k, kLineElements); j += kLanes) {
    const Floats v = load_elements(x + j) * load(factors + j);
    low = min(v, low);
    high = max(v, high);
    finite = fma(v, Floats{}, finite);  // NaN where one is not
  }
  const float zero = sum(finite);
  return byte_row(zero - largest(-low), largest(high));
}

// The lowest byte of every word, as bytes or as 16 bits; GCC 12 makes dozens of instructions of the
// conversion by vector extensions.
FUNGI_INLINE void store_bytes(Quad* to, size_t j, Words q) {
  uint8_t* place = reinterpret_cast<uint8_t*>(to) + j;
#if defined(__AVX512F__) && FUNGI_VECTOR_BYTES == 64
  const __m128i bytes = _mm512_maskz_cvtepi32_epi8(0xffff, __m512i(q));
  __builtin_memcpy(place, &bytes, sizeof bytes);
#else
  for (size_t l = 0; l < kLanes; ++l) place[l] = uint8_t(q[l]);
#endif
}
FUNGI_INLINE void store_bytes(Shorts* to, size_t j, Words q) {
  uint16_t* place = reinterpret_cast<uint16_t*>(to) + j;
  q &= 255;
#if defined(__AVX512F__) && FUNGI_VECTOR_BYTES == 64
  const __m256i halves = _mm512_maskz_cvtepi32_epi16(0xffff, __m512i(q));
  __builtin_memcpy(place, &halves, sizeof halves);
#elif FUNGI_VECTOR_BYTES == 16
  const __m128i halves = _mm_packs_epi32(__m128i(q), __m128i{});
  __builtin_memcpy(place, &halves, sizeof halves / 2);
#else
  const Halves halves = __builtin_convertvector(q, Halves);
  __builtin_memcpy(place, &halves, sizeof halves);
#endif
}

// put(column, bytes) for each register of columns [0, count) of a row; factors may be null.
template <class Put>
FUNGI_INLINE void each_byte_register(const bfloat16* x, size_t count, const float* factors,
                                     const ByteRow& row, Put put) {
  constexpr float kWhole = 12582912.0f;  // 1.5 · 2²³: in a sum with it the last bit counts ones
  const Floats inverse = all(row.inverse), shift = all(kWhole + row.zero);
  for (size_t j = 0; j < count; j += kLanes) {
    Floats v = load_elements(x + j);
    if (factors) v *= load(factors + j);
    put(j, Words(fma(v, inverse, shift)));
  }
}

// What stands before the panels.
struct PackedBytes {
  size_t columns, depth;  // padded

  PackedBytes(size_t n, size_t k)
      : columns(padded(n, kLanes < 8 ? 16 : kPanel)), depth(padded(k, kLineElements)) {}
  size_t bytes() const { return 64 + (2 * columns + depth) * sizeof(float); }

  // In this order: whether factors are to be used, scales and sums of W's rows, factors of x's
  // columns.
  static bool smoothed(const void* packed) { return *static_cast<const uint32_t*>(packed) != 0; }
  static const float* scales(const void* packed) {
    return reinterpret_cast<const float*>(static_cast<const char*>(packed) + 64);
  }
  const float* sums(const void* packed) const { return scales(packed) + columns; }
  const float* factors(const void* packed) const { return scales(packed) + 2 * columns; }
  const char* panels(const void* packed) const {
    return static_cast<const char*>(packed) + bytes();
  }
};

// Rows of W as whole numbers, one at a time.
struct ByteWeights {
  const float* w;
  size_t w_stride;
  bool transposed;
  const float* smoothing;  // or null

  float at(size_t i, size_t j) const {
    const float v = transposed ? w[j * w_stride + i] : w[i * w_stride + j];
    return smoothing ? v * smoothing[j] : v;
  }
  float scale(size_t i, size_t k) const {
    float peak = 0, finite = 0;
    for (size_t j = 0; j < k; ++j) {
      const float v = __builtin_fabsf(at(i, j));
      peak = v > peak ? v : peak;
      finite += v * 0.0f;
    }
    return peak / 127.0f + finite;
  }
};

// put(column, k, q) of every q that is not 0.
template <class Put>
void pack_bytes(const ByteWeights& w, size_t n, size_t k, void* packed, Put put) {
  const PackedBytes layout(n, k);
  __builtin_memset(packed, 0, layout.bytes());
  *static_cast<uint32_t*>(packed) = w.smoothing != nullptr;
  float* scales = static_cast<float*>(packed) + 16;
  float *sums = scales + layout.columns, *factors = sums + layout.columns;
  for (size_t j = 0; j < k; ++j) factors[j] = w.smoothing ? 1.0f / w.smoothing[j] : 1.0f;
  for (size_t i = 0; i < n; ++i) {
    scales[i] = w.scale(i, k);
    const float inverse = scales[i] > kLeastRange ? 1.0f / scales[i] : 0.0f;
    int32_t sum = 0;
    if (inverse > 0)
      for (size_t j = 0; j < k; ++j) {
        const int q = int(__builtin_rintf(w.at(i, j) * inverse));
        const int kept = q > 127 ? 127 : q < -127 ? -127 : q;
        put(i, j, kept);
        sum += kept;
      }
    sums[i] = float(sum);
  }
}

using ByteOutlet = Outlet<bfloat16, true>;

// Rows of sums of whole numbers as what they stand for; see Sums.
struct ByteSums {
  const float* at;
  size_t stride;
  const ByteRow* row;
  const float *scales, *column_sums;

  struct Column {
    const float* at;
    size_t stride;
    const ByteRow* row;
    Floats scale, sum;
    FUNGI_INLINE Floats operator()(size_t i) const {
      using Ints [[gnu::vector_size(FUNGI_VECTOR_BYTES)]] = int32_t;
      const Floats whole = __builtin_convertvector(Ints(load(at + i * stride)), Floats);
      return fma(all(-row[i].zero), sum, whole) * (scale * row[i].scale);
    }
  };
  FUNGI_INLINE Column column(size_t j) const {
    return {at + j, stride, row, load(scales + j), load(column_sums + j)};
  }
};

}  // namespace
}  // namespace fungi::kernel
