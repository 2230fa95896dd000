// SPDX-License-Identifier: Apache-2.0
// The MLP half of a block, plain act(fc1(n)) or gated act(gate) ⊙ value with an optional inner
// norm, and its backward. A gated fc1 holds the gate's rows first, then the value's.
#include "fungi/backbone/block.h"

namespace fungi {
namespace {

// product = act(gate) ⊙ value, from u = [gate | value].
void gate(BlockContext& c, size_t rows, const Floats& u, Floats& product) {
  const size_t hidden = c.arch.mlp_hidden;
  product.ensure(rows, hidden);
  c.kernel.activate(c.arch.activation, rows, hidden, u.row(0), u.stride(), product.row(0),
                    product.stride());
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < hidden; ++j) product.row(i)[j] *= u.row(i)[hidden + j];
}

// What fc2 reads, in f32, recomputed from u.
void hidden_floats(BlockContext& c, size_t rows, Floats& out) {
  const Floats& u = c.state.u;
  if (c.arch.gated_mlp) {
    Floats& product = c.arch.mlp_norm ? c.scratch.product : out;
    gate(c, rows, u, product);
    if (c.arch.mlp_norm) run_norm(c, c.block.mlp_norm, rows, product, &out, nullptr);
    return;
  }
  out.ensure(rows, c.arch.mlp_hidden);
  c.kernel.activate(c.arch.activation, rows, c.arch.mlp_hidden, u.row(0), u.stride(), out.row(0),
                    out.stride());
}

}  // namespace

void mlp_forward(BlockContext& c, const Residual& r) {
  const size_t rows = c.query_rows(), hidden = c.arch.mlp_hidden;
  Scratch& t = c.scratch;
  t.hidden.ensure(c.kernel, rows, hidden);
  {
    const Stages::Scope scope(c.stages, "fc1");
    kernel::Epilogue e;
    e.bias = c.block.fc1.bias_data();
    if (c.arch.gated_mlp) {
      c.state.u.ensure(rows, 2 * hidden);
      e.out = c.state.u.row(0), e.out_stride = c.state.u.stride();
    } else {
      e.activation = c.arch.activation;
      e.element_out = t.hidden.row(0), e.element_stride = t.hidden.stride();
      if (c.keep) {
        c.state.u.ensure(rows, hidden);
        e.pre_activation = c.state.u.row(0), e.pre_stride = c.state.u.stride();
      }
    }
    run_linear(c, c.block.fc1, rows, t.in.row(0), t.in.stride(), e);
    if (c.arch.gated_mlp) {
      gate(c, rows, c.state.u, t.product);
      if (c.arch.mlp_norm)
        run_norm(c, c.block.mlp_norm, rows, t.product, nullptr, &t.hidden);
      else
        c.kernel.to_elements(rows, hidden, t.product.row(0), t.product.stride(), t.hidden.row(0),
                             t.hidden.stride());
    }
  }
  const Stages::Scope scope(c.stages, "fc2");
  run_last_linear(c, c.block.fc2, c.block.scale2, t.hidden, r);
}

bool mlp_backward(BlockContext& c, const Floats& d_out, const BlockTargets& targets, Floats& d_in) {
  const size_t rows = c.query_rows(), hidden = c.arch.mlp_hidden, d = c.arch.width;
  Scratch& t = c.scratch;
  const Floats& u = c.state.u;
  if (LayerGradient* gradient = targets[LayerId::Part::fc2]) {
    hidden_floats(c, rows, t.floats);
    emit(*gradient, c, false, !c.block.fc2.bias.empty(), t.floats.row(0), t.floats.stride(), hidden,
         d_out.row(0), d_out.stride(), d);
  }
  if (targets.last == LayerId::Part::fc2) return true;
  t.d_hidden.ensure(rows, hidden);
  run_linear_backward(c, c.block.fc2, rows, d_out.row(0), d_out.stride(), t.d_hidden.row(0),
                      t.d_hidden.stride());
  t.d_u.ensure(rows, c.block.fc1.out);
  if (c.arch.gated_mlp) {
    const Floats* d_product = &t.d_hidden;
    if (c.arch.mlp_norm) {
      gate(c, rows, u, t.product);
      run_norm_backward(c, c.block.mlp_norm, rows, t.product, t.d_hidden, false, t.floats);
      d_product = &t.floats;
    }
    c.kernel.activate(c.arch.activation, rows, hidden, u.row(0), u.stride(), t.d_u.row(0) + hidden,
                      t.d_u.stride());
    t.product.ensure(rows, hidden);
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < hidden; ++j) {
        t.product.row(i)[j] = d_product->row(i)[j] * u.row(i)[hidden + j];
        t.d_u.row(i)[hidden + j] *= d_product->row(i)[j];
      }
    c.kernel.activate_backward(c.arch.activation, rows, hidden, u.row(0), u.stride(),
                               t.product.row(0), t.product.stride(), t.d_u.row(0), t.d_u.stride());
  } else {
    c.kernel.activate_backward(c.arch.activation, rows, hidden, u.row(0), u.stride(),
                               t.d_hidden.row(0), t.d_hidden.stride(), t.d_u.row(0),
                               t.d_u.stride());
  }
  if (LayerGradient* gradient = targets[LayerId::Part::fc1]) {
    run_norm(c, c.arch.post_norm ? c.block.norm1 : c.block.norm2, rows, c.state.x_mid, &t.floats,
             nullptr);
    emit(*gradient, c, false, !c.block.fc1.bias.empty(), t.floats.row(0), t.floats.stride(), d,
         t.d_u.row(0), t.d_u.stride(), c.block.fc1.out);
  }
  if (targets.last == LayerId::Part::fc1) return true;
  d_in.ensure(rows, d);
  run_linear_backward(c, c.block.fc1, rows, t.d_u.row(0), t.d_u.stride(), d_in.row(0),
                      d_in.stride());
  return false;
}

}  // namespace fungi
