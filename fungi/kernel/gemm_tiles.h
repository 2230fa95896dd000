// SPDX-License-Identifier: Apache-2.0
// GEMM on AMX tiles: 32 x 32 sums in four tiles, A straight from the rows of x, W packed once as
// pairs of k. A group of W's panels stays in L2 while all rows of x pass. The epilogue of a block
// runs in slices between the steps of the next block: vector and tile units work side by side, and
// the sums have left the store buffer by then.
#pragma once

#include "fungi/kernel/epilogue.h"
#include "fungi/kernel/tiles.h"

namespace fungi::kernel {
namespace {

constexpr size_t kTilePanel = 32;                    // columns of W side by side: two tiles
constexpr size_t kStepElements = 2 * kTileElements;  // of a panel in one step of k
constexpr size_t kBlockRows = 2 * kTile;
constexpr size_t kGroupBytes = FUNGI_L2_BYTES / 2;  // of W kept in L2

inline size_t tile_packed_bytes(size_t n, size_t k) noexcept {
  return padded(n, kTilePanel) * padded(k, kTileStep) * sizeof(bfloat16);
}

// One tile of W: its row p holds the pair (2p, 2p + 1) of `deep` k, of each of `columns` columns.
// They lie as rows of w, or, turned, as columns.
static_assert(kTile == kLanes);
FUNGI_INLINE void pack_tile(const float* w, size_t w_stride, size_t columns, size_t deep,
                            bfloat16* tile) {
  Words pairs[kTile] = {};
  for (size_t j = 0; j < columns; ++j) {
    const Floats low = load(w + j * w_stride, smaller(deep, kLanes));
    const Floats high = deep > kLanes ? load(w + j * w_stride + kLanes, deep - kLanes) : Floats{};
    const Halves both[2] = {__builtin_convertvector(rounded_words(low) >> 16, Halves),
                            __builtin_convertvector(rounded_words(high) >> 16, Halves)};
    __builtin_memcpy(&pairs[j], both, sizeof both);
  }
  transpose(pairs);
  __builtin_memcpy(tile, pairs, sizeof pairs);
}
FUNGI_INLINE void pack_turned_tile(const float* w, size_t w_stride, size_t columns, size_t deep,
                                   bfloat16* tile) {
  for (size_t i = 0; i < kTileStep; i += 2, tile += kTileStep) {
    const Floats even = i < deep ? load(w + i * w_stride, columns) : Floats{};
    const Floats odd = i + 1 < deep ? load(w + (i + 1) * w_stride, columns) : Floats{};
    const Words both = rounded_words(even) >> 16 | (rounded_words(odd) & 0xffff0000u);
    __builtin_memcpy(tile, &both, sizeof both);
  }
}

// [panel][step of k][half of the panel][pair of k][column][which of the pair]
inline void tile_pack(const float* w, size_t w_stride, bool transposed, size_t n, size_t k,
                      void* packed) noexcept {
  bfloat16* tile = static_cast<bfloat16*>(packed);
  for (size_t panel = 0; panel < n; panel += kTilePanel)
    for (size_t step = 0; step < k; step += kTileStep)
      for (size_t first = panel; first < panel + kTilePanel;
           first += kTile, tile += kTileElements) {
        const size_t columns = first < n ? smaller(kTile, n - first) : 0;
        const size_t deep = smaller(kTileStep, k - step);
        if (columns == 0)
          __builtin_memset(tile, 0, kTileElements * sizeof(bfloat16));
        else if (transposed)
          pack_turned_tile(w + step * w_stride + first, w_stride, columns, deep, tile);
        else
          pack_tile(w + first * w_stride + step, w_stride, columns, deep, tile);
      }
}

inline size_t tile_gemm_scratch(size_t, size_t, size_t k) noexcept {
  return kBlockRows * kTilePanel * sizeof(float) +
         kBlockRows * padded(k, kTileStep) * sizeof(bfloat16);
}

FUNGI_INLINE void prefetch_bytes(const void* from, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 64)
    __builtin_prefetch(static_cast<const char*>(from) + i, 0, 2);
}

// The block whose sums wait for their epilogue.
struct Waiting {
  Outlet<bfloat16> outlet;
  size_t next, rows, cols;
  const float* sums;

  template <Activation A>
  FUNGI_INLINE void advance(size_t count) {
    for (const size_t end = smaller(rows, next + count); next < end; ++next) {
      const float* row = sums + next * kTilePanel;
      if (cols == kTilePanel)
        outlet.take<A>(next, kTilePanel, row);
      else
        outlet.take<A>(next, cols, row);
    }
  }
};

struct TileProblem {
  size_t m, n, steps;
  const bfloat16 *x, *tail;  // tail: the last m % 32 rows, filled up with zeros
  size_t x_stride;           // bytes, of x; tail rows are steps·64 bytes
  const bfloat16* packed;
  const Epilogue& epilogue;
  float* sums;
};

// R row tiles against one panel, while `waiting` is being finished; then this block waits.
template <Activation A, size_t R>
FUNGI_INLINE void tile_block(const TileProblem& p, size_t row, size_t panel, bool first_pass,
                             Waiting& waiting) {
  const bool whole = row + R * kTile <= p.m;
  const bfloat16* a = whole ? p.x + row * (p.x_stride / sizeof(bfloat16)) : p.tail;
  const bfloat16* b = p.packed + panel * p.steps * kStepElements;
  const Outlet<bfloat16> outlet(p.epilogue, row, panel * kTilePanel);
  const size_t rows = smaller(R * kTile, p.m - row);
  // Sums need a while to leave the store buffer; then as many rows per step as finish them in time.
  const size_t delay = p.steps > 8 ? 2 : 0;
  const size_t pace = (kBlockRows + p.steps - delay - 1) / (p.steps - delay);
  tile_panel<R, true>(p.steps, panel % 2 && !p.epilogue.columns_alone, a,
                      whole ? p.x_stride : p.steps * 64, b, [&](size_t s) FUNGI_FORCE {
                        if (first_pass)
                          prefetch_bytes(b + (p.steps + s) * kStepElements, 2 * kStepElements);
                        if (outlet.residual)  // what the next block's steps will read
                          for (size_t i = s * pace; i < smaller(rows, (s + 1) * pace); ++i)
                            prefetch_bytes(outlet.residual + i * outlet.residual_stride,
                                           kTilePanel * sizeof(float));
                        if (s >= delay) waiting.advance<A>(pace);
                      });
  waiting.advance<A>(kBlockRows);
  tile_sums<R>(p.sums, kTilePanel);
  waiting = {outlet, 0, rows, smaller(kTilePanel, p.n - panel * kTilePanel), p.sums};
}

template <Activation A>
void tile_product(const TileProblem& p) {
  const size_t panels = padded(p.n, kTilePanel) / kTilePanel;
  const size_t fit = larger(kGroupBytes / (p.steps * kStepElements * sizeof(bfloat16)), 1);
  const size_t groups = (panels + fit - 1) / fit, group = (panels + groups - 1) / groups;
  Waiting waiting{Outlet<bfloat16>(p.epilogue, 0, 0), 0, 0, kTilePanel, p.sums};
  for (size_t begin = 0; begin < panels; begin += group) {
    const size_t end = smaller(panels, begin + group);
    for (size_t row = 0; row < p.m; row += kBlockRows)
      for (size_t panel = begin; panel < end; ++panel) {
        const size_t ahead = row + kBlockRows;  // the next rows of x come a few with each panel
        for (size_t i = panel - begin; i < kBlockRows && ahead + i < p.m; i += end - begin)
          prefetch_bytes(p.x + (ahead + i) * (p.x_stride / sizeof(bfloat16)), p.steps * 64);
        if (row + kTile < p.m)
          tile_block<A, 2>(p, row, panel, row == 0 && panel + 1 < panels, waiting);
        else
          tile_block<A, 1>(p, row, panel, row == 0 && panel + 1 < panels, waiting);
      }
  }
  waiting.advance<A>(kBlockRows);
}

inline void tile_gemm(size_t m, const void* x, size_t x_stride, const PackedMatrix& weights,
                      const Epilogue& e, void* scratch) noexcept {
  const PackedView w = view_of(weights);
  const size_t row_bytes = padded(w.k, kTileStep) * sizeof(bfloat16), tail_rows = m % kBlockRows;
  float* sums = static_cast<float*>(scratch);
  char* tail = reinterpret_cast<char*>(sums + kBlockRows * kTilePanel);
  const char* rows = static_cast<const char*>(x);
  const size_t x_bytes = x_stride * sizeof(bfloat16);
  if (tail_rows != 0) {
    for (size_t i = 0; i < tail_rows; ++i)
      __builtin_memcpy(tail + i * row_bytes, rows + (m - tail_rows + i) * x_bytes, row_bytes);
    const size_t filled = padded(tail_rows, kTile);
    __builtin_memset(tail + tail_rows * row_bytes, 0, (filled - tail_rows) * row_bytes);
  }
  written();
  const TileProblem problem{m,
                            w.n,
                            row_bytes / 64,
                            static_cast<const bfloat16*>(x),
                            reinterpret_cast<const bfloat16*>(tail),
                            x_bytes,
                            static_cast<const bfloat16*>(w.data),
                            e,
                            sums};
  tile_config();
  with_activation(e.activation, [&]<Activation A>() FUNGI_FORCE { tile_product<A>(problem); });
  tile_release();
}

}  // namespace
}  // namespace fungi::kernel
