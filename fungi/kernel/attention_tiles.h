// SPDX-License-Identifier: Apache-2.0
// Attention on AMX tiles, in the same steps as attention.h: per head, keys and values become panels
// of pairs; a block of 32 queries gives its logits (tiles), softmax (registers; weights rounded to
// bf16) and weighted sum (tiles). While one block is in its softmax, the tile unit computes the
// logits of the next block and the weighted sum of the one before. Internal to this room.
#pragma once

#include "fungi/kernel/attention_backward.h"
#include "fungi/kernel/gemm_tiles.h"

namespace fungi::kernel {
namespace {

struct TileAttention {
  size_t t_pad, d_pad;  // tokens and head_dim in whole steps
  bfloat16 *keys, *values, *queries, *weights[2];
  float *logits[2], *result;
  size_t bytes;

  TileAttention(size_t tokens, size_t head_dim, void* scratch)
      : t_pad(padded(tokens, kTileStep)), d_pad(padded(head_dim, kTileStep)) {
    keys = static_cast<bfloat16*>(scratch);
    values = keys + t_pad * d_pad;
    queries = values + t_pad * d_pad;
    weights[0] = queries + kBlockRows * d_pad;
    weights[1] = weights[0] + kBlockRows * t_pad;
    logits[0] = reinterpret_cast<float*>(weights[1] + kBlockRows * t_pad);
    logits[1] = logits[0] + kBlockRows * t_pad;
    result = logits[1] + kBlockRows * t_pad;
    bytes = (2 * t_pad * d_pad + kBlockRows * (d_pad + 2 * t_pad)) * sizeof(bfloat16) +
            kBlockRows * (2 * t_pad + d_pad) * sizeof(float);
  }
};

inline size_t tile_attention_scratch(size_t tokens, size_t head_dim) noexcept {
  return larger(TileAttention(tokens, head_dim, nullptr).bytes,
                attention_scratch(tokens, head_dim));
}

// Panels of 32 tokens, k = the head's columns: pairs of neighbouring columns of one row are what a
// tile wants.
inline void pack_keys(size_t tokens, size_t head_dim, const bfloat16* k, size_t stride,
                      bfloat16* panels) {
  const size_t steps = padded(head_dim, kTileStep) / kTileStep;
  for (size_t first = 0; first < tokens; first += kTile)
    for (size_t s = 0; s < steps; ++s) {
      bfloat16* tile = panels + (first / kTilePanel * steps + s) * kStepElements +
                       first % kTilePanel / kTile * kTileElements;
      const size_t columns = smaller(kTileStep, head_dim - s * kTileStep);
      Words pairs[kTile] = {};
      for (size_t j = 0; j < smaller(kTile, tokens - first); ++j) {
        pairs[j] = Words(load_row(k + (first + j) * stride + s * kTileStep, columns));
      }
      transpose(pairs);
      __builtin_memcpy(tile, pairs, sizeof pairs);
    }
}

// Panels of 32 columns of the head, k = the tokens: two rows are woven into pairs.
inline void pack_values(size_t tokens, size_t head_dim, const bfloat16* v, size_t stride,
                        bfloat16* panels) {
  for (size_t panel = 0; panel < head_dim; panel += kTilePanel)
    for (size_t token = 0; token < padded(tokens, kTileStep); token += 2) {
      const size_t columns = smaller(kTilePanel, head_dim - panel);
      const bfloat16* row = v + token * stride + panel;
      const Elements even = token < tokens ? load_row(row, columns) : Elements{};
      const Elements odd = token + 1 < tokens ? load_row(row + stride, columns) : Elements{};
      const Words left = woven<0>(even, odd), right = woven<1>(even, odd);
      bfloat16* tile = panels + panel * padded(tokens, kTileStep) +
                       token / kTileStep * kStepElements + token % kTileStep / 2 * kTileStep;
      __builtin_memcpy(tile, &left, sizeof left);
      __builtin_memcpy(tile + kTileElements, &right, sizeof right);
    }
}

// c [rows, 32 · panels] = a [rows, k] · panels, for up to 32 rows (in tiles of 16), one step of k
// at a time: the tiles keep their sums from one step to the next, whatever else is done between.
struct TileProduct {
  size_t rows, steps, left;  // left: steps to go, over all panels
  const bfloat16* a;
  size_t a_stride;  // bytes
  const bfloat16* panel;
  float* c;
  size_t c_stride;
  size_t step = 0;

  FUNGI_INLINE void advance() { rows > kTile ? advance_tiles<2>() : advance_tiles<1>(); }
  void finish() {
    while (left > 0) advance();
  }

 private:
  template <size_t R>
  FUNGI_INLINE void advance_tiles() {
    if (step == 0) tile_clear<R>();
    tile_panel<R, false>(1, false, a + step * kTileStep, a_stride, panel,
                         [](size_t) FUNGI_FORCE {});
    panel += kStepElements, --left;
    if (++step < steps) return;
    tile_sums<R>(c, c_stride);
    c += kTilePanel, step = 0;
  }
};

// Up to 32 queries of one head on their way.
struct QueryBlock {
  size_t first = 0, count = 0;
  const bfloat16* q = nullptr;
  size_t q_stride = 0;  // bytes
  float* logits = nullptr;
  bfloat16* weights = nullptr;
  float inverse[kBlockRows];
};

inline void open_queries(const Attention& a, const TileAttention& t, size_t head, size_t index,
                         QueryBlock& b) {
  const size_t d = a.head_dim;
  b.first = index * kBlockRows;
  b.count = smaller(kBlockRows, a.queries - b.first);
  b.logits = t.logits[index % 2], b.weights = t.weights[index % 2];
  b.q = static_cast<const bfloat16*>(a.q) + b.first * a.q_stride + head * d;
  b.q_stride = a.q_stride * sizeof(bfloat16);
  if (b.count % kTile == 0 && d == t.d_pad) return;
  // Never read beyond the rows or into the next head.
  __builtin_memset(t.queries, 0, kBlockRows * t.d_pad * sizeof(bfloat16));
  for (size_t i = 0; i < b.count; ++i)
    __builtin_memcpy(t.queries + i * t.d_pad, b.q + i * a.q_stride, d * sizeof(bfloat16));
  b.q = t.queries;
  b.q_stride = t.d_pad * sizeof(bfloat16);
}

FUNGI_INLINE TileProduct keys_product(const TileAttention& t, const QueryBlock& b) {
  const size_t steps = t.d_pad / kTileStep, panels = t.t_pad / kTilePanel;
  return {b.count, steps, steps * panels, b.q, b.q_stride, t.keys, b.logits, t.t_pad};
}

FUNGI_INLINE TileProduct values_product(const TileAttention& t, const QueryBlock& b) {
  const size_t steps = t.t_pad / kTileStep, panels = t.d_pad / kTilePanel;
  const size_t stride = t.t_pad * sizeof(bfloat16);
  return {b.count, steps, steps * panels, b.weights, stride, t.values, t.result, t.d_pad};
}

inline void store_queries(const Attention& a, const TileAttention& t, size_t head,
                          const QueryBlock& b) {
  const size_t d = a.head_dim;
  for (size_t i = 0; i < b.count; ++i)
    for_each_vector(d, [&](size_t j, size_t lanes) FUNGI_FORCE {
      const Floats y = load(t.result + i * t.d_pad + j) * b.inverse[i];
      const size_t row = b.first + i, col = head * d + j;
      if (a.out) store(a.out + row * a.out_stride + col, lanes, y);
      if (a.element_out)
        store_elements(static_cast<bfloat16*>(a.element_out) + row * a.element_stride + col, lanes,
                       y);
    });
}

inline void tile_head(const Attention& a, const TileAttention& t, size_t head) {
  const size_t blocks = (a.queries + kBlockRows - 1) / kBlockRows;
  QueryBlock ring[3];  // the one before, this one, the next
  open_queries(a, t, head, 0, ring[0]);
  written();
  keys_product(t, ring[0]).finish();
  for (size_t i = 0; i < blocks; ++i) {
    QueryBlock &now = ring[i % 3], &next = ring[(i + 1) % 3], &before = ring[(i + 2) % 3];
    TileProduct values{}, keys{};
    if (i > 0) values = values_product(t, before);
    if (i + 1 < blocks) {
      open_queries(a, t, head, i + 1, next);
      keys = keys_product(t, next);
    }
    written();
    const size_t steps = values.left + keys.left;
    size_t done = 0;
    static_assert(kTileStep == kPairLanes);
    weigh(a, head, now.first, now.count, now.logits, t.t_pad, now.weights, t.t_pad, now.inverse,
          [&](size_t query) FUNGI_FORCE {
            for (; done * now.count < (query + 1) * steps; ++done)
              values.left > 0 ? values.advance() : keys.advance();
          });
    __builtin_memset(now.weights + now.count * t.t_pad, 0,
                     (padded(now.count, kTile) - now.count) * t.t_pad * sizeof(bfloat16));
    if (i > 0) store_queries(a, t, head, before);
  }
  const QueryBlock& last = ring[(blocks - 1) % 3];
  written();
  values_product(t, last).finish();
  store_queries(a, t, head, last);
}

inline void tile_attention(const Attention& a, void* scratch) noexcept {
  if (a.queries == 0) return;
  const TileAttention t(a.tokens, a.head_dim, scratch);
  tile_config();
  for (size_t h = 0; h < a.heads; ++h) {
    const size_t column = h * a.head_dim;
    pack_keys(a.tokens, a.head_dim, static_cast<const bfloat16*>(a.k) + column, a.k_stride, t.keys);
    pack_values(a.tokens, a.head_dim, static_cast<const bfloat16*>(a.v) + column, a.v_stride,
                t.values);
    tile_head(a, t, h);
  }
  tile_release();
}

}  // namespace
}  // namespace fungi::kernel
