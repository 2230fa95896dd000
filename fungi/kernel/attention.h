// SPDX-License-Identifier: Apache-2.0
// Attention of one sample on registers: per head, keys and values become panels; a block of queries
// gives its logits, softmax in f32 and the weighted sum while everything stays in L2. Weights are
// e^(logit - max), rounded to elements, and the sum over values is divided by the f32 sum of
// exactly those weights.
#pragma once

#include "fungi/kernel/micro_kernel.h"
#include "fungi/kernel/rows.h"

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
void rows_as_floats(size_t count, size_t width, const E* x, size_t stride, float* rows,
                    size_t row_stride) {
  for (size_t i = 0; i < count; ++i)
    for_each_vector(width, [&](size_t j, size_t lanes) FUNGI_FORCE {
      store(rows + i * row_stride + j, lanes, load_elements(x + i * stride + j, lanes));
    });
}

// Logits of one query in place: scale · (q·k) + bias + mask. Returns the largest.
FUNGI_INLINE float finish_logits(const Attention& a, size_t head, size_t query, float* row) {
  const float* bias = a.bias ? a.bias + (head * a.queries + query) * a.tokens : nullptr;
  Floats peak = all(-__builtin_inff());
  for_each_vector(a.tokens, [&](size_t j, size_t count) FUNGI_FORCE {
    Floats s = load(row + j, count) * a.scale;
    if (bias) s += load(bias + j, count);
    if (a.mask) s += load(a.mask + j, count);
    store(row + j, count, s);
    peak = max(load(row + j, count, -__builtin_inff()), peak);
  });
  return largest(peak);
}

// Gives write(j, count, e^(logit - largest)) the weights of one query, register by register; write
// returns what it kept of them. Returns one over the sum of what was kept.
template <class Write>
FUNGI_INLINE float weigh(const Attention& a, size_t head, size_t query, float* row, Write write) {
  float scale = 1, peak;
  if (a.bias || a.mask || a.scale <= 0) {
    peak = finish_logits(a, head, query, row);
  } else {
    scale = a.scale;
    peak = row_peak(a.tokens, row) * scale;
  }
  const Floats shift = all(peak == -__builtin_inff() ? 0.0f : -peak);
  Floats total{};
  for_each_vector(a.tokens, [&](size_t j, size_t count) FUNGI_FORCE {
    const Floats s = load(row + j, count, -__builtin_inff());
    total += write(j, count, exp(fma(s, all(scale), shift)));
  });
  const float whole = sum(total);
  return whole > 0 ? 1.0f / whole : 0.0f;
}

FUNGI_INLINE Floats as_element(float, Floats x) { return x; }
FUNGI_INLINE Floats as_element(bfloat16, Floats x) { return rounded_to_bf16(x); }

template <class E>
void attention(const Attention& a, void* scratch) noexcept {
  const size_t t = a.tokens, d = a.head_dim, t_pad = padded(t, kPanel), d_pad = padded(d, kPanel);
  float* keys = static_cast<float*>(scratch);
  float* values = keys + t_pad * d;
  float* queries = values + d_pad * t;
  float* weights = queries + kQueryBlock * d_pad;
  float* result = weights + kQueryBlock * t_pad;
  for (size_t h = 0; h < a.heads; ++h) {
    panels_of_rows(t, d, static_cast<const E*>(a.k) + h * d, a.k_stride, keys);
    panels_of_columns(t, d, static_cast<const E*>(a.v) + h * d, a.v_stride, values);
    for (size_t first = 0; first < a.queries; first += kQueryBlock) {
      const size_t count = smaller(kQueryBlock, a.queries - first);
      rows_as_floats(count, d, static_cast<const E*>(a.q) + first * a.q_stride + h * d, a.q_stride,
                     queries, d_pad);
      multiply_panels(count, t, d, queries, d_pad, keys, weights, t_pad, false);
      float inverse[kQueryBlock];
      for (size_t i = 0; i < count; ++i) {
        float* row = weights + i * t_pad;
        inverse[i] = weigh(a, h, first + i, row, [&](size_t j, size_t lanes, Floats e) FUNGI_FORCE {
          const Floats kept = as_element(E{}, e);
          store(row + j, lanes, kept);
          return kept;
        });
      }
      multiply_panels(count, d, t, weights, t_pad, values, result, d_pad, false);
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
