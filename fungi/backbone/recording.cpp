// SPDX-License-Identifier: Apache-2.0
// The few rows per view that the short backward needs (SPEC 2.7): copied out after a forward,
// copied back before a backward.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>

#include "fungi/backbone/encode.h"

namespace fungi {

struct Recording::State {
  uint64_t backbone = 0;  // as in Workspace::State
  size_t capacity = 0, views = 0, pooled = 1;
  Floats x, x_mid, u, y, raw;
  Elements proj_in;
};

namespace {

void check_same(uint64_t found, uint64_t expected, const char* where, const char* hint) {
  if (found != expected)
    fail(fmt::format("the {} is of another backbone", where), "backbone", hint);
}

void check_can_record(bool can) {
  if (!can)
    fail("this backbone cannot record: the layer or the embedding needs more than a few rows",
         "recording", "ask can_record(); otherwise run forward() again before backward()");
}

void copy_floats(const Floats& from, size_t from_row, Floats& to, size_t to_row, size_t rows) {
  for (size_t i = 0; i < rows; ++i)
    std::copy_n(from.row(from_row + i), from.cols(), to.row(to_row + i));
}

void copy_elements(const kernel::Kernel& kernel, const Elements& from, size_t from_row,
                   Elements& to, size_t to_row, size_t rows) {
  std::memcpy(to.row(to_row), from.at(from_row, 0), rows * from.stride() * kernel.element_size);
}

}  // namespace

Recording::Recording(const Backbone& backbone, size_t capacity)
    : state_(std::make_unique<State>()) {
  const Architecture& a = backbone.architecture();
  State& s = *state_;
  s.backbone = backbone.weights_->number;
  s.capacity = capacity;
  s.pooled = a.pooled_tokens();
  if (s.pooled > 0 && capacity > SIZE_MAX / s.pooled) throw std::bad_alloc();
  const size_t rows = capacity * s.pooled;
  s.x.ensure(rows, a.width);
  s.x_mid.ensure(rows, a.width);
  s.u.ensure(rows, a.mlp_hidden * (a.gated_mlp ? 2 : 1));
  if (a.post_norm) s.y.ensure(rows, a.width);
  if (a.unit_embedding) s.raw.ensure(capacity, a.embedding_width);
  s.proj_in.ensure(backbone.kernel(), rows, a.attention_width());
}

Recording::Recording(Recording&&) noexcept = default;
Recording& Recording::operator=(Recording&&) noexcept = default;
Recording::~Recording() = default;

bool Backbone::can_record() const {
  const Weights& w = *weights_;
  return w.layer && w.arch.pooled_tokens() > 0 && w.last().pruned &&
         w.layer->block + 1 == w.depth() && w.layer->part != LayerId::Part::qkv;
}

void Backbone::record(const Workspace& workspace, Recording& recording) const {
  const Workspace::State& from = *workspace.state_;
  Recording::State& to = *recording.state_;
  check_same(from.backbone, weights_->number, "workspace", "run forward() of this one first");
  check_same(to.backbone, weights_->number, "recording", "make one of this backbone");
  check_can_record(can_record());
  if (!from.ready)
    fail("the workspace holds no views", "record", "run forward() before each record()");
  if (from.batch.samples > to.capacity - to.views)
    fail(fmt::format("expected room for {} more views, found {} of {} in use", from.batch.samples,
                     to.views, to.capacity),
         "recording", "make one with a larger capacity");
  const size_t rows = from.batch.samples * to.pooled, first = to.views * to.pooled;
  const BlockState& block = from.kept.front();
  copy_floats(from.x, 0, to.x, first, rows);
  copy_floats(block.x_mid, 0, to.x_mid, first, rows);
  copy_floats(block.u, 0, to.u, first, rows);
  if (weights_->arch.post_norm) copy_floats(block.y, 0, to.y, first, rows);
  if (weights_->arch.unit_embedding) copy_floats(from.raw, 0, to.raw, to.views, from.batch.samples);
  copy_elements(kernel(), block.proj_in, 0, to.proj_in, first, rows);
  to.views += from.batch.samples;
}

void Backbone::backward(View<const float> d_embeddings, const Recording& recording, size_t first,
                        Workspace& workspace, std::span<LayerGradient> gradients) const {
  const Recording::State& from = *recording.state_;
  check_same(from.backbone, weights_->number, "recording", "make one of this backbone");
  check_can_record(can_record());
  if (first > from.views || d_embeddings.rows > from.views - first)
    fail(fmt::format("expected rows for views from {} on among the {} recorded, found {}", first,
                     from.views, d_embeddings.rows),
         "d_embeddings", "one row per recorded view");
  check_shape("d_embeddings", d_embeddings, d_embeddings.rows, weights_->arch.embedding_width);
  Workspace::State& to = Run(*this, workspace).s;
  const size_t n = d_embeddings.rows, rows = n * from.pooled, first_row = first * from.pooled;
  to.batch.samples = n;
  to.batch.rotary.clear();
  to.batch.offsets.assign(n + 1, 0);  // only query rows exist here
  to.batch.query_offsets.resize(n + 1);
  for (size_t i = 0; i <= n; ++i) to.batch.query_offsets[i] = i * from.pooled;
  to.kept.resize(std::max<size_t>(to.kept.size(), 1));
  BlockState& block = to.kept.front();
  to.x.ensure(rows, from.x.cols());
  copy_floats(from.x, first_row, to.x, 0, rows);
  block.x_mid.ensure(rows, from.x_mid.cols());
  copy_floats(from.x_mid, first_row, block.x_mid, 0, rows);
  block.u.ensure(rows, from.u.cols());
  copy_floats(from.u, first_row, block.u, 0, rows);
  if (weights_->arch.post_norm) {
    block.y.ensure(rows, from.y.cols());
    copy_floats(from.y, first_row, block.y, 0, rows);
  }
  if (weights_->arch.unit_embedding) {
    to.raw.ensure(n, from.raw.cols());
    copy_floats(from.raw, first, to.raw, 0, n);
  }
  block.proj_in.ensure(kernel(), rows, weights_->arch.attention_width());
  copy_elements(kernel(), from.proj_in, first_row, block.proj_in, 0, rows);
  to.ready = true;
  backward(d_embeddings, workspace, gradients);
  to.ready = false;
}

}  // namespace fungi
