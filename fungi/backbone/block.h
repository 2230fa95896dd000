// SPDX-License-Identifier: Apache-2.0
// One transformer block, before-norm or after-norm, forward and backward (SPEC 2.7). The attention
// half lives in attention.cpp, the MLP half in mlp.cpp; both keep in BlockState what their own
// backward needs. Internal to this room.
#pragma once

#include <vector>

#include "fungi/backbone/arena.h"
#include "fungi/backbone/backbone.h"
#include "fungi/backbone/linear.h"

namespace fungi {

struct Norm {
  std::vector<float> weight, bias;  // both empty where there is no such norm; bias also where it
                                    // has none
  const float* beta() const { return bias.empty() ? nullptr : bias.data(); }
  explicit operator bool() const { return !weight.empty(); }
};
inline Norm load_norm(const Tensors& tensors, const std::string& name) {
  return {tensors.vector(name + ".weight"), tensors.vector(name + ".bias")};
}

struct Block {
  Norm norm1, norm2, attention_norm, mlp_norm;
  Linear qkv;    // of a whole block
  Linear q, kv;  // of a pruned block instead: queries only for the pooled tokens
  Linear proj, fc1, fc2;
  std::vector<float> scale1, scale2;  // LayerScale; empty = none
  bool pruned = false;
};

// Which rows belong to which sample. A pruned block has query rows for those alone that the
// embedding is made of, the first of each sample.
struct Batch {
  size_t samples = 0;
  std::vector<size_t> offsets;        // samples + 1, in rows
  std::vector<size_t> query_offsets;  // samples + 1, in query rows of a pruned block
  // Of each sample that has a table of its own, BlockContext::rotary otherwise; or empty.
  std::vector<const Matrix<float>*> rotary;
  size_t rows() const { return offsets.back(); }
  size_t tokens(size_t i) const { return offsets[i + 1] - offsets[i]; }
  size_t pooled(size_t i) const { return query_offsets[i + 1] - query_offsets[i]; }
};

// What a block leaves behind. Kept blocks own one each; all others share one.
struct BlockState {
  Floats x_in;          // the block's input (before-norm: also the residual)
  Elements qkv, q, kv;  // after rotary
  Floats context;       // attention output before the inner norm, only with attention_norm
  Elements proj_in;     // what proj reads, or is said to have read (mha_input_as_activation)
  Floats x_mid;         // after attention; after-norm: the sum that norm1 reads
  Floats u;             // fc1's output before the activation
  Floats y;             // after-norm only: the sum that norm2 reads
};

// Shared temporary storage of a workspace.
struct Scratch {
  Elements patches, in, gathered, hidden, gradient;
  Floats floats, product;
  // ∂L/∂ of a block's input, a half's output, what a norm gave, and of what lies inside the halves
  Floats d_in, d_half, d_n, d_hidden, d_u, d_context, d_qkv;
  Buffer kernel;                     // for gemm and attention
  std::vector<float> relative_bias;  // [heads, queries, tokens] of the lengths below
  size_t relative_queries = 0, relative_tokens = 0;
  std::vector<float> by_distance;  // [heads, 2 relative_reach - 1]: the bias of each distance
  size_t relative_reach = 0;
  std::vector<float> window;  // [queries, tokens] of one block of queries: 0, or -inf for tokens
                              // that are too far away
};

struct BlockContext {
  const Architecture& arch;
  const kernel::Kernel& kernel;
  const Block& block;
  const Batch& batch;
  BlockState& state;
  Scratch& scratch;
  Stages& stages;
  const Matrix<float>* rotary = nullptr;  // [patches or words, 2 head_dim] cosines then sines
  const Matrix<float>* relative_table = nullptr;  // T5 [buckets, heads]
  size_t local_distance = 0;                      // of this block; 0: a token sees all others
  bool keep = false;
  bool mha_input_as_activation = false;  // BackboneOptions; of the layer's own block

  const Matrix<float>& rotary_of(size_t sample) const {
    const bool own = !batch.rotary.empty() && batch.rotary[sample];
    return own ? *batch.rotary[sample] : *rotary;
  }
  size_t query_rows() const { return block.pruned ? batch.query_offsets.back() : batch.rows(); }
  size_t queries(size_t sample) const {
    return block.pruned ? batch.pooled(sample) : batch.tokens(sample);
  }
  size_t first_query(size_t sample) const {
    return block.pruned ? batch.query_offsets[sample] : batch.offsets[sample];
  }
};

// x: the stream, [rows, width]; afterwards [query_rows, width].
void block_forward(BlockContext& c, Floats& x);

// Where the gradients of a block's layers go.
struct BlockTargets {
  LayerGradient* of[4] = {};          // by LayerId::Part; null: it is not wanted
  std::optional<LayerId::Part> last;  // nothing is computed beyond this layer
  LayerGradient* operator[](LayerId::Part part) const { return of[size_t(part)]; }
};

// g: ∂L/∂(block output) [query_rows, width]; afterwards ∂L/∂(block input) [rows, width]. Fills the
// factors of the gradients that are wanted; true where the last of them was met, g is undefined
// then.
bool block_backward(BlockContext& c, Floats& g, const BlockTargets& targets);

// The halves. attention_forward reads scratch.in (elements of its input) and adds into the stream
// through `out`.
struct Residual {
  const float* residual;
  size_t residual_stride;
  float* out;
  size_t out_stride;
};
void attention_forward(BlockContext& c, const Residual& r);
void mlp_forward(BlockContext& c, const Residual& r);

// d_out [query_rows, width] at the half's output (before LayerScale and residual). Returns true
// when the last layer was met here; otherwise d_in is ∂L/∂(the half's input).
bool attention_backward(BlockContext& c, const Floats& d_out, const BlockTargets& targets,
                        Floats& d_in);
bool mlp_backward(BlockContext& c, const Floats& d_out, const BlockTargets& targets, Floats& d_in);

// Shared by the halves.
void run_norm(const BlockContext& c, const Norm& norm, size_t rows, const Floats& x, Floats* out,
              Elements* elements);
void run_norm_backward(const BlockContext& c, const Norm& norm, size_t rows, const Floats& x,
                       const Floats& d_out, bool accumulate, Floats& d_x);
void run_gemm(Scratch& scratch, const kernel::Kernel& kernel, size_t rows, const void* x,
              size_t stride, const kernel::PackedMatrix& w, const kernel::Epilogue& epilogue);
void run_linear(BlockContext& c, const Linear& linear, size_t rows, const void* x, size_t stride,
                const kernel::Epilogue& epilogue);
// The end of a half: its last linear layer, LayerScale and the residual.
void run_last_linear(BlockContext& c, const Linear& linear, const std::vector<float>& scale,
                     const Elements& x, const Residual& r);
// d_x = d_y · W through the packed transpose.
void run_linear_backward(BlockContext& c, const Linear& linear, size_t rows, const float* d_y,
                         size_t d_y_stride, float* d_x, size_t d_x_stride,
                         const float* residual = nullptr, size_t residual_stride = 0);
void emit(LayerGradient& gradient, const BlockContext& c, bool all_rows, bool bias, const float* a,
          size_t a_stride, size_t a_cols, const float* b, size_t b_stride, size_t b_cols);

}  // namespace fungi
