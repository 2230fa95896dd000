// SPDX-License-Identifier: Apache-2.0
// The plain structs of the kernel interface. This header emits no code: files compiled for one
// instruction set include it (and not kernel.h), so that nothing of theirs can leak into the rest
// of the program.
//
// "Element" is the type a table computes products in: float (f32) or bfloat16 (bf16). Element
// buffers are passed as void*. Products are always summed in f32. Residual streams, norms, softmax
// and every gradient are f32. An int8 table is a bf16 table whose gemm, while it copies a row of x,
// rounds it to 8 bits with a scale and a zero of its own (bytes.h); its sums are whole numbers.
//
// The promise that makes a sample independent of its batch: each row of any output depends only on
// the same row of the inputs (and on shared weights), by the same operations in the same order,
// whatever m is and wherever the row stands. Columns keep that promise where asked to
// (Epilogue::columns_alone).
#pragma once

#include <cstddef>
#include <cstdint>

namespace fungi {

// int8: products of the blocks' layers in whole numbers, all else as bf16.
enum class Precision { f32, bf16, int8 };

}  // namespace fungi

namespace fungi::kernel {

struct bfloat16 {
  uint16_t bits;
};

enum class Activation { none, relu, gelu, gelu_tanh, quick_gelu, silu };

struct PackedMatrix;  // kernel.h

// What a kernel sees of a PackedMatrix.
struct PackedView {
  const void* data;
  size_t n, k;
};
PackedView view_of(const PackedMatrix& matrix) noexcept;

// What happens to y = x · Wᵀ before it leaves the registers, in this order:
//   y += bias; [pre_activation ← y]; y = activation(y); y *= scale; y += residual; [out ← y];
//   [element_out ← y]
// Every pointer may be null, but one of the outputs must be there. residual and out may be the same
// memory.
struct Epilogue {
  const float* bias = nullptr;      // [n]
  float* pre_activation = nullptr;  // [m, n], row stride pre_stride; for the backward pass
  size_t pre_stride = 0;
  Activation activation = Activation::none;
  const float* scale = nullptr;     // [n], LayerScale
  const float* residual = nullptr;  // [m, n]
  size_t residual_stride = 0;
  float* out = nullptr;  // [m, n]
  size_t out_stride = 0;
  void* element_out =
      nullptr;  // [m, n] elements; columns n .. round_up(n, k_multiple) are left alone
  size_t element_stride = 0;
  // For callers whose samples are rows of W: a column, too, is then summed in one and the same
  // order wherever it stands. Tiles are faster when neighbouring panels may walk k in opposite
  // directions.
  bool columns_alone = false;
};

// Attention of one sample: t_q queries against t tokens, h heads side by side in each row.
//   out[i, head] = Σ_j softmax_j(scale · q_i·k_j + bias[head, i, j]) v_j
struct Attention {
  size_t queries = 0, tokens = 0, heads = 0, head_dim = 0;
  float scale = 1;
  const void *q = nullptr, *k = nullptr, *v = nullptr;  // elements; head h at columns h·head_dim
  size_t q_stride = 0, k_stride = 0, v_stride = 0;      // in elements
  const float* bias = nullptr;                          // [heads, queries, tokens] compact, or null
  float* out = nullptr;                                 // [queries, heads·head_dim] f32, and/or
  size_t out_stride = 0;
  void* element_out = nullptr;  // the same as elements
  size_t element_stride = 0;
};

// Its gradient: given d_out, adds to nothing, overwrites d_q, d_k, d_v (all f32, head h at columns
// h·head_dim).
struct AttentionBackward {
  Attention forward;             // q, k, v, bias as in the forward call (outputs unused)
  const float* d_out = nullptr;  // [queries, heads·head_dim]
  size_t d_out_stride = 0;
  float *d_q = nullptr, *d_k = nullptr, *d_v = nullptr;
  size_t d_q_stride = 0, d_k_stride = 0, d_v_stride = 0;
};

struct Kernel {
  const char* name = "";  // e.g. "avx2-f32"
  Precision precision = Precision::f32;
  size_t element_size = 4;
  // Element rows are given with a stride that is a multiple of this, and the columns k ..
  // round_up(k, k_multiple) of every element row hold zeros (workspaces start zeroed and nobody
  // writes there).
  size_t k_multiple = 1;

  // Weights. packed_bytes(): bytes needed; pack(): W is [n, k] with row stride w_stride, or,
  // transposed, its transpose is: transposed means element (i, j) of the packed matrix is w[j ·
  // w_stride + i].
  size_t (*packed_bytes)(size_t n, size_t k) noexcept = nullptr;
  void (*pack)(const float* w, size_t w_stride, bool transposed, size_t n, size_t k,
               void* packed) noexcept = nullptr;
  // Tables of int8 only: pack() for an x whose column j is divided by smoothing[j] before it is
  // rounded, and W's column j multiplied. The product stays what it was.
  void (*pack_smoothed)(const float* w, size_t w_stride, size_t n, size_t k, const float* smoothing,
                        void* packed) noexcept = nullptr;

  // Bytes of scratch that gemm and the two attention functions may use; 64-byte aligned, any
  // contents. Enough for every smaller m, and for any number of queries.
  size_t (*gemm_scratch)(size_t m, size_t n, size_t k) noexcept = nullptr;
  size_t (*attention_scratch)(size_t tokens, size_t head_dim) noexcept = nullptr;

  // y = x · Wᵀ with x [m, k] elements of row stride x_stride, then the epilogue.
  void (*gemm)(size_t m, const void* x, size_t x_stride, const PackedMatrix& w,
               const Epilogue& epilogue, void* scratch) noexcept = nullptr;

  void (*attention)(const Attention& args, void* scratch) noexcept = nullptr;
  void (*attention_backward)(const AttentionBackward& args, void* scratch) noexcept = nullptr;

  // Row-wise norms of x [m, d]. out (f32) and element_out may each be null, not both. beta may be
  // null. rms: x / sqrt(mean(x²) + eps); otherwise LayerNorm with the population variance.
  void (*norm)(bool rms, size_t m, size_t d, const float* x, size_t x_stride, const float* gamma,
               const float* beta, float eps, float* out, size_t out_stride, void* element_out,
               size_t element_stride) noexcept = nullptr;
  // d_x += (accumulate) or = the gradient through the norm; x is the norm's input.
  void (*norm_backward)(bool rms, size_t m, size_t d, const float* x, size_t x_stride,
                        const float* gamma, float eps, const float* d_out, size_t d_out_stride,
                        bool accumulate, float* d_x, size_t d_x_stride) noexcept = nullptr;

  // Row-wise activation and its derivative: out = f(u); d_u = d_out · f'(u). [m, d]
  void (*activate)(Activation f, size_t m, size_t d, const float* u, size_t u_stride, float* out,
                   size_t out_stride) noexcept = nullptr;
  void (*activate_backward)(Activation f, size_t m, size_t d, const float* u, size_t u_stride,
                            const float* d_out, size_t d_out_stride, float* d_u,
                            size_t d_u_stride) noexcept = nullptr;

  // Row-wise softmax in place, and log-sum-exp per row into lse when it is not null.
  void (*softmax)(size_t m, size_t d, float* x, size_t x_stride, float* lse) noexcept = nullptr;

  // f32 → elements and back; [m, d].
  void (*to_elements)(size_t m, size_t d, const float* x, size_t x_stride, void* out,
                      size_t out_stride) noexcept = nullptr;
  void (*to_floats)(size_t m, size_t d, const void* x, size_t x_stride, float* out,
                    size_t out_stride) noexcept = nullptr;
  // n floats as elements, and what their rounding leaves over, as elements, too.
  void (*split)(size_t n, const float* x, void* out, void* rest) noexcept = nullptr;

  // Σ x·y in f32 (blocked, fixed order) over n floats; used by search.
  float (*dot)(size_t n, const float* x, const float* y) noexcept = nullptr;

  // Runs `rounds` rounds of register-resident multiply-adds on 4096 given random floats and returns
  // how many floating point operations that was; the ceiling behind measure_peak_gflops().
  double (*multiply_add_rounds)(const float* random, size_t rounds) noexcept = nullptr;
};

}  // namespace fungi::kernel
