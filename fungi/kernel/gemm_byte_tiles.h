// SPDX-License-Identifier: Apache-2.0
// GEMM of int8 on AMX tiles: 32 x 32 whole numbers in four tiles. Rows of x become bytes in L2, an
// odd number of lines apart; every panel of W meets all of them, and the epilogue of a block runs
// between the steps of the next, as in gemm_tiles.h. Internal to this room.
#pragma once

#include "fungi/kernel/bytes.h"
#include "fungi/kernel/gemm_tiles.h"

namespace fungi::kernel {
namespace {

constexpr size_t kByteTileStep = 64;                           // of k in one product
constexpr size_t kBytePanelStep = kTilePanel * kByteTileStep;      // bytes of a panel in one step
constexpr size_t kByteTileRowsBytes = FUNGI_L2_BYTES / 8 * 3;  // of x as bytes

constexpr size_t byte_tile_steps(size_t k) { return padded(k, kByteTileStep) / kByteTileStep; }
FUNGI_INLINE size_t byte_tile_block(size_t k) {
  const size_t fit = kByteTileRowsBytes / (larger(tail_stride(byte_tile_steps(k)), 1) * kBlockRows);
  return larger(fit, 1) * kBlockRows;
}

inline size_t tile_byte_packed_bytes(size_t n, size_t k) noexcept {
  return PackedBytes(n, k).bytes() + padded(n, kTilePanel) * padded(k, kByteTileStep);
}

inline size_t tile_byte_scratch(size_t m, size_t, size_t k) noexcept {
  const size_t rows = smaller(padded(m, kBlockRows), byte_tile_block(k));
  return kBlockSums * sizeof(float) + rows * (tail_stride(byte_tile_steps(k)) + sizeof(ByteRow));
}

// [panel][step of k][half of the panel][four of k][column][which of the four]
inline void tile_pack_bytes(const ByteWeights& w, size_t n, size_t k, void* packed) {
  char* panels = static_cast<char*>(packed) + PackedBytes(n, k).bytes();
  const size_t steps = byte_tile_steps(k);
  __builtin_memset(panels, 0, padded(n, kTilePanel) * padded(k, kByteTileStep));
  pack_bytes<4>(w, n, k, packed, [&](size_t i, size_t j, int q) FUNGI_FORCE {
    char* tile = panels + (i / kTilePanel * steps + j / kByteTileStep) * kBytePanelStep +
                 i % kTilePanel / kTile * (kBytePanelStep / 2);
    tile[j % kByteTileStep / 4 * 64 + i % kTile * 4 + j % 4] = char(q);
  });
}
inline void tile_byte_pack(const float* w, size_t w_stride, bool transposed, size_t n, size_t k,
                           void* packed) noexcept {
  tile_pack_bytes({w, w_stride, transposed, nullptr}, n, k, packed);
}
inline void tile_byte_pack_smoothed(const float* w, size_t w_stride, size_t n, size_t k,
                                    const float* smoothing, void* packed) noexcept {
  tile_pack_bytes({w, w_stride, false, smoothing}, n, k, packed);
}

// The block whose sums wait for their epilogue.
struct WaitingBytes {
  ByteOutlet outlet;
  size_t next, rows, cols;
  float* sums;
  const ByteRow* row;
  const float *scales, *column_sums;

  template <Activation A>
  FUNGI_INLINE void advance_to(size_t end) {
    end = smaller(rows, end);
    if (next >= end) return;
    const ByteSums finished{sums, kTilePanel, row, scales, column_sums};
    if (cols == kTilePanel)
      outlet.take_rows<A>(next, end, finished);
    else
      for (size_t i = next; i < end; ++i) outlet.take<A>(i, cols, finished);
    next = end;
  }
};

struct ByteTileProblem {
  size_t rows, n, steps, stride;  // stride: bytes between rows
  const uint8_t* x;
  const ByteRow* row;
  const void* packed;
  const PackedBytes& layout;
  float* sums;
};

template <Activation A, size_t R>
FUNGI_INLINE void byte_tile_block_product(const ByteTileProblem& p, size_t row, size_t panel,
                                          const ByteOutlet& outlet, WaitingBytes& waiting) {
  const Pace pace(p.steps);
  const auto* panels = reinterpret_cast<const uint8_t*>(p.layout.panels(p.packed));
  tile_clear<R>();
  tile_panel<R, true>(p.steps, false, p.x + row * p.stride, p.stride,
                      panels + panel * p.steps * kBytePanelStep,
                      [&](size_t s) FUNGI_FORCE { waiting.advance_to<A>(pace.rows_after(s + 1)); });
  waiting.advance_to<A>(kBlockRows);
  tile_sums<R>(p.sums, kTilePanel);
  const size_t column = panel * kTilePanel;
  waiting = {outlet,
             0,
             smaller(R * kTile, p.rows - row),
             smaller(kTilePanel, p.n - column),
             p.sums,
             p.row + row,
             PackedBytes::scales(p.packed) + column,
             p.layout.sums(p.packed) + column};
}

inline void tile_byte_gemm(size_t m, const void* x, size_t x_stride, const PackedMatrix& weights,
                           const Epilogue& e, void* scratch) noexcept {
  const PackedView w = view_of(weights);
  if (m == 0 || w.k == 0) return;  // as the other tables
  const PackedBytes layout(w.n, w.k);
  const float* factors = PackedBytes::smoothed(w.data) ? layout.factors(w.data) : nullptr;
  const size_t steps = byte_tile_steps(w.k), stride = tail_stride(steps);
  const size_t most = smaller(padded(m, kBlockRows), byte_tile_block(w.k));
  float* sums = static_cast<float*>(scratch);
  auto* bytes = reinterpret_cast<uint8_t*>(sums + kBlockSums);
  auto* row = reinterpret_cast<ByteRow*>(bytes + most * stride);
  tile_config();
  for (size_t i0 = 0; i0 < m; i0 += most) {
    const size_t rows = smaller(most, m - i0);
    const bfloat16* from = static_cast<const bfloat16*>(x) + i0 * x_stride;
    for (size_t i = 0; i < rows; ++i, from += x_stride) {
      row[i] = factors ? smoothed_byte_row(from, w.k, factors) : plain_byte_row(from, w.k);
      uint8_t* to = bytes + i * stride;
      each_byte_register<4>(from, w.k, factors, row[i], [&](size_t j, Words q) FUNGI_FORCE {
        __builtin_memcpy(to + j, &q, sizeof q);
      });
    }
    __builtin_memset(bytes + rows * stride, 0, (padded(rows, kTile) - rows) * stride);
    written();
    const ByteTileProblem p{rows, w.n, steps, stride, bytes, row, w.data, layout, sums};
    with_activation(e.activation, [&]<Activation A>() FUNGI_FORCE {
      WaitingBytes waiting{ByteOutlet(e, 0, 0), 0, 0, 0, sums, row, nullptr, nullptr};
      for (size_t panel = 0; panel * kTilePanel < w.n; ++panel)
        for (size_t i = 0; i < rows; i += kBlockRows) {
          const ByteOutlet outlet(e, i0 + i, panel * kTilePanel);
          if (i + kTile < rows)
            byte_tile_block_product<A, 2>(p, i, panel, outlet, waiting);
          else
            byte_tile_block_product<A, 1>(p, i, panel, outlet, waiting);
        }
      waiting.advance_to<A>(kBlockRows);
    });
  }
  tile_release();
}

}  // namespace
}  // namespace fungi::kernel
