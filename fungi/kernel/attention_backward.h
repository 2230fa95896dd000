// SPDX-License-Identifier: Apache-2.0
// The gradient of attention, in f32 for every table. Internal to this room. Per head and block of
// queries, with P the softmax recomputed:
//   dV += Pᵀ dO;  dP = dO Vᵀ;  dS = P ∘ (dP - rowsum(P ∘ dP));  dQ = scale · dS K;  dK += scale ·
//   dSᵀ Q
#pragma once

#include "fungi/kernel/attention.h"

namespace fungi::kernel {
namespace {

constexpr size_t kGradientBlock = 2 * kQueryBlock;

inline size_t attention_scratch(size_t tokens, size_t head_dim) noexcept {
  const size_t t = padded(tokens, kPanel), d = padded(head_dim, kPanel), q = kGradientBlock;
  return (5 * t * d + 2 * q * t + t * q + 4 * q * d) * sizeof(float);
}

// out[j, i] = x[i, j]
FUNGI_INLINE void transpose(size_t rows, size_t cols, const float* x, size_t x_stride, float* out,
                            size_t out_stride) {
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < cols; ++j) out[j * out_stride + i] = x[i * x_stride + j];
}

FUNGI_INLINE void scaled_rows(size_t rows, size_t cols, const float* x, size_t x_stride,
                              float scale, float* out, size_t out_stride) {
  for (size_t i = 0; i < rows; ++i)
    for_each_vector(cols, [&](size_t j, size_t count) FUNGI_FORCE {
      store(out + i * out_stride + j, count, load(x + i * x_stride + j, count) * scale);
    });
}

template <class E>
void attention_backward(const AttentionBackward& b, void* scratch) noexcept {
  const Attention& a = b.forward;
  const size_t t = a.tokens, d = a.head_dim, t_pad = padded(t, kPanel), d_pad = padded(d, kPanel);
  float* keys_across = static_cast<float*>(scratch);   // depth d, for q·k
  float* values_across = keys_across + t_pad * d_pad;  // depth d, for dO·v
  float* keys = values_across + t_pad * d_pad;         // depth t, for dS K
  float* d_keys = keys + t_pad * d_pad;
  float* d_values = d_keys + t_pad * d_pad;
  float* p = d_values + t_pad * d_pad;
  float* d_p = p + kGradientBlock * t_pad;
  float* turned = d_p + kGradientBlock * t_pad;  // Pᵀ, then dSᵀ
  float* queries = turned + kGradientBlock * t_pad;
  float* panels =
      queries + kGradientBlock * d_pad;  // of dO, then of Q, depth = the block's queries
  float* result = panels + 2 * kGradientBlock * d_pad;
  for (size_t h = 0; h < a.heads; ++h) {
    const E* q = static_cast<const E*>(a.q) + h * d;
    panels_of_rows(t, d, static_cast<const E*>(a.k) + h * d, a.k_stride, keys_across);
    panels_of_rows(t, d, static_cast<const E*>(a.v) + h * d, a.v_stride, values_across);
    panels_of_columns(t, d, static_cast<const E*>(a.k) + h * d, a.k_stride, keys);
    for (size_t first = 0; first < a.queries; first += kGradientBlock) {
      const size_t count = smaller(kGradientBlock, a.queries - first);
      const float* d_out = b.d_out + first * b.d_out_stride + h * d;
      left_rows(count, d, q + first * a.q_stride, a.q_stride, queries, d_pad);
      multiply_panels(count, t, d, queries, d_pad, keys_across, p, t_pad, false);
      for (size_t i = 0; i < count; ++i) {
        finish_logits(a, h, first + i, p + i * t_pad);
        softmax(1, t, p + i * t_pad, t_pad, nullptr);
      }
      transpose(count, t, p, t_pad, turned, kGradientBlock);
      panels_of_columns(count, d, d_out, b.d_out_stride, panels);
      multiply_panels(t, d, count, turned, kGradientBlock, panels, d_values, d_pad, first > 0);

      multiply_panels(count, t, d, d_out, b.d_out_stride, values_across, d_p, t_pad, false);
      for (size_t i = 0; i < count; ++i) {
        float *p_row = p + i * t_pad, *d_row = d_p + i * t_pad;
        const float inner = dot(t, p_row, d_row);
        for_each_vector(t, [&](size_t j, size_t lanes) FUNGI_FORCE {
          store(d_row + j, lanes, load(p_row + j, lanes) * (load(d_row + j, lanes) - inner));
        });
      }
      multiply_panels(count, d, t, d_p, t_pad, keys, result, d_pad, false);
      scaled_rows(count, d, result, d_pad, a.scale, b.d_q + first * b.d_q_stride + h * d,
                  b.d_q_stride);
      transpose(count, t, d_p, t_pad, turned, kGradientBlock);
      panels_of_columns(count, d, queries, d_pad, panels);
      multiply_panels(t, d, count, turned, kGradientBlock, panels, d_keys, d_pad, first > 0);
    }
    scaled_rows(t, d, d_keys, d_pad, a.scale, b.d_k + h * d, b.d_k_stride);
    scaled_rows(t, d, d_values, d_pad, 1.0f, b.d_v + h * d, b.d_v_stride);
  }
}

}  // namespace
}  // namespace fungi::kernel
