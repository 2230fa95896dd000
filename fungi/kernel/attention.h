// SPDX-License-Identifier: Apache-2.0
// Attention of one sample on registers: per head, keys and values become panels; a block of queries
// gives its logits, softmax in f32 and the weighted sum while everything stays in L2. Weights are
// e^(logit - max), rounded to elements, and the sum over values is divided by the f32 sum of
// exactly those weights. Internal to this room.
#pragma once

#include "fungi/kernel/attention_weights.h"

namespace fungi::kernel {
namespace {

constexpr size_t kQueryBlock = padded(24, kTileRows);  // its logits stay in L1

// Columns of a head, rows [0, count), as panels whose depth is the head: panel column = row of x
// (transposed), ...
template <class E>
void panels_of_rows(size_t count, size_t width, const E* x, size_t stride, float* panels) {
  for (size_t i = 0; i < padded(count, kPanel); ++i) {
    float* place = panels + i / kPanel * kPanel * width + i % kPanel;
    if (i >= count) {
      for (size_t j = 0; j < width; ++j) place[j * kPanel] = 0;
      continue;
    }
    for_each_vector(width, [&](size_t j, size_t lanes) FUNGI_FORCE {
      const Floats v = load_elements(x + i * stride + j, lanes);
      for (size_t l = 0; l < lanes; ++l) place[(j + l) * kPanel] = v[l];
    });
  }
}

// ... or as panels whose depth is the rows: panel column = column of x.
template <class E>
void panels_of_columns(size_t count, size_t width, const E* x, size_t stride, float* panels) {
  for (size_t first = 0; first < width; first += kPanel)
    for (size_t i = 0; i < count; ++i) {
      float* place = panels + first * count + i * kPanel;
      for (size_t l = 0; l < kPanel; l += kLanes) {
        const size_t j = first + l;
        store(place + l,
              j < width ? load_elements(x + i * stride + j, smaller(kLanes, width - j)) : Floats{});
      }
    }
}

template <class E>
void left_rows(size_t count, size_t width, const E* x, size_t stride, float* rows,
               size_t row_stride) {
  for (size_t i = 0; i < count; ++i)
    for_each_vector(width, [&](size_t j, size_t lanes) FUNGI_FORCE {
      store(rows + i * row_stride + j, lanes, load_elements(x + i * stride + j, lanes));
    });
}

// The same three in pairs of bf16. Behind an odd width or count stands a zero.
inline void left_rows(size_t count, size_t width, const bfloat16* x, size_t stride, Pair* rows,
                      size_t row_stride) {
  for (size_t i = 0; i < count; ++i) {
    if (width % 2 != 0) rows[i * row_stride + width / 2] = {0};
    __builtin_memcpy(rows + i * row_stride, x + i * stride, width * sizeof(bfloat16));
  }
}
inline void panels_of_rows(size_t count, size_t width, const bfloat16* x, size_t stride,
                           Pair* panels) {
  const size_t steps = (width + 1) / 2;
  for (size_t first = 0; first < count; first += kPanel, panels += steps * kPanel)
    for (size_t j = 0; j < steps; j += kLanes)
      for (size_t half = 0; half < kPanel; half += kLanes) {
        Words pairs[kLanes] = {};
        for (size_t l = 0; l < kLanes && first + half + l < count; ++l)
          pairs[l] = Words(
              load_row(x + (first + half + l) * stride + 2 * j, smaller(kPanel, width - 2 * j)));
        transpose(pairs);
        for (size_t i = 0; i < smaller(kLanes, steps - j); ++i)
          __builtin_memcpy(panels + (j + i) * kPanel + half, &pairs[i], sizeof pairs[i]);
      }
}
inline void panels_of_columns(size_t count, size_t width, const bfloat16* x, size_t stride,
                              Pair* panels) {
  for (size_t first = 0; first < width; first += kPanel)
    for (size_t i = 0; i < count; i += 2, panels += kPanel) {
      const size_t columns = smaller(kPanel, width - first);
      const Elements even = load_row(x + i * stride + first, columns);
      const Elements odd =
          i + 1 < count ? load_row(x + (i + 1) * stride + first, columns) : Elements{};
      const Words both[2] = {woven<0>(even, odd), woven<1>(even, odd)};
      __builtin_memcpy(panels, both, sizeof both);
    }
}

template <class E>
void attention(const Attention& a, void* scratch) noexcept {
  using Left = LeftOf<E>;
  const size_t t = a.tokens, d = a.head_dim, t_pad = padded(t, kPanel), d_pad = padded(d, kPanel);
  Left* keys = static_cast<Left*>(scratch);
  Left* values = keys + t_pad * d_pad;
  Left* queries = values + t_pad * d_pad;
  Left* weights = queries + kQueryBlock * d_pad;
  float* logits = reinterpret_cast<float*>(weights);  // the weights replace them
  float* result = logits + kQueryBlock * t_pad;
  for (size_t h = 0; h < a.heads; ++h) {
    panels_of_rows(t, d, static_cast<const E*>(a.k) + h * d, a.k_stride, keys);
    panels_of_columns(t, d, static_cast<const E*>(a.v) + h * d, a.v_stride, values);
    for (size_t first = 0; first < a.queries; first += kQueryBlock) {
      const size_t count = smaller(kQueryBlock, a.queries - first);
      left_rows(count, d, static_cast<const E*>(a.q) + first * a.q_stride + h * d, a.q_stride,
                queries, d_pad);
      multiply_panels(count, t, steps_of<E>(d), queries, d_pad, keys, logits, t_pad, false);
      float inverse[kQueryBlock];
      weigh(a, h, first, count, RightOf<E>{}, logits, t_pad, inverse);
      multiply_panels(count, d, steps_of<E>(t), weights, t_pad, values, result, d_pad, false);
      for (size_t i = 0; i < count; ++i)
        for_each_vector(d, [&](size_t j, size_t lanes) FUNGI_FORCE {
          const Floats y = load(result + i * d_pad + j) * inverse[i];
          const size_t row = first + i, col = h * d + j;
          if (a.out) store(a.out + row * a.out_stride + col, lanes, y);
          if (a.element_out)
            store_elements(static_cast<E*>(a.element_out) + row * a.element_stride + col, lanes, y);
        });
    }
  }
}

}  // namespace
}  // namespace fungi::kernel
