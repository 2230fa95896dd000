// SPDX-License-Identifier: Apache-2.0
// The attention half of a block: qkv, rotary or relative positions, softmax attention, inner norm,
// output projection; and its backward. A pruned block computes keys and values for all tokens but
// queries for the pooled ones only.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "fungi/backbone/block.h"
#include "fungi/backbone/position.h"

namespace fungi {
namespace {

// Rotates pairs of each head by the token's angles; sign -1 undoes it (the backward of a rotation).
// Pairs are neighbours, or of words and DINOv3 the two halves of the head. table: [tokens, 2·head_dim],
// cosines then sines.
void rotate(const Architecture& a, float* row, const float* angles, float sign) {
  const size_t d = a.head_dim, half = d / 2;
  const float *cosine = angles, *sine = angles + d;
  const bool halves = a.input == InputKind::token_ids || a.rotary_centred;
  const auto pair = [&](float& x, float& y, size_t j) {
    const float first = x, second = y;
    x = first * cosine[j] - sign * second * sine[j];
    y = second * cosine[j] + sign * first * sine[j];
  };
  for (size_t h = 0; h < a.heads; ++h, row += d)
    for (size_t j = 0; j < half; ++j)
      halves ? pair(row[j], row[half + j], j) : pair(row[2 * j], row[2 * j + 1], 2 * j);
}

// Applies rotary positions to the element rows of queries or keys; `tokens` rows per sample
// starting at token 0.
void rotate_elements(BlockContext& c, const Matrix<float>& rotary, std::byte* first, size_t stride,
                     size_t sample_tokens) {
  const size_t width = c.arch.attention_width(), prefix = c.arch.prefix_tokens;
  if (sample_tokens <= prefix) return;
  c.scratch.product.ensure(1, width);
  float* row = c.scratch.product.row(0);
  for (size_t t = prefix; t < sample_tokens; ++t) {
    std::byte* at = first + t * stride * c.kernel.element_size;
    c.kernel.to_floats(1, width, at, stride, row, width);
    rotate(c.arch, row, rotary.row(t - prefix), 1);
    c.kernel.to_elements(1, width, row, width, at, stride);
  }
}

// What each distance up to `tokens` adds, [heads, 2 reach - 1]; that of 0 is in the middle.
const float* bias_by_distance(BlockContext& c, size_t tokens) {
  Scratch& t = c.scratch;
  if (t.relative_reach >= tokens) return t.by_distance.data();
  const size_t reach = std::max(tokens, 2 * t.relative_reach), row = 2 * reach - 1;
  t.by_distance.resize(c.arch.heads * row);
  for (size_t j = 0; j < row; ++j) {
    const size_t bucket = relative_bucket(long(j) - long(reach - 1), c.arch.relative_buckets,
                                          c.arch.relative_distance);
    for (size_t h = 0; h < c.arch.heads; ++h)
      t.by_distance[h * row + j] = (*c.relative_table)(bucket, h);
  }
  t.relative_reach = reach;
  return t.by_distance.data();
}

// T5's bias for a sample of t tokens, the same in every block; kept for the next one of that
// length. A workspace forgets it when another backbone runs in it (Run).
const float* relative_bias(BlockContext& c, size_t queries, size_t tokens) {
  if (!c.relative_table) return nullptr;
  Scratch& t = c.scratch;
  std::vector<float>& bias = t.relative_bias;
  const size_t heads = c.arch.heads;
  if (t.relative_queries == queries && t.relative_tokens == tokens) return bias.data();
  bias.resize(heads * queries * tokens);
  const float* by_distance = bias_by_distance(c, tokens);
  const size_t reach = t.relative_reach;
  for (size_t h = 0; h < heads; ++h)
    for (size_t i = 0; i < queries; ++i)
      std::copy_n(by_distance + h * (2 * reach - 1) + reach - 1 - i, tokens,
                  bias.data() + (h * queries + i) * tokens);
  t.relative_queries = queries, t.relative_tokens = tokens;
  return bias.data();
}

// The attention call of one sample: where its queries, keys and values lie.
kernel::Attention sample_attention(BlockContext& c, size_t i) {
  const size_t inner = c.arch.attention_width(), first = c.batch.offsets[i];
  kernel::Attention a;
  a.queries = c.queries(i);
  a.tokens = c.batch.tokens(i);
  a.heads = c.arch.heads;
  a.head_dim = c.arch.head_dim;
  a.scale = c.arch.scale_attention ? 1.0f / std::sqrt(float(c.arch.head_dim)) : 1.0f;
  BlockState& s = c.state;
  if (c.block.pruned) {
    a.q = s.q.row(c.first_query(i)), a.q_stride = s.q.stride();
    a.k = s.kv.at(first, 0), a.v = s.kv.at(first, inner), a.k_stride = a.v_stride = s.kv.stride();
  } else {
    a.q = s.qkv.at(first, 0), a.k = s.qkv.at(first, inner), a.v = s.qkv.at(first, 2 * inner);
    a.q_stride = a.k_stride = a.v_stride = s.qkv.stride();
  }
  a.bias = relative_bias(c, a.queries, a.tokens);
  const size_t needed = c.kernel.attention_scratch(a.tokens, a.head_dim);
  if (c.scratch.kernel.bytes() < needed) c.scratch.kernel = Buffer(needed);
  return a;
}

constexpr size_t kWindowQueries = 64;

// A local block takes the queries of a text some at a time, with the tokens that any of them sees,
// and head by head, since all share the mask. visit(part, first query, first token, head).
template <class Visit>
void each_window(BlockContext& c, const kernel::Attention& whole, const Visit& visit) {
  const size_t distance = c.local_distance, size = c.kernel.element_size, d = whole.head_dim;
  const auto moved = [&](const void* from, size_t stride, size_t row, size_t column) {
    return static_cast<const std::byte*>(from) + (row * stride + column) * size;
  };
  std::vector<float>& mask = c.scratch.window;
  for (size_t query = 0; query < whole.queries; query += kWindowQueries) {
    kernel::Attention part = whole;
    part.queries = std::min(kWindowQueries, whole.queries - query);
    const size_t first = query - std::min(query, distance),
                 last = std::min(whole.tokens, query + part.queries + distance);
    part.tokens = last - first, part.heads = 1;
    mask.assign(part.queries * part.tokens, 0.0f);
    for (size_t i = 0; i < part.queries; ++i)
      for (size_t j = 0; j < part.tokens; ++j) {
        const size_t q = query + i, k = first + j;
        if (std::max(q, k) - std::min(q, k) > distance)
          mask[i * part.tokens + j] = -std::numeric_limits<float>::infinity();
      }
    part.bias = mask.data();
    for (size_t h = 0; h < whole.heads; ++h) {
      part.q = moved(whole.q, whole.q_stride, query, h * d);
      part.k = moved(whole.k, whole.k_stride, first, h * d);
      part.v = moved(whole.v, whole.v_stride, first, h * d);
      if (whole.out) part.out = whole.out + query * whole.out_stride + h * d;
      if (whole.element_out)
        part.element_out = static_cast<std::byte*>(whole.element_out) +
                           (query * whole.element_stride + h * d) * size;
      visit(part, query, first, h);
    }
  }
}

// Whether tokens of the sample lie too far apart to see each other.
bool is_windowed(const BlockContext& c, const kernel::Attention& a) {
  return c.local_distance && a.tokens > c.local_distance + 1;
}

void run_attention(BlockContext& c, const kernel::Attention& a) {
  if (!is_windowed(c, a)) return c.kernel.attention(a, c.scratch.kernel.data());
  each_window(c, a, [&](const kernel::Attention& part, size_t, size_t, size_t) {
    c.kernel.attention(part, c.scratch.kernel.data());
  });
}

void run_attention_backward(BlockContext& c, const kernel::AttentionBackward& b) {
  const kernel::Attention& a = b.forward;
  void* scratch = c.scratch.kernel.data();
  if (!is_windowed(c, a)) return c.kernel.attention_backward(b, scratch);
  for (size_t i = 0; i < a.tokens; ++i) {
    std::fill_n(b.d_k + i * b.d_k_stride, a.heads * a.head_dim, 0.0f);
    std::fill_n(b.d_v + i * b.d_v_stride, a.heads * a.head_dim, 0.0f);
  }
  Floats& d_keys = c.scratch.floats;  // those of a window, then of its values
  const size_t d = a.head_dim, longest = kWindowQueries + 2 * c.local_distance;
  d_keys.ensure(2 * longest, d);
  each_window(c, a, [&](const kernel::Attention& part, size_t query, size_t first, size_t head) {
    kernel::AttentionBackward window = b;
    window.forward = part;
    window.d_out = b.d_out + query * b.d_out_stride + head * d;
    window.d_q = b.d_q + query * b.d_q_stride + head * d;
    window.d_k = d_keys.row(0), window.d_v = d_keys.row(longest);
    window.d_k_stride = window.d_v_stride = d_keys.stride();
    c.kernel.attention_backward(window, scratch);
    for (size_t i = 0; i < part.tokens; ++i) {
      float* d_k = b.d_k + (first + i) * b.d_k_stride + head * d;
      float* d_v = b.d_v + (first + i) * b.d_v_stride + head * d;
      for (size_t j = 0; j < d; ++j)
        d_k[j] += d_keys.row(i)[j], d_v[j] += d_keys.row(longest + i)[j];
    }
  });
}

void project_into(BlockContext& c, const Linear& linear, size_t rows, const Elements& in,
                  Elements& out) {
  out.ensure(c.kernel, rows, linear.out);
  kernel::Epilogue e;
  e.bias = linear.bias_data();
  e.element_out = out.row(0), e.element_stride = out.stride();
  run_linear(c, linear, rows, in.at(0, 0), in.stride(), e);
}

}  // namespace

void attention_forward(BlockContext& c, const Residual& r) {
  const size_t rows = c.batch.rows(), query_rows = c.query_rows(), inner = c.arch.attention_width();
  BlockState& s = c.state;
  {
    const Stages::Scope scope(c.stages, "qkv");
    if (c.block.pruned) {
      project_into(c, c.block.kv, rows, c.scratch.in, s.kv);
      c.scratch.gathered.ensure(c.kernel, query_rows, c.arch.width);
      const size_t row_bytes = c.scratch.in.stride() * c.kernel.element_size;
      for (size_t i = 0; i < c.batch.samples; ++i)
        std::memcpy(c.scratch.gathered.row(c.first_query(i)), c.scratch.in.row(c.batch.offsets[i]),
                    c.queries(i) * row_bytes);
      project_into(c, c.block.q, query_rows, c.scratch.gathered, s.q);
    } else {
      project_into(c, c.block.qkv, rows, c.scratch.in, s.qkv);
    }
    if (c.rotary) {
      for (size_t i = 0; i < c.batch.samples; ++i) {
        const size_t first = c.batch.offsets[i];
        Elements& keys = c.block.pruned ? s.kv : s.qkv;
        Elements& queries = c.block.pruned ? s.q : s.qkv;
        const Matrix<float>& rotary = c.rotary_of(i);
        rotate_elements(c, rotary, keys.at(first, c.block.pruned ? 0 : inner), keys.stride(),
                        c.batch.tokens(i));
        rotate_elements(c, rotary, queries.at(c.first_query(i), 0), queries.stride(),
                        c.queries(i));
      }
    }
  }
  {
    const Stages::Scope scope(c.stages, "attention");
    s.proj_in.ensure(c.kernel, query_rows, inner);
    if (c.arch.attention_norm) s.context.ensure(query_rows, inner);
    for (size_t i = 0; i < c.batch.samples; ++i) {
      kernel::Attention a = sample_attention(c, i);
      const size_t q = c.first_query(i);
      if (c.arch.attention_norm) {
        a.out = s.context.row(q), a.out_stride = s.context.stride();
      } else {
        a.element_out = s.proj_in.row(q), a.element_stride = s.proj_in.stride();
      }
      run_attention(c, a);
    }
    if (c.arch.attention_norm)
      run_norm(c, c.block.attention_norm, query_rows, s.context, nullptr, &s.proj_in);
  }
  const Stages::Scope scope(c.stages, "proj");
  run_last_linear(c, c.block.proj, c.block.scale1, s.proj_in, r);
  if (c.mha_input_as_activation) {  // DEVIATION: see BackboneOptions
    const Elements& norm1 = c.block.pruned ? c.scratch.gathered : c.scratch.in;
    FUNGI_ASSERT(inner == c.arch.width && norm1.stride() == s.proj_in.stride());
    std::memcpy(s.proj_in.row(0), norm1.at(0, 0),
                query_rows * norm1.stride() * c.kernel.element_size);
  }
}

bool attention_backward(BlockContext& c, const Floats& d_out, const BlockTargets& targets,
                        Floats& d_in) {
  const size_t rows = c.batch.rows(), query_rows = c.query_rows(), inner = c.arch.attention_width(),
               d = c.arch.width;
  BlockState& s = c.state;
  Scratch& t = c.scratch;
  if (LayerGradient* gradient = targets[LayerId::Part::proj]) {
    t.floats.ensure(query_rows, inner);
    c.kernel.to_floats(query_rows, inner, s.proj_in.row(0), s.proj_in.stride(), t.floats.row(0),
                       t.floats.stride());
    emit(*gradient, c, false, !c.block.proj.bias.empty(), t.floats.row(0), t.floats.stride(), inner,
         d_out.row(0), d_out.stride(), d);
  }
  if (targets.last == LayerId::Part::proj) return true;
  t.d_context.ensure(query_rows, inner);
  run_linear_backward(c, c.block.proj, query_rows, d_out.row(0), d_out.stride(), t.d_context.row(0),
                      t.d_context.stride());
  const Floats* d_context = &t.d_context;
  if (c.arch.attention_norm) {
    run_norm_backward(c, c.block.attention_norm, query_rows, s.context, t.d_context, false,
                      t.product);
    d_context = &t.product;
  }
  t.d_qkv.ensure(rows, 3 * inner);
  for (size_t i = 0; i < rows; ++i)
    std::fill_n(t.d_qkv.row(i), inner, 0.0f);  // queries beyond the pooled ones have none
  for (size_t i = 0; i < c.batch.samples; ++i) {
    const Stages::Scope scope(c.stages, "backward");
    kernel::AttentionBackward b;
    b.forward = sample_attention(c, i);
    b.d_out = d_context->row(c.first_query(i)), b.d_out_stride = d_context->stride();
    float* first = t.d_qkv.row(c.batch.offsets[i]);
    b.d_q = first, b.d_k = first + inner, b.d_v = first + 2 * inner;
    b.d_q_stride = b.d_k_stride = b.d_v_stride = t.d_qkv.stride();
    run_attention_backward(c, b);
    if (c.rotary)
      for (size_t token = c.arch.prefix_tokens; token < c.batch.tokens(i); ++token) {
        const float* angles = c.rotary_of(i).row(token - c.arch.prefix_tokens);
        float* row = t.d_qkv.row(c.batch.offsets[i] + token);
        if (token < c.queries(i)) rotate(c.arch, row, angles, -1);
        rotate(c.arch, row + inner, angles, -1);
      }
  }
  if (LayerGradient* gradient = targets[LayerId::Part::qkv]) {
    const Floats* input = &s.x_in;
    if (!c.arch.post_norm && c.block.norm1) {
      run_norm(c, c.block.norm1, rows, s.x_in, &t.floats, nullptr);
      input = &t.floats;
    }
    const bool bias = !(c.block.pruned ? c.block.kv : c.block.qkv).bias.empty();
    emit(*gradient, c, true, bias, input->row(0), input->stride(), d, t.d_qkv.row(0),
         t.d_qkv.stride(), 3 * inner);
  }
  if (targets.last == LayerId::Part::qkv) return true;
  d_in.ensure(rows, d);
  if (!c.block.pruned) {
    run_linear_backward(c, c.block.qkv, rows, t.d_qkv.row(0), t.d_qkv.stride(), d_in.row(0),
                        d_in.stride());
    return false;
  }
  run_linear_backward(c, c.block.kv, rows, t.d_qkv.row(0) + inner, t.d_qkv.stride(), d_in.row(0),
                      d_in.stride());
  for (size_t i = 0; i < c.batch.samples; ++i) {
    float* pooled = d_in.row(c.batch.offsets[i]);
    run_linear_backward(c, c.block.q, c.queries(i), t.d_qkv.row(c.batch.offsets[i]),
                        t.d_qkv.stride(), pooled, d_in.stride(), pooled, d_in.stride());
  }
  return false;
}

}  // namespace fungi
