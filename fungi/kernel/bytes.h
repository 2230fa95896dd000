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
  float scale, offset, inverse;  // offset: -zero. Not a number, 0 and 0 where it is not finite
};

inline ByteRow byte_row(float low, float high) {
  const float range = high - low;
  if (!(range <= __FLT_MAX__)) return {__builtin_nanf(""), 0, 0};
  if (range < kLeastRange) return {0, 0, 0};
  const float inverse = float(kByteLevels) / range;
  return {range / float(kByteLevels), -1.0f - __builtin_rintf(-low * inverse), inverse};
}

// Behind columns [0, k) of x zeros stand up to whole lines.
constexpr size_t kLineElements = 64 / sizeof(bfloat16);
using SignedHalves [[gnu::vector_size(FUNGI_VECTOR_BYTES)]] = int16_t;

// A register of x, whose even and odd numbers are the halves of its words.
FUNGI_INLINE Words load_pairs(const bfloat16* x) {
  Words pairs;
  __builtin_memcpy(&pairs, x, sizeof pairs);
  return pairs;
}
FUNGI_INLINE Floats even_of(Words pairs) { return Floats(pairs << 16); }
FUNGI_INLINE Floats odd_of(Words pairs) { return Floats(pairs & 0xffff0000u); }

inline uint16_t largest_half(Elements v) {
  using Eight [[gnu::vector_size(16)]] = uint16_t;
  constexpr size_t kParts = sizeof v / sizeof(Eight);
  Eight part[kParts];
  __builtin_memcpy(part, &v, sizeof v);
  for (size_t half = kParts / 2; half > 0; half /= 2)
    for (size_t i = 0; i < half; ++i)
      part[i] = part[i] > part[i + half] ? part[i] : part[i + half];
#if defined(__SSE4_1__)
  return uint16_t(~_mm_cvtsi128_si32(_mm_minpos_epu16(__m128i(~part[0]))));
#else
  uint16_t most = 0;
  for (size_t l = 0; l < 8; ++l) most = part[0][l] > most ? part[0][l] : most;
  return most;
#endif
}

// As numbers with a sign the bits of a bf16 grow with it from 0 on; as numbers without, they grow
// with its size from -0 on. NaN lies beyond the infinities.
inline ByteRow plain_byte_row(const bfloat16* x, size_t k) {
  SignedHalves high{};
  Elements low = Elements{} + 0x8000;
  for (size_t j = 0; j < padded(k, kLineElements); j += 2 * kLanes) {
    const Words pairs = load_pairs(x + j);
    const SignedHalves s = SignedHalves(pairs);
    const Elements u = Elements(pairs);
    high = s > high ? s : high;
    low = u > low ? u : low;
  }
  const auto number = [](uint16_t bits) {
    return __builtin_bit_cast(float, uint32_t(bits) << 16);
  };
  return byte_row(number(largest_half(low)), number(largest_half(Elements(high))));
}

inline ByteRow smoothed_byte_row(const bfloat16* x, size_t k, const float* factors) {
  Floats low{}, high{};
  Elements size{};
  for (size_t j = 0; j < padded(k, kLineElements); j += 2 * kLanes) {
    const Words pairs = load_pairs(x + j);
    const Floats even = even_of(pairs) * load(factors + j);
    const Floats odd = odd_of(pairs) * load(factors + j + kLanes);
    low = min(odd, min(even, low));
    high = max(odd, max(even, high));
    const Elements sizes = Elements(pairs) & 0x7fff;
    size = sizes > size ? sizes : size;
  }
  constexpr uint16_t kInfinity = 0x7f80;
  if (largest_half(size) >= kInfinity) return byte_row(0, __builtin_inff());
  return byte_row(-largest(-low), largest(high));
}

// The numbers of a row are rounded in registers, where they are the lowest bytes of words; Step of
// these words become one, of two bytes of 16 bits or of four of 8. So in fours columns change
// places, in x and in W, within kTogether of them: a word takes two neighbours out of each half.
template <size_t Step>
constexpr size_t kTogether = Step * kLanes;
template <size_t Step>
constexpr size_t place_of(size_t column) {
  if (Step == 2) return column;
  const size_t in = column % kTogether<4>, half = in / (2 * kLanes), pair = in % (2 * kLanes) / 2;
  return column - in + pair * 4 + half * 2 + in % 2;
}
// Where the factor of a column of x stands: those of a register's even numbers, then of its odd.
constexpr size_t factor_place(size_t column) {
  const size_t in = column % (2 * kLanes);
  return column - in + in % 2 * kLanes + in / 2;
}

// put(column, words) for columns [0, k) of a row, kTogether at a time; factors may be null.
template <size_t Step, class Put>
FUNGI_INLINE void each_byte_register(const bfloat16* x, size_t k, const float* factors,
                                     const ByteRow& row, Put put) {
  constexpr float kWhole = 12582912.0f;  // 1.5 · 2²³: in a sum with it the last bit counts ones
  constexpr uint32_t kBits = 0x4b400000u;  // of it
  const Floats inverse = all(row.inverse), shift = all(kWhole - row.offset);
  const auto whole = [&](size_t j, Words& even, Words& odd) FUNGI_FORCE {
    const Words pairs = load_pairs(x + j);
    Floats e = even_of(pairs), o = odd_of(pairs);
    if (factors) e *= load(factors + j), o *= load(factors + j + kLanes);
    even = Words(fma(e, inverse, shift)), odd = Words(fma(o, inverse, shift));
  };
  for (size_t j = 0; j < k; j += kTogether<Step>) {
    Words even, odd;
    whole(j, even, odd);
    if constexpr (Step == 2) {
      put(j, even ^ odd << 16 ^ kBits);
    } else {
      Words third = Words{} + kBits, fourth = third;  // zeros, where the row has ended
      if (j + 2 * kLanes < padded(k, kLineElements)) whole(j + 2 * kLanes, third, fourth);
      constexpr uint32_t kAll = kBits ^ kBits << 8 ^ kBits << 16 ^ kBits << 24;
      put(j, even ^ odd << 8 ^ third << 16 ^ (fourth << 24 ^ kAll));
    }
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

// put(column, place, q) of every q that is not 0.
template <size_t Step, class Put>
void pack_bytes(const ByteWeights& w, size_t n, size_t k, void* packed, Put put) {
  const PackedBytes layout(n, k);
  __builtin_memset(packed, 0, layout.bytes());
  *static_cast<uint32_t*>(packed) = w.smoothing != nullptr;
  float* scales = static_cast<float*>(packed) + 16;
  float *sums = scales + layout.columns, *factors = sums + layout.columns;
  for (size_t j = 0; j < k; ++j)
    factors[factor_place(j)] = w.smoothing ? 1.0f / w.smoothing[j] : 1.0f;
  for (size_t i = 0; i < n; ++i) {
    scales[i] = w.scale(i, k);
    const float inverse = scales[i] > kLeastRange ? 1.0f / scales[i] : 0.0f;
    int32_t sum = 0;
    if (inverse > 0)
      for (size_t j = 0; j < k; ++j) {
        const int q = int(__builtin_rintf(w.at(i, j) * inverse));
        const int kept = q > 127 ? 127 : q < -127 ? -127 : q;
        put(i, place_of<Step>(j), kept);
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
    FUNGI_INLINE Floats whole(size_t i) const {
      using Ints [[gnu::vector_size(FUNGI_VECTOR_BYTES)]] = int32_t;
      const Floats sums = __builtin_convertvector(Ints(load(at + i * stride)), Floats);
      return fma(all(row[i].offset), sum, sums);
    }
    FUNGI_INLINE Floats operator()(size_t i) const { return whole(i) * (scale * row[i].scale); }
    FUNGI_INLINE Floats plus(size_t i, Floats bias) const {
      return fma(whole(i), scale * row[i].scale, bias);
    }
  };
  FUNGI_INLINE Column column(size_t j) const {
    return {at + j, stride, row, load(scales + j), load(column_sums + j)};
  }
};

}  // namespace
}  // namespace fungi::kernel
