// SPDX-License-Identifier: Apache-2.0
// Attention on AMX tiles, in the same steps as attention.h: per head, keys and values become panels
// of pairs; a block of 32 queries gives its logits (tiles), softmax (registers; weights rounded to
// bf16) and weighted sum (tiles).
#pragma once

#include "fungi/kernel/attention_backward.h"
#include "fungi/kernel/gemm_tiles.h"

namespace fungi::kernel {
namespace {

struct TileAttention {
  size_t t_pad, d_pad;  // tokens and head_dim in whole steps
  bfloat16 *keys, *values, *queries, *weights;
  float *logits, *result;
  size_t bytes;

  TileAttention(size_t tokens, size_t head_dim, void* scratch)
      : t_pad(padded(tokens, kTileStep)), d_pad(padded(head_dim, kTileStep)) {
    keys = static_cast<bfloat16*>(scratch);
    values = keys + t_pad * d_pad;
    queries = values + t_pad * d_pad;
    weights = queries + kBlockRows * d_pad;
    logits = reinterpret_cast<float*>(weights + kBlockRows * t_pad);
    result = logits + kBlockRows * t_pad;
    bytes = (2 * t_pad * d_pad + kBlockRows * (d_pad + t_pad)) * sizeof(bfloat16) +
            kBlockRows * (t_pad + d_pad) * sizeof(float);
  }
};

inline size_t tile_attention_scratch(size_t queries, size_t tokens, size_t head_dim) noexcept {
  return larger(TileAttention(tokens, head_dim, nullptr).bytes,
                attention_scratch(queries, tokens, head_dim));
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

// c [16·R, 32 · panels] = a · panels
template <size_t R>
void tile_rows(size_t panels, size_t steps, const bfloat16* a, size_t a_stride, const bfloat16* b,
               float* c, size_t c_stride) {
  for (size_t p = 0; p < panels; ++p) {
    tile_clear<R>();
    tile_panel<R, false>(steps, false, a, a_stride, b + p * steps * kStepElements,
                         [](size_t) FUNGI_FORCE {});
    tile_sums<R>(c + p * kTilePanel, c_stride);
  }
}

template <size_t R>
void tile_query_block(const Attention& a, const TileAttention& t, size_t head, size_t first) {
  const size_t count = smaller(R * kTile, a.queries - first), d = a.head_dim;
  const bfloat16* q = static_cast<const bfloat16*>(a.q) + first * a.q_stride + head * d;
  size_t q_bytes = a.q_stride * sizeof(bfloat16);
  if (count < R * kTile || d != t.d_pad) {  // never read beyond the rows or into the next head
    __builtin_memset(t.queries, 0, R * kTile * t.d_pad * sizeof(bfloat16));
    for (size_t i = 0; i < count; ++i)
      __builtin_memcpy(t.queries + i * t.d_pad, q + i * a.q_stride, d * sizeof(bfloat16));
    q = t.queries;
    q_bytes = t.d_pad * sizeof(bfloat16);
  }
  written();
  tile_rows<R>(t.t_pad / kTilePanel, t.d_pad / kTileStep, q, q_bytes, t.keys, t.logits, t.t_pad);
  float inverse[R * kTile];
  static_assert(kTileStep == kPairLanes);
  weigh(a, head, first, count, t.logits, t.t_pad, t.weights, t.t_pad, inverse);
  __builtin_memset(t.weights + count * t.t_pad, 0,
                   (R * kTile - count) * t.t_pad * sizeof(bfloat16));
  written();
  tile_rows<R>(t.d_pad / kTilePanel, t.t_pad / kTileStep, t.weights, t.t_pad * sizeof(bfloat16),
               t.values, t.result, t.d_pad);
  for (size_t i = 0; i < count; ++i)
    for_each_vector(d, [&](size_t j, size_t lanes) FUNGI_FORCE {
      const Floats y = load(t.result + i * t.d_pad + j) * inverse[i];
      const size_t row = first + i, col = head * d + j;
      if (a.out) store(a.out + row * a.out_stride + col, lanes, y);
      if (a.element_out)
        store_elements(static_cast<bfloat16*>(a.element_out) + row * a.element_stride + col, lanes,
                       y);
    });
}

inline void tile_attention(const Attention& a, void* scratch) noexcept {
  const TileAttention t(a.tokens, a.head_dim, scratch);
  tile_config();
  for (size_t h = 0; h < a.heads; ++h) {
    const size_t column = h * a.head_dim;
    pack_keys(a.tokens, a.head_dim, static_cast<const bfloat16*>(a.k) + column, a.k_stride, t.keys);
    pack_values(a.tokens, a.head_dim, static_cast<const bfloat16*>(a.v) + column, a.v_stride,
                t.values);
    for (size_t first = 0; first < a.queries; first += kBlockRows) {
      if (first + kTile < a.queries)
        tile_query_block<2>(a, t, h, first);
      else
        tile_query_block<1>(a, t, h, first);
    }
  }
  tile_release();
}

}  // namespace
}  // namespace fungi::kernel
