// SPDX-License-Identifier: Apache-2.0
// The glue of a block: norms and residuals around its two halves.
//   before-norm: x' = x + s1 ⊙ attention(norm1(x)),   y = x' + s2 ⊙ mlp(norm2(x'))
//   after-norm:  h  = norm1(x + attention(x)),        y = norm2(h + mlp(h))
#include "fungi/backbone/block.h"

#include <algorithm>

namespace fungi {
namespace {

void copy_rows(const float* from, size_t from_stride, float* to, size_t to_stride, size_t rows,
               size_t cols) {
  for (size_t i = 0; i < rows; ++i) std::copy_n(from + i * from_stride, cols, to + i * to_stride);
}

// Of x, only the rows of the pooled tokens, side by side. They move to the front, in order, so none
// is overwritten before its turn; those of the first sample lie there already.
void keep_pooled(const BlockContext& c, Floats& x) {
  for (size_t i = 1; i < c.batch.samples; ++i)
    copy_rows(x.row(c.batch.offsets[i]), x.stride(), x.row(c.first_query(i)), x.stride(),
              c.queries(i), c.arch.width);
}

void multiply_columns(size_t rows, size_t cols, const std::vector<float>& scale, const Floats& x,
                      Floats& out) {
  out.ensure(rows, cols);
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < cols; ++j)
      out.row(i)[j] = x.row(i)[j] * (scale.empty() ? 1.0f : scale[j]);
}

void add_rows(size_t rows, size_t cols, const Floats& x, Floats& out) {
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < cols; ++j) out.row(i)[j] += x.row(i)[j];
}

// ∂L/∂(block input) also has the residual's share, which in a pruned block reaches the pooled rows
// only.
void add_residual_gradient(const BlockContext& c, const Floats& g_mid, Floats& g_in) {
  for (size_t i = 0; i < c.batch.samples; ++i)
    for (size_t q = 0; q < c.queries(i); ++q) {
      float* to = g_in.row(c.batch.offsets[i] + q);
      const float* from = g_mid.row(c.first_query(i) + q);
      for (size_t j = 0; j < c.arch.width; ++j) to[j] += from[j];
    }
}

}  // namespace

void run_norm(const BlockContext& c, const Norm& norm, size_t rows, const Floats& x, Floats* out,
              Elements* elements) {
  const Stages::Scope scope(c.stages, "norm");
  const size_t d = norm.weight.size();
  if (out) out->ensure(rows, d);
  if (elements) elements->ensure(c.kernel, rows, d);
  c.kernel.norm(c.arch.rms_norm, rows, d, x.row(0), x.stride(), norm.weight.data(), norm.beta(),
                c.arch.norm_epsilon, out ? out->row(0) : nullptr, out ? out->stride() : 0,
                elements ? elements->row(0) : nullptr, elements ? elements->stride() : 0);
}

void run_norm_backward(const BlockContext& c, const Norm& norm, size_t rows, const Floats& x,
                       const Floats& d_out, bool accumulate, Floats& d_x) {
  const Stages::Scope scope(c.stages, "backward");
  const size_t d = norm.weight.size();
  d_x.ensure(rows, d);
  c.kernel.norm_backward(c.arch.rms_norm, rows, d, x.row(0), x.stride(), norm.weight.data(),
                         c.arch.norm_epsilon, d_out.row(0), d_out.stride(), accumulate, d_x.row(0),
                         d_x.stride());
}

void run_gemm(Scratch& scratch, const kernel::Kernel& kernel, size_t rows, const void* x,
              size_t stride, const kernel::PackedMatrix& w, const kernel::Epilogue& epilogue) {
  const size_t needed = kernel.gemm_scratch(rows, w.n, w.k);
  if (scratch.kernel.bytes() < needed) scratch.kernel = Buffer(needed);
  kernel.gemm(rows, x, stride, w, epilogue, scratch.kernel.data());
}

void run_linear(BlockContext& c, const Linear& linear, size_t rows, const void* x, size_t stride,
                const kernel::Epilogue& epilogue) {
  run_gemm(c.scratch, *linear.table, rows, x, stride, linear.forward, epilogue);
}

void run_last_linear(BlockContext& c, const Linear& linear, const std::vector<float>& scale,
                     const Elements& x, const Residual& r) {
  kernel::Epilogue e;
  e.bias = linear.bias_data();
  e.scale = scale.empty() ? nullptr : scale.data();
  e.residual = r.residual, e.residual_stride = r.residual_stride;
  e.out = r.out, e.out_stride = r.out_stride;
  run_linear(c, linear, c.query_rows(), x.at(0, 0), x.stride(), e);
}

void run_linear_backward(BlockContext& c, const Linear& linear, size_t rows, const float* d_y,
                         size_t d_y_stride, float* d_x, size_t d_x_stride, const float* residual,
                         size_t residual_stride) {
  const Stages::Scope scope(c.stages, "backward");
  FUNGI_ASSERT(linear.backward.n == linear.in);
  c.scratch.gradient.ensure(c.kernel, rows, linear.out);
  c.kernel.to_elements(rows, linear.out, d_y, d_y_stride, c.scratch.gradient.row(0),
                       c.scratch.gradient.stride());
  kernel::Epilogue e;
  e.residual = residual, e.residual_stride = residual_stride;
  e.out = d_x, e.out_stride = d_x_stride;
  run_gemm(c.scratch, c.kernel, rows, c.scratch.gradient.row(0), c.scratch.gradient.stride(),
           linear.backward, e);
}

void emit(LayerGradient& gradient, const BlockContext& c, bool all_rows, bool bias, const float* a,
          size_t a_stride, size_t a_cols, const float* b, size_t b_stride, size_t b_cols) {
  const size_t rows = all_rows ? c.batch.rows() : c.query_rows();
  if (gradient.a.rows() != rows || gradient.a.cols() != a_cols)
    gradient.a = Matrix<float>(rows, a_cols);
  if (gradient.b.rows() != rows || gradient.b.cols() != b_cols)
    gradient.b = Matrix<float>(rows, b_cols);
  copy_rows(a, a_stride, gradient.a.data(), a_cols, rows, a_cols);
  copy_rows(b, b_stride, gradient.b.data(), b_cols, rows, b_cols);
  gradient.offsets = c.batch.offsets;
  if (!all_rows)
    for (size_t i = 0; i <= c.batch.samples; ++i)
      gradient.offsets[i] = i < c.batch.samples ? c.first_query(i) : rows;
  gradient.bias = bias;
}

void block_forward(BlockContext& c, Floats& x) {
  const size_t rows = c.batch.rows(), d = c.arch.width, query_rows = c.query_rows();
  BlockState& s = c.state;
  if (c.keep) {
    s.x_in.ensure(rows, d);
    copy_rows(x.row(0), x.stride(), s.x_in.row(0), s.x_in.stride(), rows, d);
  }
  if (c.arch.post_norm || !c.block.norm1) {
    c.scratch.in.ensure(c.kernel, rows, d);
    c.kernel.to_elements(rows, d, x.row(0), x.stride(), c.scratch.in.row(0), c.scratch.in.stride());
  } else {
    run_norm(c, c.block.norm1, rows, x, nullptr, &c.scratch.in);
  }
  if (c.block.pruned) keep_pooled(c, x);
  if (c.arch.post_norm) {
    s.x_mid.ensure(query_rows, d);
    attention_forward(c, {x.row(0), x.stride(), s.x_mid.row(0), s.x_mid.stride()});
    run_norm(c, c.block.norm1, query_rows, s.x_mid, &x, &c.scratch.in);
    s.y.ensure(query_rows, d);
    mlp_forward(c, {x.row(0), x.stride(), s.y.row(0), s.y.stride()});
    run_norm(c, c.block.norm2, query_rows, s.y, &x, nullptr);
    return;
  }
  attention_forward(c, {x.row(0), x.stride(), x.row(0), x.stride()});
  if (c.keep) {
    s.x_mid.ensure(query_rows, d);
    copy_rows(x.row(0), x.stride(), s.x_mid.row(0), s.x_mid.stride(), query_rows, d);
  }
  run_norm(c, c.block.norm2, query_rows, x, nullptr, &c.scratch.in);
  mlp_forward(c, {x.row(0), x.stride(), x.row(0), x.stride()});
}

bool block_backward(BlockContext& c, Floats& g, const BlockTargets& targets) {
  const size_t rows = c.batch.rows(), d = c.arch.width, query_rows = c.query_rows();
  BlockState& s = c.state;
  Scratch& t = c.scratch;
  if (c.arch.post_norm) {
    run_norm_backward(c, c.block.norm2, query_rows, s.y, g, false, t.d_half);
    if (mlp_backward(c, t.d_half, targets, t.d_n)) return true;
    add_rows(query_rows, d, t.d_n, t.d_half);  // now ∂L/∂h
    run_norm_backward(c, c.block.norm1, query_rows, s.x_mid, t.d_half, false, g);
    if (attention_backward(c, g, targets, t.d_in)) return true;
  } else {
    multiply_columns(query_rows, d, c.block.scale2, g, t.d_half);
    if (mlp_backward(c, t.d_half, targets, t.d_n)) return true;
    run_norm_backward(c, c.block.norm2, query_rows, s.x_mid, t.d_n, true, g);
    multiply_columns(query_rows, d, c.block.scale1, g, t.d_half);
    if (attention_backward(c, t.d_half, targets, t.d_n)) return true;
    if (c.block.norm1)
      run_norm_backward(c, c.block.norm1, rows, s.x_in, t.d_n, false, t.d_in);
    else
      std::swap(t.d_in, t.d_n);
  }
  add_residual_gradient(c, g, t.d_in);  // g is now that after the attention
  g.ensure(rows, d);
  copy_rows(t.d_in.row(0), t.d_in.stride(), g.row(0), g.stride(), rows, d);
  return false;
}

}  // namespace fungi
