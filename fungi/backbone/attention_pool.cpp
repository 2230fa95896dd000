// SPDX-License-Identifier: Apache-2.0
#include "fungi/backbone/attention_pool.h"

#include <algorithm>
#include <cmath>

namespace fungi {
namespace {

// The first token of view i that is attended to.
size_t first_token(const BlockContext& c, size_t i) {
  return c.batch.offsets[i] + (c.arch.pool_prefix ? 0 : c.arch.prefix_tokens);
}

kernel::Attention view_attention(BlockContext& c, const PoolState& s, size_t i) {
  const size_t first = first_token(c, i), d = c.arch.width;
  kernel::Attention a;
  a.queries = 1;
  a.tokens = c.batch.offsets[i + 1] - first;
  a.heads = c.arch.pool_heads;
  a.head_dim = d / c.arch.pool_heads;
  a.scale = 1.0f / std::sqrt(float(a.head_dim));
  a.q = s.query.at(0, 0), a.k = s.kv.at(first, 0), a.v = s.kv.at(first, d);
  a.q_stride = s.query.stride(), a.k_stride = a.v_stride = s.kv.stride();
  const size_t needed = c.kernel.attention_scratch(a.tokens, a.head_dim);
  if (c.scratch.kernel.bytes() < needed) c.scratch.kernel = Buffer(needed);
  return a;
}

}  // namespace

AttentionPool load_attention_pool(const LinearTables& tables, const Tensors& tensors,
                                  const Architecture& a) {
  AttentionPool pool;
  pool.query = tensors.vector("pool.latent");
  if (a.pool_query) {
    const Matrix<float> weight = tensors.matrix("pool.q.weight");
    const std::vector<float> bias = tensors.vector("pool.q.bias"), latent = pool.query;
    for (size_t i = 0; i < a.width; ++i) {
      double sum = bias.empty() ? 0 : bias[i];
      for (size_t j = 0; j < a.width; ++j) sum += double(weight(i, j)) * latent[j];
      pool.query[i] = float(sum);
    }
  }
  Matrix<float> keys_values(2 * a.width, a.width);
  std::vector<float> bias;
  for (const bool value : {false, true}) {
    const std::string name = value ? "pool.v" : "pool.k";
    const Matrix<float> weight = tensors.matrix(name + ".weight");
    std::copy_n(weight.data(), a.width * a.width, keys_values.row(value ? a.width : 0));
    const std::vector<float> own = tensors.vector(name + ".bias");
    bias.insert(bias.end(), own.begin(), own.end());
  }
  pool.kv = slice_linear(tables, keys_values, bias, 0, 2 * a.width);
  pool.proj = load_linear(tables, tensors, "pool.proj");
  if (a.pool_hidden == 0) return pool;
  pool.norm = load_norm(tensors, "pool.norm");
  pool.fc1 = load_linear(tables, tensors, "pool.fc1");
  pool.fc2 = load_linear(tables, tensors, "pool.fc2");
  return pool;
}

void attention_pool_forward(BlockContext& c, const AttentionPool& pool, PoolState& s,
                            const Floats& z, Floats& pooled) {
  const size_t d = c.arch.width, rows = c.batch.rows(), n = c.batch.samples;
  Scratch& t = c.scratch;
  s.query.ensure(c.kernel, 1, d);
  c.kernel.to_elements(1, d, pool.query.data(), d, s.query.row(0), s.query.stride());
  t.in.ensure(c.kernel, rows, d);
  c.kernel.to_elements(rows, d, z.row(0), z.stride(), t.in.row(0), t.in.stride());
  s.kv.ensure(c.kernel, rows, 2 * d);
  kernel::Epilogue keys;
  keys.bias = pool.kv.bias_data();
  keys.element_out = s.kv.row(0), keys.element_stride = s.kv.stride();
  run_linear(c, pool.kv, rows, t.in.row(0), t.in.stride(), keys);
  s.context.ensure(c.kernel, n, d);
  for (size_t i = 0; i < n; ++i) {
    kernel::Attention a = view_attention(c, s, i);
    a.element_out = s.context.row(i), a.element_stride = s.context.stride();
    c.kernel.attention(a, t.kernel.data());
  }
  Floats& mid = c.arch.pool_hidden ? s.mid : pooled;
  mid.ensure(n, d);
  kernel::Epilogue proj;
  proj.bias = pool.proj.bias_data();
  proj.out = mid.row(0), proj.out_stride = mid.stride();
  run_linear(c, pool.proj, n, s.context.row(0), s.context.stride(), proj);
  if (c.arch.pool_hidden == 0) return;
  const size_t hidden = c.arch.pool_hidden;
  run_norm(c, pool.norm, n, mid, nullptr, &t.in);
  s.u.ensure(n, hidden);
  s.hidden.ensure(c.kernel, n, hidden);
  kernel::Epilogue fc1;
  fc1.bias = pool.fc1.bias_data();
  fc1.activation = c.arch.pool_activation;
  fc1.pre_activation = s.u.row(0), fc1.pre_stride = s.u.stride();
  fc1.element_out = s.hidden.row(0), fc1.element_stride = s.hidden.stride();
  run_linear(c, pool.fc1, n, t.in.row(0), t.in.stride(), fc1);
  pooled.ensure(n, d);
  kernel::Epilogue fc2;
  fc2.bias = pool.fc2.bias_data();
  fc2.residual = mid.row(0), fc2.residual_stride = mid.stride();
  fc2.out = pooled.row(0), fc2.out_stride = pooled.stride();
  run_linear(c, pool.fc2, n, s.hidden.row(0), s.hidden.stride(), fc2);
}

void attention_pool_backward(BlockContext& c, const AttentionPool& pool, PoolState& s,
                             const Floats& d_pooled, Floats& d_z) {
  const size_t d = c.arch.width, rows = c.batch.rows(), n = c.batch.samples;
  const Floats* d_mid = &d_pooled;
  if (const size_t hidden = c.arch.pool_hidden) {
    s.d_hidden.ensure(n, hidden);
    run_linear_backward(c, pool.fc2, n, d_pooled.row(0), d_pooled.stride(), s.d_hidden.row(0),
                        s.d_hidden.stride());
    c.kernel.activate_backward(c.arch.pool_activation, n, hidden, s.u.row(0), s.u.stride(),
                               s.d_hidden.row(0), s.d_hidden.stride(), s.d_hidden.row(0),
                               s.d_hidden.stride());
    s.d_context.ensure(n, d);
    run_linear_backward(c, pool.fc1, n, s.d_hidden.row(0), s.d_hidden.stride(), s.d_context.row(0),
                        s.d_context.stride());
    s.d_mid.ensure(n, d);
    for (size_t i = 0; i < n; ++i) std::copy_n(d_pooled.row(i), d, s.d_mid.row(i));
    run_norm_backward(c, pool.norm, n, s.mid, s.d_context, true, s.d_mid);
    d_mid = &s.d_mid;
  }
  s.d_context.ensure(n, d);
  run_linear_backward(c, pool.proj, n, d_mid->row(0), d_mid->stride(), s.d_context.row(0),
                      s.d_context.stride());
  s.d_kv.ensure(rows, 2 * d);
  s.d_query.ensure(1, d);  // the query is the model's: nobody asks
  for (size_t i = 0; i < n; ++i) {
    for (size_t r = c.batch.offsets[i]; r < first_token(c, i); ++r)
      std::fill_n(s.d_kv.row(r), 2 * d, 0.0f);
    kernel::AttentionBackward b;
    b.forward = view_attention(c, s, i);
    b.d_out = s.d_context.row(i), b.d_out_stride = s.d_context.stride();
    float* first = s.d_kv.row(first_token(c, i));
    b.d_q = s.d_query.row(0), b.d_k = first, b.d_v = first + d;
    b.d_q_stride = s.d_query.stride(), b.d_k_stride = b.d_v_stride = s.d_kv.stride();
    c.kernel.attention_backward(b, c.scratch.kernel.data());
  }
  run_linear_backward(c, pool.kv, rows, s.d_kv.row(0), s.d_kv.stride(), d_z.row(0), d_z.stride(),
                      d_z.row(0), d_z.stride());
}

}  // namespace fungi
