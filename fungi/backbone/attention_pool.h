// SPDX-License-Identifier: Apache-2.0
// Pooling by attention (SigLIP, AIMv2, Perception Encoder): a learned query attends to the tokens
// of a view; a linear layer follows, and where there is one an MLP with a norm before it:
//   m = proj(attention(query, kv(z))),   pooled = m + fc2(act(fc1(norm(m))))
// Internal to this room.
#pragma once

#include "fungi/backbone/block.h"

namespace fungi {

struct AttentionPool {
  std::vector<float> query;  // the same for every view
  Linear kv, proj, fc1, fc2;
  Norm norm;
};

AttentionPool load_attention_pool(const LinearTables& tables, const Tensors& tensors,
                                  const Architecture& a);

// What the forward leaves for the backward.
struct PoolState {
  Elements query, kv, context, hidden;
  Floats mid, u, d_kv, d_query, d_mid, d_hidden, d_context;
};

// z: tokens [rows, width] after the final norm; pooled [samples, width].
void attention_pool_forward(BlockContext& c, const AttentionPool& pool, PoolState& s,
                            const Floats& z, Floats& pooled);
// Adds ∂L/∂z to d_z [rows, width]; d_pooled [samples, width].
void attention_pool_backward(BlockContext& c, const AttentionPool& pool, PoolState& s,
                             const Floats& d_pooled, Floats& d_z);

}  // namespace fungi
