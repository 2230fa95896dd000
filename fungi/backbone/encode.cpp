// SPDX-License-Identifier: Apache-2.0
// The one encoder that runs every architecture record, forward and backward. Only what the wanted
// layer's gradient needs is kept: with the default layer (output projection of the last block) and
// a pooled prefix token, the last block is evaluated for that token alone after its keys and
// values, and no attention is differentiated (SPEC 1.3).
#include "fungi/backbone/encode.h"

#include <fmt/format.h>

#include <algorithm>

namespace fungi {
namespace {

// How many leading tokens of a view the embedding is made of, or lies behind.
size_t needed_tokens(const Architecture& a, const Inputs& inputs, size_t view, size_t tokens) {
  if (a.pooling == Pooling::mean_sound)
    return a.prefix_tokens + a.sound_tokens(inputs.frames.empty() ? 0 : inputs.frames[view]);
  return a.pooled_tokens() > 0 ? a.pooled_tokens() : tokens;
}

// The rows of x that the pooling of sample i averages.
std::pair<size_t, size_t> pooled_rows(const Architecture& a, const Batch& batch, bool pruned,
                                      size_t i) {
  const bool own = a.pooling == Pooling::mean_patches || a.pooling == Pooling::mean_sound;
  const size_t first = pruned ? batch.query_offsets[i] : batch.offsets[i];
  return {first + (own ? a.prefix_tokens : 0), first + batch.pooled(i)};
}

}  // namespace

BlockContext Run::context(size_t index) {
  const bool keep = w.layer && index >= w.layer->block;
  if (keep && s.kept.size() < w.blocks.size() - w.layer->block)
    s.kept.resize(w.blocks.size() - w.layer->block);
  return {w.arch,
          *w.kernel,
          w.blocks[index],
          s.batch,
          keep ? s.kept[index - w.layer->block] : s.passing,
          s.scratch,
          workspace.stages,
          w.rotary.empty() ? nullptr : &w.rotary,
          w.relative_table.empty() ? nullptr : &w.relative_table,
          keep,
          keep && index == w.layer->block && w.options.mha_input_as_activation};
}

void Run::forward(const Inputs& inputs) {
  s.ready = false;
  embed(w.arch, *w.kernel, w.embedding, inputs, s.scratch, workspace.stages, s.batch, s.x);
  s.batch.query_offsets.assign(1, 0);
  for (size_t i = 0; i < s.batch.samples; ++i)
    s.batch.query_offsets.push_back(s.batch.query_offsets.back() +
                                    needed_tokens(w.arch, inputs, i, s.batch.tokens(i)));
  for (size_t i = 0; i < w.blocks.size(); ++i) {
    BlockContext c = context(i);
    block_forward(c, s.x);
  }
  s.ready = true;
}

void Run::finish(View<float> embeddings, View<float> tokens) {
  const Stages::Scope scope(workspace.stages, "pool");
  const size_t d = w.arch.width, n = s.batch.samples;
  BlockContext c = context(w.blocks.size() - 1);
  const Floats* z = &s.x;
  if (w.arch.final_norm && !w.arch.norm_after_pooling) {
    run_norm(c, w.final_norm, last_rows(), s.x, &s.normed, nullptr);
    z = &s.normed;
  }
  if (tokens.data)
    for (size_t i = 0; i < s.batch.rows(); ++i) std::copy_n(z->row(i), d, tokens.row(i));
  s.pooled.ensure(n, d);
  for (size_t i = 0; i < n; ++i) {
    const auto [first, last] = pooled_rows(w.arch, s.batch, pruned(), i);
    float* out = s.pooled.row(i);
    std::copy_n(z->row(first), d, out);
    for (size_t r = first + 1; r < last; ++r)
      for (size_t j = 0; j < d; ++j) out[j] += z->row(r)[j];
    for (size_t j = 0; j < d; ++j) out[j] /= float(last - first);
  }
  const Floats* result = &s.pooled;
  if (w.arch.norm_after_pooling) {
    run_norm(c, w.final_norm, n, s.pooled, &s.pooled_normed, nullptr);
    result = &s.pooled_normed;
  }
  if (!w.arch.head) {
    for (size_t i = 0; i < n; ++i) std::copy_n(result->row(i), d, embeddings.row(i));
    return;
  }
  s.scratch.gradient.ensure(*w.kernel, n, d);
  w.kernel->to_elements(n, d, result->row(0), result->stride(), s.scratch.gradient.row(0),
                        s.scratch.gradient.stride());
  kernel::Epilogue e;
  e.bias = w.head.bias_data();
  e.out = embeddings.data, e.out_stride = embeddings.stride;
  run_gemm(c, n, s.scratch.gradient.row(0), s.scratch.gradient.stride(), w.head.forward, e);
}

// ∂L/∂(embeddings, tokens) → ∂L/∂(last block's output), in s.g.
void Run::start_backward(View<const float> d_embeddings, View<const float> d_tokens) {
  const size_t d = w.arch.width, n = s.batch.samples, rows = last_rows();
  BlockContext c = context(w.blocks.size() - 1);
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
  for (size_t i = 0; i < n; ++i) {
    const auto [first, last] = pooled_rows(w.arch, s.batch, pruned(), i);
    for (size_t r = first; r < last; ++r)
      for (size_t j = 0; j < d; ++j)
        g_tokens.row(r)[j] += g_pooled->row(i)[j] / float(last - first);
  }
  if (normed) run_norm_backward(c, w.final_norm, rows, s.x, g_tokens, false, s.g);
}

void Run::backward(LayerGradient& gradient) {
  for (size_t i = w.blocks.size(); i-- > w.layer->block;) {
    BlockContext c = context(i);
    const LayerId::Part* target = i == w.layer->block ? &w.layer->part : nullptr;
    if (block_backward(c, s.g, target, gradient)) return;
  }
  FUNGI_ASSERT(!"the layer was not met");
}

void check_shape(const char* what, View<const float> found, size_t rows, size_t cols) {
  if (found.rows != rows || found.cols != cols)
    fail(fmt::format("expected a {}x{} matrix, found {}x{}", rows, cols, found.rows, found.cols),
         what, "one row per view, or of tokens one per token; see backbone.h");
}

namespace {

void check_tokens(const char* what, View<const float> found, bool opened_with) {
  if (found.data && !opened_with)
    fail("the backbone was opened without tokens", what, "open it with BackboneOptions::tokens");
}

}  // namespace

void Backbone::forward(const Inputs& inputs, Workspace& workspace, View<float> embeddings,
                       View<float> tokens) const {
  const Weights& w = *weights_;
  check_shape("embeddings", embeddings, inputs.count(), w.arch.embedding_width);
  check_tokens("tokens", tokens, w.options.tokens);
  Run run(*this, workspace);
  run.forward(inputs);
  if (tokens.data) check_shape("tokens", tokens, run.s.batch.rows(), w.arch.width);
  run.finish(embeddings, tokens);
}

void Backbone::backward(View<const float> d_embeddings, Workspace& workspace,
                        LayerGradient& gradient, View<const float> d_tokens) const {
  const Weights& w = *weights_;
  if (workspace.state_->backbone != w.number)
    fail("the workspace is of another backbone", "backbone", "run forward() of this one first");
  if (!w.layer)
    fail("the backbone was opened without a layer", "backward", "set BackboneOptions::layer");
  Run run(*this, workspace);
  if (!run.s.ready)
    fail("the workspace holds no views", "backward", "run forward() before each backward()");
  check_shape("d_embeddings", d_embeddings, run.s.batch.samples, w.arch.embedding_width);
  check_tokens("d_tokens", d_tokens, w.options.tokens);
  if (d_tokens.data) check_shape("d_tokens", d_tokens, run.s.batch.rows(), w.arch.width);
  run.start_backward(d_embeddings, d_tokens);
  run.backward(gradient);
}

}  // namespace fungi
