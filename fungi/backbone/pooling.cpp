// SPDX-License-Identifier: Apache-2.0
// From the last block's output to the embedding, and back: final norm, pooling, head, length 1.
#include <algorithm>
#include <cmath>

#include "fungi/backbone/encode.h"
#include "fungi/base/unit_rows.h"

namespace fungi {
namespace {

// The rows of x that the pooling of sample i looks at.
std::pair<size_t, size_t> pooled_rows(const Architecture& a, const Batch& batch, bool pruned,
                                      size_t i) {
  const bool own = a.pooling == Pooling::mean_patches || a.pooling == Pooling::mean_sound;
  const size_t first = pruned ? batch.query_offsets[i] : batch.offsets[i];
  return {first + (own ? a.prefix_tokens : 0), first + batch.pooled(i)};
}

float divisor(Pooling pooling, size_t rows) {
  return pooling == Pooling::mean_sqrt ? std::sqrt(float(rows)) : float(rows);
}

void pool_mean(Pooling pooling, const Floats& z, size_t first, size_t last, size_t d, float* out) {
  std::copy_n(z.row(first), d, out);
  for (size_t r = first + 1; r < last; ++r)
    for (size_t j = 0; j < d; ++j) out[j] += z.row(r)[j];
  const float by = divisor(pooling, last - first);
  for (size_t j = 0; j < d; ++j) out[j] /= by;
}

// Of equal ones the first counts.
void pool_max(const Floats& z, size_t first, size_t last, size_t d, float* out, uint32_t* at) {
  std::copy_n(z.row(first), d, out);
  std::fill_n(at, d, uint32_t(first));
  for (size_t r = first + 1; r < last; ++r)
    for (size_t j = 0; j < d; ++j)
      if (z.row(r)[j] > out[j]) out[j] = z.row(r)[j], at[j] = uint32_t(r);
}

// ∂L/∂raw from that at raw / |raw|.
void unit_backward(const float* raw, const float* d_unit, size_t d, float* d_raw) {
  double square = 0, inner = 0;
  for (size_t j = 0; j < d; ++j)
    square += double(raw[j]) * raw[j], inner += double(raw[j]) * d_unit[j];
  const double inverse = square > 0 ? 1 / std::sqrt(square) : 0;
  const double share = square > 0 ? inner / square : 0;
  for (size_t j = 0; j < d; ++j) d_raw[j] = float((d_unit[j] - share * raw[j]) * inverse);
}

}  // namespace

void Run::finish(View<float> embeddings, View<float> tokens) {
  const Stages::Scope scope(workspace.stages, "pool");
  const size_t d = w.arch.width, n = s.batch.samples;
  const bool maximum = w.arch.pooling == Pooling::max_all;
  BlockContext c = context(w.depth() - 1);
  const Floats* z = &s.x;
  if (w.arch.final_norm && !w.arch.norm_after_pooling) {
    run_norm(c, w.final_norm, last_rows(), s.x, &s.normed, nullptr);
    z = &s.normed;
  }
  if (tokens.data)
    for (size_t i = 0; i < s.batch.rows(); ++i) std::copy_n(z->row(i), d, tokens.row(i));
  s.pooled.ensure(n, d);
  if (maximum) s.largest.resize(n * d);
  const bool attended = w.arch.pooling == Pooling::attention;
  if (attended) attention_pool_forward(c, w.pool, s.pool, *z, s.pooled);
  for (size_t i = 0; i < n && !attended; ++i) {
    const auto [first, last] = pooled_rows(w.arch, s.batch, pruned(), i);
    if (maximum)
      pool_max(*z, first, last, d, s.pooled.row(i), s.largest.data() + i * d);
    else
      pool_mean(w.arch.pooling, *z, first, last, d, s.pooled.row(i));
  }
  const Floats* result = &s.pooled;
  if (w.arch.norm_after_pooling) {
    run_norm(c, w.final_norm, n, s.pooled, &s.pooled_normed, nullptr);
    result = &s.pooled_normed;
  }
  if (w.arch.head) {
    s.scratch.gradient.ensure(*w.kernel, n, d);
    w.kernel->to_elements(n, d, result->row(0), result->stride(), s.scratch.gradient.row(0),
                          s.scratch.gradient.stride());
    kernel::Epilogue e;
    e.bias = w.head.bias_data();
    e.out = embeddings.data, e.out_stride = embeddings.stride;
    run_linear(c, w.head, n, s.scratch.gradient.row(0), s.scratch.gradient.stride(), e);
  } else {
    for (size_t i = 0; i < n; ++i) std::copy_n(result->row(i), d, embeddings.row(i));
  }
  if (!w.arch.unit_embedding) return;
  s.raw.ensure(n, embeddings.cols);
  for (size_t i = 0; i < n; ++i) std::copy_n(embeddings.row(i), embeddings.cols, s.raw.row(i));
  normalise_rows(embeddings, embeddings);
}

// ∂L/∂(embeddings, tokens) → ∂L/∂(last block's output), in s.g.
void Run::start_backward(View<const float> d_embeddings, View<const float> d_tokens) {
  const size_t d = w.arch.width, n = s.batch.samples, rows = last_rows();
  BlockContext c = context(w.depth() - 1);
  if (w.arch.unit_embedding) {
    const size_t width = d_embeddings.cols;
    s.g_raw.ensure(n, width);
    for (size_t i = 0; i < n; ++i)
      unit_backward(s.raw.row(i), d_embeddings.row(i), width, s.g_raw.row(i));
    d_embeddings = {s.g_raw.row(0), n, width, s.g_raw.stride()};
  }
  s.g_pooled.ensure(n, d);
  if (w.arch.head) {
    run_linear_backward(c, w.head, n, d_embeddings.data, d_embeddings.stride, s.g_pooled.row(0),
                        s.g_pooled.stride());
  } else {
    for (size_t i = 0; i < n; ++i) std::copy_n(d_embeddings.row(i), d, s.g_pooled.row(i));
  }
  const Floats* g_pooled = &s.g_pooled;
  if (w.arch.norm_after_pooling) {
    run_norm_backward(c, w.final_norm, n, s.pooled, s.g_pooled, false, s.normed);
    g_pooled = &s.normed;
  }
  const bool normed = w.arch.final_norm && !w.arch.norm_after_pooling;
  Floats& g_tokens = normed ? s.g_tokens : s.g;
  g_tokens.ensure(rows, d);
  for (size_t i = 0; i < rows; ++i) {
    if (d_tokens.data)
      std::copy_n(d_tokens.row(i), d, g_tokens.row(i));
    else
      std::fill_n(g_tokens.row(i), d, 0.0f);
  }
  const bool attended = w.arch.pooling == Pooling::attention;
  if (attended) attention_pool_backward(c, w.pool, s.pool, *g_pooled, g_tokens);
  for (size_t i = 0; i < n && !attended; ++i) {
    const float* g = g_pooled->row(i);
    if (w.arch.pooling == Pooling::max_all) {
      for (size_t j = 0; j < d; ++j) g_tokens.row(s.largest[i * d + j])[j] += g[j];
      continue;
    }
    const auto [first, last] = pooled_rows(w.arch, s.batch, pruned(), i);
    const float by = divisor(w.arch.pooling, last - first);
    for (size_t r = first; r < last; ++r)
      for (size_t j = 0; j < d; ++j) g_tokens.row(r)[j] += g[j] / by;
  }
  if (normed) run_norm_backward(c, w.final_norm, rows, s.x, g_tokens, false, s.g);
}

}  // namespace fungi
