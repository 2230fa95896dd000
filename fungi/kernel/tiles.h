// SPDX-License-Identifier: Apache-2.0
// AMX tiles behind a few words. All eight tiles are 16 rows of 64 bytes: A holds 16 x 32 bf16, B 16
// pairs of k x 16 columns, C 16 x 16 floats; or A 16 x 64 bytes without a sign, B 16 fours of k x
// 16 columns of bytes with one, C 16 x 16 whole numbers. With FUNGI_EMULATE_TILES the same words
// work on plain arrays, so that the logic built on them can be tested on a machine without tiles.
//
// Inline assembly rather than intrinsics: GCC 12's intrinsics hide from the compiler which memory
// is read, so stores into the configuration (or into a buffer about to be loaded) may be dropped.
// Here the configuration is an operand, tile_store clobbers memory, and whoever fills a buffer for
// tile_load calls written() first. Internal to this room.
#pragma once

#include "fungi/kernel/vector.h"

namespace fungi::kernel {
namespace {

constexpr size_t kTile = 16;                         // rows of every tile; columns of a C tile
constexpr size_t kTileStep = 32;                     // of k in one product
constexpr size_t kTileElements = kTile * kTileStep;  // bf16 of an A or B tile

#ifdef FUNGI_EMULATE_TILES

thread_local unsigned char emulated_tiles[8][kTile][64];

inline void tile_config() {
  for (auto& tile : emulated_tiles) __builtin_memset(tile, 0, sizeof tile);
}
inline void tile_release() {}
inline void written() {}

template <int T>
void tile_zero() {
  __builtin_memset(emulated_tiles[T], 0, sizeof emulated_tiles[T]);
}
template <int T>
void tile_load(const void* base, size_t stride) {
  for (size_t i = 0; i < kTile; ++i)
    __builtin_memcpy(emulated_tiles[T][i], static_cast<const char*>(base) + i * stride, 64);
}
template <int T>
void tile_stream(const void* base, size_t stride) {
  tile_load<T>(base, stride);
}
template <int T>
void tile_store(void* base, size_t stride) {
  for (size_t i = 0; i < kTile; ++i)
    __builtin_memcpy(static_cast<char*>(base) + i * stride, emulated_tiles[T][i], 64);
}
template <int C, int A, int B>
void tile_multiply(bfloat16) {
  for (size_t i = 0; i < kTile; ++i) {
    float c[kTile];
    uint32_t a[kTile], b[kTile];
    __builtin_memcpy(c, emulated_tiles[C][i], 64);
    __builtin_memcpy(a, emulated_tiles[A][i], 64);
    for (size_t p = 0; p < kTile; ++p) {
      __builtin_memcpy(b, emulated_tiles[B][p], 64);
      for (size_t j = 0; j < kTile; ++j)
        for (int half = 0; half < 2; ++half) {
          const uint32_t left = half ? a[p] & 0xffff0000u : a[p] << 16;
          const uint32_t right = half ? b[j] & 0xffff0000u : b[j] << 16;
          c[j] += __builtin_bit_cast(float, left) * __builtin_bit_cast(float, right);
        }
    }
    __builtin_memcpy(emulated_tiles[C][i], c, 64);
  }
}
template <int C, int A, int B>
void tile_multiply(uint8_t) {
  for (size_t i = 0; i < kTile; ++i) {
    int32_t c[kTile];
    __builtin_memcpy(c, emulated_tiles[C][i], 64);
    for (size_t k = 0; k < 4 * kTile; ++k)
      for (size_t j = 0; j < kTile; ++j)
        c[j] += emulated_tiles[A][i][k] * int8_t(emulated_tiles[B][k / 4][4 * j + k % 4]);
    __builtin_memcpy(emulated_tiles[C][i], c, 64);
  }
}

#else

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {kTile, kTile, kTile, kTile, kTile, kTile, kTile, kTile};
};

FUNGI_INLINE void tile_config() {
  const TileConfig config;
  __asm__ volatile("ldtilecfg %0" : : "m"(config));
}
FUNGI_INLINE void tile_release() { __asm__ volatile("tilerelease"); }
FUNGI_INLINE void written() { __asm__ volatile("" : : : "memory"); }

template <int T>
FUNGI_INLINE void tile_zero() {
  __asm__ volatile("tilezero %%tmm%c0" : : "i"(T));
}
template <int T>
FUNGI_INLINE void tile_load(const void* base, size_t stride) {
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(base), "r"(stride), "i"(T));
}
// The same for what comes back only after L1 has been filled anew: it need not displace the rest.
template <int T>
FUNGI_INLINE void tile_stream(const void* base, size_t stride) {
  __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" : : "r"(base), "r"(stride), "i"(T));
}
template <int T>
FUNGI_INLINE void tile_store(void* base, size_t stride) {
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(base), "r"(stride), "i"(T) : "memory");
}
template <int C, int A, int B>
FUNGI_INLINE void tile_multiply(bfloat16) {
  __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(C), "i"(A), "i"(B));
}
template <int C, int A, int B>
FUNGI_INLINE void tile_multiply(uint8_t) {
  __asm__ volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(C), "i"(A), "i"(B));
}

#endif

// 16·R rows of A (a_stride in bytes) times one panel of 32 columns, in `steps` steps of k, added to
// R x 2 tiles of sums. between(s) runs after step s: other work, for the vector units, while the
// tile unit is busy. `backwards` walks k from the end: neighbouring panels walk in opposite
// directions, so that half of A is met again while it is still in L1. `Stream`: the panel is met
// again too late for L1 (A and the panel together exceed it), where it would only displace A.
// Factor: bfloat16, or uint8_t for a and what belongs to it.
template <size_t R, bool Stream, class Factor, class Between>
FUNGI_INLINE void tile_panel(size_t steps, bool backwards, const Factor* a, size_t a_stride,
                             const Factor* packed, Between between) {
  constexpr ptrdiff_t kTileBytes = kTile * 64;
  const char* left = reinterpret_cast<const char*>(a);
  const char* panel = reinterpret_cast<const char*>(packed);
  ptrdiff_t left_step = 64, panel_step = 2 * kTileBytes;
  if (backwards) {
    left += (steps - 1) * 64;
    panel += ptrdiff_t(steps - 1) * panel_step;
    left_step = -left_step;
    panel_step = -panel_step;
  }
  const auto load_panel = []<int T>(const char* tile) FUNGI_FORCE {
    if constexpr (Stream)
      tile_stream<T>(tile, 64);
    else
      tile_load<T>(tile, 64);
  };
  for (size_t s = 0; s < steps; ++s, left += left_step, panel += panel_step) {
    load_panel.template operator()<6>(panel);
    tile_load<4>(left, a_stride);
    tile_multiply<0, 4, 6>(Factor{});
    load_panel.template operator()<7>(panel + kTileBytes);
    tile_multiply<1, 4, 7>(Factor{});
    if constexpr (R == 2) {
      tile_load<5>(left + kTile * a_stride, a_stride);
      tile_multiply<2, 5, 6>(Factor{});
      tile_multiply<3, 5, 7>(Factor{});
    }
    between(s);
  }
}

// The sums before the first step: zeros, or what earlier steps have left in c.
template <size_t R>
FUNGI_INLINE void tile_clear() {
  tile_zero<0>();
  tile_zero<1>();
  if constexpr (R == 2) {
    tile_zero<2>();
    tile_zero<3>();
  }
}
template <size_t R>
FUNGI_INLINE void tile_resume(const float* c, size_t c_stride) {
  const size_t stride = c_stride * sizeof(float);
  tile_load<0>(c, stride);
  tile_load<1>(c + kTile, stride);
  if constexpr (R == 2) {
    tile_load<2>(c + kTile * c_stride, stride);
    tile_load<3>(c + kTile * c_stride + kTile, stride);
  }
}

// c [16·R, 32] with c_stride floats between rows.
template <size_t R>
FUNGI_INLINE void tile_sums(float* c, size_t c_stride) {
  const size_t stride = c_stride * sizeof(float);
  tile_store<0>(c, stride);
  tile_store<1>(c + kTile, stride);
  if constexpr (R == 2) {
    tile_store<2>(c + kTile * c_stride, stride);
    tile_store<3>(c + kTile * c_stride + kTile, stride);
  }
}

}  // namespace
}  // namespace fungi::kernel
