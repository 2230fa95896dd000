// SPDX-License-Identifier: Apache-2.0
// GEMM on AMX tiles: 32 x 32 sums in four tiles, A straight from the rows of x, W packed once as
// pairs of k. A group of W's panels stays in L2 while all rows of x pass. The first rows meet a few
// panels at a time, so that the next ones come from memory while several blocks use these. A long k
// is cut into slices, whose part of A stays in L1 while the panels of the group pass.
// The epilogue of a block runs between the steps of the next block: vector and tile units work side
// by side, and the sums have left the store buffer by then. Internal to this room.
#pragma once

#include "fungi/kernel/epilogue.h"
#include "fungi/kernel/tiles.h"

namespace fungi::kernel {
namespace {

constexpr size_t kTilePanel = 32;                    // columns of W side by side: two tiles
constexpr size_t kStepElements = 2 * kTileElements;  // of a panel in one step of k
constexpr size_t kBlockRows = 2 * kTile;
constexpr size_t kBlockSums = kBlockRows * kTilePanel;
constexpr size_t kGroupBytes = FUNGI_L2_BYTES / 8 * 5;  // of W kept in L2
constexpr size_t kLeadBytes = FUNGI_L2_BYTES / 16 * 3;  // of x, of the rows that go first
constexpr size_t kLeadBlocks = 8, kLeadPanels = 4;      // at most, of them and of what they meet
constexpr size_t kUnslicedSteps = 40, kSliceSteps = 10;

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
    const Words both = rounded_pairs(even, odd);
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

// How the columns and the depth of W are cut.
struct TileCut {
  size_t steps, panels, group, slices;

  TileCut(size_t n, size_t k)
      : steps(padded(k, kTileStep) / kTileStep), panels(padded(n, kTilePanel) / kTilePanel) {
    const size_t fit = larger(kGroupBytes / larger(panel_bytes(), 1), 1);
    const size_t groups = larger((panels + fit - 1) / fit, 1);
    group = (panels + groups - 1) / groups;
    slices = steps <= kUnslicedSteps ? 1 : (steps + kSliceSteps - 1) / kSliceSteps;
  }
  size_t panel_bytes() const { return steps * kStepElements * sizeof(bfloat16); }
  // Blocks whose sums wait for the next slice; no fewer for a longer k, of which fewer panels fit.
  size_t open_blocks() const {
    constexpr size_t kShortest = (kUnslicedSteps + 1) * kStepElements * sizeof(bfloat16);
    return slices == 1 ? 1 : larger(kGroupBytes / kShortest, kLeadBlocks);
  }
};

// An odd number of lines, so that rows do not meet in the same sets of L1.
FUNGI_INLINE size_t tail_stride(size_t steps) { return (steps | 1) * 64; }

inline size_t tile_gemm_scratch(size_t, size_t n, size_t k) noexcept {
  const TileCut cut(n, k);
  return cut.open_blocks() * kBlockSums * sizeof(float) + kBlockRows * tail_stride(cut.steps);
}

FUNGI_INLINE void prefetch_bytes(const void* from, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 64)
    __builtin_prefetch(static_cast<const char*>(from) + i, 0, 2);
}

// Whole lines on their way to L2, a share of them with every step.
struct Ahead {
  const char *next = nullptr, *end = nullptr;
  size_t share = 0;

  Ahead() = default;
  Ahead(const bfloat16* from, size_t bytes, size_t steps)
      : next(reinterpret_cast<const char*>(from)),
        end(next + bytes),
        share(padded((bytes + steps - 1) / steps, 64)) {}
  FUNGI_INLINE void advance() {
    const size_t bytes = smaller(share, size_t(end - next));
    prefetch_bytes(next, bytes);
    next += bytes;
  }
};

FUNGI_INLINE void prefetch_row(const Outlet<bfloat16>& outlet, size_t i) {
  if (outlet.residual)
    prefetch_bytes(outlet.residual + i * outlet.residual_stride, kTilePanel * sizeof(float));
  if (outlet.elements)
    prefetch_bytes(outlet.elements + i * outlet.element_stride, kTilePanel * sizeof(bfloat16));
}

// The block whose sums wait for their epilogue.
struct Waiting {
  Outlet<bfloat16> outlet;
  size_t next, rows, cols;
  const float* sums;

  template <Activation A>
  FUNGI_INLINE void advance_to(size_t row) {
    const size_t end = smaller(rows, row);
    if (next >= end) return;
    if (cols == kTilePanel)
      outlet.take_rows<A>(next, end, Sums{sums, kTilePanel});
    else
      for (size_t i = next; i < end; ++i) outlet.take<A>(i, cols, Sums{sums, kTilePanel});
    next = end;
  }
};

// The rows of a block spread evenly over steps.
struct Pace {
  size_t rate;  // rows per step, in 256ths

  explicit Pace(size_t steps) : rate((kBlockRows << 8) / steps + 1) {}
  FUNGI_INLINE size_t rows_after(size_t steps) const { return steps * rate >> 8; }
};
static_assert(kTilePanel == 2 * kLanes);

struct TileProblem {
  size_t m, n;
  TileCut cut;
  const bfloat16 *x, *tail;      // tail: the last m % 32 rows, filled up with zeros
  size_t x_stride, tail_stride;  // bytes
  const bfloat16* packed;
  const Epilogue& epilogue;
  float* sums;  // of open blocks

  const bfloat16* row(size_t i) const { return x + i * (x_stride / sizeof(bfloat16)); }
  const bfloat16* panel(size_t i) const { return packed + i * cut.steps * kStepElements; }
  Ahead rows_ahead(size_t first, size_t last, size_t steps) const {
    last = smaller(last, m);
    if (first < last && first + kBlockRows > m)
      return {tail, padded(last - first, kTile) * tail_stride, steps};
    return first < last ? Ahead(row(first), (last - first) * x_stride, steps) : Ahead();
  }
  Ahead panels_ahead(size_t i, size_t count, size_t steps) const {
    return {panel(i), count * cut.panel_bytes(), steps};
  }
};

struct Slice {
  size_t first, steps;  // of k
  bool last;
};

// What is done and what comes meanwhile.
struct TileState {
  Waiting waiting;
  Ahead rows, weights;
};

// One slice of R row tiles against one panel, while the waiting block is being finished; after the
// last slice this block waits.
template <Activation A, size_t R>
FUNGI_INLINE void tile_block(const TileProblem& p, size_t row, size_t panel, const Slice& slice,
                             float* sums, TileState& state) {
  const bool whole = row + R * kTile <= p.m;
  const bfloat16* a = (whole ? p.row(row) : p.tail) + slice.first * kTileStep;
  const Outlet<bfloat16> outlet(p.epilogue, row, panel * kTilePanel);
  const size_t rows = smaller(R * kTile, p.m - row);
  // Sums need a while to leave the store buffer; then as many rows per step as finish them in time.
  const size_t delay = slice.steps > 4 ? 2 : 0;
  const Pace pace(slice.steps - delay), reach(slice.steps);
  if (slice.first == 0)
    tile_clear<R>();
  else
    tile_resume<R>(sums, kTilePanel);
  const bool backwards = panel % 2 && p.cut.slices == 1 && !p.epilogue.columns_alone;
  tile_panel<R, true>(slice.steps, backwards, a, whole ? p.x_stride : p.tail_stride,
                      p.panel(panel) + slice.first * kStepElements, [&](size_t s) FUNGI_FORCE {
                        state.rows.advance();
                        state.weights.advance();
                        if (slice.last)  // what the next block's steps will read and write
                          for (size_t i = reach.rows_after(s);
                               i < smaller(rows, reach.rows_after(s + 1)); ++i)
                            prefetch_row(outlet, i);
                        if (s >= delay) state.waiting.advance_to<A>(pace.rows_after(s + 1 - delay));
                      });
  state.waiting.advance_to<A>(kBlockRows);
  tile_sums<R>(sums, kTilePanel);
  if (slice.last)
    state.waiting = {outlet, 0, rows, smaller(kTilePanel, p.n - panel * kTilePanel), sums};
}

// Rows [row, row_end) against panels [panel, panel_end): not more blocks than may be open.
struct Chunk {
  size_t row, row_end, panel, panel_end;
};

template <Activation A>
void tile_chunk(const TileProblem& p, const Chunk& c, TileState& state) {
  const size_t slices = p.cut.slices;
  for (size_t s = 0; s < slices; ++s) {
    const size_t begin = p.cut.steps * s / slices, end = p.cut.steps * (s + 1) / slices;
    const Slice slice{begin, end - begin, s + 1 == slices};
    float* sums = p.sums;
    for (size_t row = c.row; row < c.row_end; row += kBlockRows)
      for (size_t panel = c.panel; panel < c.panel_end; ++panel) {
        if (row + kTile < p.m)
          tile_block<A, 2>(p, row, panel, slice, sums, state);
        else
          tile_block<A, 1>(p, row, panel, slice, sums, state);
        if (slices > 1) sums += kBlockSums;
      }
  }
}

template <Activation A>
void tile_product(const TileProblem& p) {
  const TileCut& cut = p.cut;
  const size_t most = larger(kLeadBytes / (kBlockRows * larger(cut.steps, 1) * 64), 1);
  const size_t lead = smaller(padded(p.m, kBlockRows), smaller(most, kLeadBlocks) * kBlockRows);
  const size_t lead_steps = lead / kBlockRows * cut.steps;
  // The lead begins with one panel, the first to be there, and goes on with as many as it has met.
  const size_t most_panels =
      cut.slices == 1 ? kLeadPanels : smaller(kLeadPanels, cut.open_blocks() / (lead / kBlockRows));
  const auto panels_after = [&](size_t met, size_t left) {
    return smaller(left, smaller(larger(met, 1), most_panels));
  };
  TileState state{{Outlet<bfloat16>(p.epilogue, 0, 0), 0, 0, kTilePanel, p.sums}, {}, {}};
  for (size_t begin = 0; begin < cut.panels; begin += cut.group) {
    const size_t end = smaller(cut.panels, begin + cut.group), steps = (end - begin) * cut.steps;
    for (size_t panel = begin, next; panel < end; panel = next) {
      next = panel + panels_after(panel - begin, end - panel);
      const bool first = panel == begin, last = next == end;
      const size_t own_steps = (next - panel) * lead_steps;
      if (!last)
        state.weights = p.panels_ahead(next, panels_after(next - begin, end - next), own_steps);
      if (first || last)  // the other rows of the lead, then those behind it
        state.rows = p.rows_ahead(first ? kBlockRows : lead, last ? lead + kBlockRows : lead,
                                  last ? own_steps : own_steps - cut.steps);
      tile_chunk<A>(p, {0, smaller(lead, p.m), panel, next}, state);
    }
    for (size_t row = lead; row < p.m; row += kBlockRows) {
      const size_t next = row + kBlockRows;
      if (next < p.m) {
        state.rows = p.rows_ahead(next, next + kBlockRows, steps);
      } else if (end < cut.panels) {  // what the next group begins with
        state.rows = p.rows_ahead(0, kBlockRows, steps);
        state.weights = p.panels_ahead(end, 1, steps);
      }
      tile_chunk<A>(p, {row, next, begin, end}, state);
    }
  }
  state.waiting.advance_to<A>(kBlockRows);
}

inline void tile_gemm(size_t m, const void* x, size_t x_stride, const PackedMatrix& weights,
                      const Epilogue& e, void* scratch) noexcept {
  const PackedView w = view_of(weights);
  if (m == 0 || w.k == 0) return;  // as the other tables
  const TileCut cut(w.n, w.k);
  const size_t row_bytes = cut.steps * 64, stride = tail_stride(cut.steps),
               tail_rows = m % kBlockRows;
  float* sums = static_cast<float*>(scratch);
  char* tail = reinterpret_cast<char*>(sums + cut.open_blocks() * kBlockSums);
  const char* rows = static_cast<const char*>(x);
  const size_t x_bytes = x_stride * sizeof(bfloat16);
  if (tail_rows != 0) {
    for (size_t i = 0; i < tail_rows; ++i)
      __builtin_memcpy(tail + i * stride, rows + (m - tail_rows + i) * x_bytes, row_bytes);
    const size_t filled = padded(tail_rows, kTile);
    __builtin_memset(tail + tail_rows * stride, 0, (filled - tail_rows) * stride);
  }
  written();
  const TileProblem problem{m,
                            w.n,
                            cut,
                            static_cast<const bfloat16*>(x),
                            reinterpret_cast<const bfloat16*>(tail),
                            x_bytes,
                            stride,
                            static_cast<const bfloat16*>(w.data),
                            e,
                            sums};
  tile_config();
  with_activation(e.activation, [&]<Activation A>() FUNGI_FORCE { tile_product<A>(problem); });
  tile_release();
}

}  // namespace
}  // namespace fungi::kernel
