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

}  // namespace

BlockContext Run::context(size_t index) {
  const bool keep = w.layer && index >= w.layer->block;
  if (keep && s.kept.size() < w.depth() - w.layer->block) s.kept.resize(w.depth() - w.layer->block);
  const bool local = w.arch.is_local(index);
  const Matrix<float>& rotary = local ? w.local_rotary : w.rotary;
  return {w.arch,
          *w.kernel,
          w.block(index),
          s.batch,
          keep ? s.kept[index - w.layer->block] : s.passing,
          s.scratch,
          workspace.stages,
          rotary.empty() ? nullptr : &rotary,
          w.relative_table.empty() ? nullptr : &w.relative_table,
          local ? w.arch.local_distance : 0,
          keep,
          keep && w.options.mha_input_as_activation &&
              std::find(w.layers.begin(), w.layers.end(),
                        LayerId{index, LayerId::Part::proj}) != w.layers.end()};
}

void Run::forward(const Inputs& inputs) {
  s.ready = false;
  embed(w.arch, *w.products, w.embedding, inputs, s.grids, s.scratch, workspace.stages, s.batch,
        s.x);
  s.batch.query_offsets.assign(1, 0);
  for (size_t i = 0; i < s.batch.samples; ++i)
    s.batch.query_offsets.push_back(s.batch.query_offsets.back() +
                                    needed_tokens(w.arch, inputs, i, s.batch.tokens(i)));
  for (size_t i = 0; i < w.depth(); ++i) {
    BlockContext c = context(i);
    block_forward(c, s.x);
  }
  s.ready = true;
}

void Run::backward(std::span<LayerGradient> gradients) {
  size_t next = w.layers.size();
  for (size_t i = w.depth(); i-- > w.layer->block;) {
    BlockContext c = context(i);
    BlockTargets targets;
    while (next > 0 && w.layers[next - 1].block == i) {
      --next;
      targets.of[size_t(w.layers[next].part)] = &gradients[next];
    }
    if (i == w.layer->block) targets.last = w.layer->part;
    if (block_backward(c, s.g, targets)) return;
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

void check_gradients(size_t found, size_t layers) {
  if (found != layers)
    fail(fmt::format("expected gradients of {} layers, found room for {}", layers, found),
         "backward", "give one for each of layers()");
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
                        std::span<LayerGradient> gradients, View<const float> d_tokens) const {
  const Weights& w = *weights_;
  if (workspace.state_->backbone != w.number)
    fail("the workspace is of another backbone", "backbone", "run forward() of this one first");
  if (!w.layer)
    fail("the backbone was opened without a layer", "backward", "set BackboneOptions::layer");
  check_gradients(gradients.size(), w.layers.size());
  Run run(*this, workspace);
  if (!run.s.ready)
    fail("the workspace holds no views", "backward", "run forward() before each backward()");
  check_shape("d_embeddings", d_embeddings, run.s.batch.samples, w.arch.embedding_width);
  check_tokens("d_tokens", d_tokens, w.options.tokens);
  if (d_tokens.data) check_shape("d_tokens", d_tokens, run.s.batch.rows(), w.arch.width);
  run.start_backward(d_embeddings, d_tokens);
  run.backward(gradients);
}

}  // namespace fungi
