// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/chunk_worker.h"

#include <algorithm>

#include "fungi/base/random.h"
#include "fungi/objective/ibot.h"

namespace fungi {
namespace {

void resize(Matrix<float>& m, size_t rows, size_t cols) {
  if (m.rows() != rows || m.cols() != cols) m = Matrix<float>(rows, cols);
}

void append_rows(Matrix<float>& to, const std::vector<const float*>& rows, size_t cols) {
  Matrix<float> joined(to.rows() + rows.size(), cols);
  if (to.rows()) std::copy_n(to.data(), to.rows() * cols, joined.data());
  for (size_t i = 0; i < rows.size(); ++i) std::copy_n(rows[i], cols, joined.row(to.rows() + i));
  to = std::move(joined);
}

// Rows [first, last) of the layer's factors, without those that add nothing.
void append_factors(const LayerGradient& g, size_t first, size_t last, SampleFactors& f) {
  std::vector<const float*> a, b;
  for (size_t r = first; r < last; ++r) {
    const float* row = g.b.row(r);
    if (std::all_of(row, row + g.b.cols(), [](float x) { return x == 0; })) continue;
    a.push_back(g.a.row(r));
    b.push_back(row);
  }
  append_rows(f.a, a, g.a.cols());
  append_rows(f.b, b, g.b.cols());
}

}  // namespace

ChunkWorker::ChunkWorker(Backbone backbone, const ViewSchedule& schedule, uint64_t seed)
    : backbone_(std::move(backbone)), schedule_(schedule), seed_(seed) {
  for (const ScheduledRequest& r : schedule.requests())
    makers_.push_back(schedule.modality().maker(r.request.plan));
  open_.assign(makers_.size(), {0, 0});
}

ChunkWorker::RowId ChunkWorker::locate(size_t row, size_t samples) const {
  size_t request = 0;
  while (row >= schedule_[request].views * samples) row -= schedule_[request++].views * samples;
  return {request, row / schedule_[request].views, row % schedule_[request].views};
}

void ChunkWorker::write_view(const RowId& id, std::span<const PreparedSample> samples) {
  const Stages::Scope scope(workspace_.stages, "views");
  ViewMaker& maker = *makers_[id.request];
  if (open_[id.request] != std::pair(generation_, id.sample)) {
    const PreparedSample& s = samples[id.sample];
    maker.open(*s.sample, view_seed(seed_, schedule_[id.request].request.draw, s.id));
    open_[id.request] = {generation_, id.sample};
  }
  maker.write(id.view, inputs_);
}

void ChunkWorker::write_mask(const RowId& id, std::span<const PreparedSample> samples,
                             size_t tokens, uint8_t* out) const {
  const ViewRequest& r = schedule_[id.request].request;
  if (id.view >= r.masked_views) {
    std::fill_n(out, tokens, uint8_t(0));
    return;
  }
  const auto mask =
      token_mask(seed_, r.draw, fnv1a64(samples[id.sample].id), id.view, tokens, r.mask_ratio);
  std::copy(mask.begin(), mask.end(), out);
}

template <class Done>
void ChunkWorker::forward_rows(std::span<const PreparedSample> samples, size_t first, size_t last,
                               const Done& done) {
  const size_t batch = backbone_.preferred_batch();
  const bool masked = std::any_of(schedule_.requests().begin(), schedule_.requests().end(),
                                  [](const auto& r) { return r.request.masked_views > 0; });
  const size_t batches = (last - first + batch - 1) / batch;
  for (size_t b = 0, row = first; b < batches; ++b) {
    const size_t count = first + (last - first) * (b + 1) / batches - row;  // as even as can be
    step_ = "view";
    inputs_.clear();
    for (size_t i = 0; i < count; ++i) write_view(locate(row + i, samples.size()), samples);
    Inputs inputs = inputs_.inputs();
    const TokenLayout layout = backbone_.layout(inputs);
    if (masked) {
      const size_t tokens = layout.own(0);  // of every view: only pictures can be masked
      if (masks_.rows() < count || masks_.cols() != tokens) masks_ = Matrix<uint8_t>(batch, tokens);
      for (size_t i = 0; i < count; ++i)
        write_mask(locate(row + i, samples.size()), samples, tokens, masks_.row(i));
      inputs.masked = masks_.view().slice(0, count);
    }
    step_ = "forward";
    done(row, count, inputs, layout);
    row += count;
  }
}

// Room for all tokens of the batch, where the backbone gives them.
View<float> ChunkWorker::batch_tokens(const TokenLayout& layout) {
  if (!backbone_.options().tokens) return {};
  resize(batch_tokens_, layout.rows(), backbone_.architecture().width);
  return batch_tokens_;
}

Matrix<float> ChunkWorker::embed_request(std::span<const PreparedSample> samples, size_t request) {
  ++generation_;
  const size_t first = schedule_.first_row(request, samples.size()),
               rows = schedule_[request].views * samples.size();
  Matrix<float> out(rows, backbone_.architecture().embedding_width);
  forward_rows(samples, first, first + rows,
               [&](size_t row, size_t count, const Inputs& inputs, const TokenLayout& layout) {
                 backbone_.forward(inputs, workspace_, out.view().slice(row - first, count),
                                   batch_tokens(layout));
               });
  return out;
}

// The gradient of one sample under one objective, scattered into d_pooled_ and d_tokens_.
void ChunkWorker::objective_gradient(const ScheduledObjective& o,
                                     std::span<const PreparedSample> samples, size_t sample) {
  const Stages::Scope scope(workspace_.stages, "objective");
  step_ = "objective";
  const size_t d = backbone_.architecture().embedding_width, w = backbone_.architecture().width;
  const bool wants_tokens = o.objective->wants_tokens();
  struct Seen {
    size_t request, in_request, row;  // its place among all rows
    bool gradient;
  };
  std::vector<Seen> views;
  std::vector<size_t> offsets{0};  // in tokens, of the views side by side
  for (const auto& [r, gradient] : o.requests)
    for (size_t i = 0; i < schedule_[r].views; ++i) {
      const size_t in_request = sample * schedule_[r].views + i;
      views.push_back(
          {r, in_request, schedule_.first_row(r, samples.size()) + in_request, gradient});
      offsets.push_back(offsets.back() + (wants_tokens ? own_tokens(views.back().row) : 0));
    }
  Matrix<float> pooled(views.size(), d), d_pooled(views.size(), d), tokens(offsets.back(), w),
      d_tokens(offsets.back(), w);
  std::vector<uint8_t> hidden(offsets.back());
  for (size_t v = 0; v < views.size(); ++v) {
    const size_t row = views[v].row, count = offsets[v + 1] - offsets[v];
    std::copy_n(embeddings_.row(row), d, pooled.row(v));
    if (!wants_tokens) continue;
    const size_t first = token_offsets_[row];
    std::copy_n(tokens_.data() + first * w, count * w, tokens.row(offsets[v]));
    if (!hidden_.empty()) std::copy_n(hidden_.data() + first, count, hidden.data() + offsets[v]);
  }
  Latents latents{pooled, {}, {}, {}};
  if (wants_tokens) latents = {pooled, tokens, hidden, offsets};
  o.objective->loss_and_gradient(latents, {d_pooled, d_tokens});
  const auto add = [](const float* from, size_t count, float* to) {
    std::transform(from, from + count, to, to, std::plus<>());
  };
  for (size_t v = 0; v < views.size(); ++v) {
    const Seen& seen = views[v];
    if (!seen.gradient) continue;
    add(d_pooled.row(v), d, d_pooled_[seen.request].row(seen.in_request));
    if (!wants_tokens) continue;
    const size_t first = token_offsets_[seen.row] - token_offsets_[seen.row - seen.in_request];
    add(d_tokens.row(offsets[v]), own_tokens(seen.row) * w, d_tokens_[seen.request].row(first));
  }
}

// From the gradients at the embeddings of one request to factors of the layer, appended per sample.
void ChunkWorker::backward_request(std::span<const PreparedSample> samples, size_t request,
                                   std::vector<SampleFactors>& factors) {
  const size_t width = backbone_.architecture().width, views = schedule_[request].views,
               first = schedule_.first_row(request, samples.size()), rows = samples.size() * views;
  const bool of_tokens = !d_tokens_[request].empty();
  Matrix<float> embeddings, d_batch;
  const auto backward = [&](size_t row, size_t count, const Inputs& inputs,
                            const TokenLayout& layout) {
    resize(embeddings, count, backbone_.architecture().embedding_width);
    backbone_.forward(inputs, workspace_, embeddings, batch_tokens(layout));
    View<const float> d_token_view{};
    if (of_tokens) {  // the model's own tokens have no gradient of their own
      d_batch = Matrix<float>(layout.rows(), width);
      for (size_t i = 0; i < count; ++i)
        std::copy_n(d_tokens_[request].row(token_offsets_[row + i] - token_offsets_[first]),
                    layout.own(i) * width, d_batch.row(layout.first(i)));
      d_token_view = d_batch;
    }
    step_ = "backward";
    backbone_.backward(d_pooled_[request].view().slice(row - first, count), workspace_, gradient_,
                       d_token_view);
    for (size_t i = 0; i < count; ++i)
      append_factors(gradient_, gradient_.offsets[i], gradient_.offsets[i + 1],
                     factors[(row - first + i) / views]);
  };
  forward_rows(samples, first, first + rows, backward);
}

// Of each row what objectives look at, in the order of the rows.
void ChunkWorker::keep_tokens(const Inputs& inputs, const TokenLayout& layout) {
  const size_t width = backbone_.architecture().width;
  for (size_t i = 0; i < inputs.count(); ++i) {
    const size_t own = layout.own(i);
    const float* from = batch_tokens_.row(layout.first(i));
    tokens_.insert(tokens_.end(), from, from + own * width);
    if (inputs.masked.data)
      hidden_.insert(hidden_.end(), inputs.masked.row(i), inputs.masked.row(i) + own);
    token_offsets_.push_back(token_offsets_.back() + own);
  }
}

std::vector<SampleResult> ChunkWorker::run(std::span<const PreparedSample> samples,
                                           const std::vector<ScheduledObjective>& objectives) {
  ++generation_;
  const Architecture& a = backbone_.architecture();
  const size_t n = samples.size(), rows = n * schedule_.views_per_sample(), d = a.embedding_width;
  resize(embeddings_, rows, d);
  tokens_.clear(), hidden_.clear(), token_offsets_.assign(1, 0);
  std::unique_ptr<Recording> recording;
  if (backbone_.can_record() && !objectives.empty())
    recording = std::make_unique<Recording>(backbone_, rows);
  forward_rows(samples, 0, rows,
               [&](size_t row, size_t count, const Inputs& inputs, const TokenLayout& layout) {
                 const View<float> tokens = batch_tokens(layout);
                 backbone_.forward(inputs, workspace_, embeddings_.view().slice(row, count),
                                   tokens);
                 if (tokens.data) keep_tokens(inputs, layout);
                 if (recording) backbone_.record(workspace_, *recording);
               });

  std::vector<SampleResult> results(n);
  for (size_t s = 0; s < n; ++s) {
    const float* e = embeddings_.row(s * schedule_[0].views);
    results[s].embedding.assign(e, e + d);
  }
  for (const ScheduledObjective& o : objectives) {
    d_pooled_ = std::vector<Matrix<float>>(schedule_.requests().size());
    d_tokens_ = std::vector<Matrix<float>>(schedule_.requests().size());
    for (const size_t r : o.differentiated) {
      d_pooled_[r] = Matrix<float>(n * schedule_[r].views, d);
      if (!o.objective->wants_tokens()) continue;
      const size_t first = schedule_.first_row(r, n), last = first + n * schedule_[r].views;
      d_tokens_[r] = Matrix<float>(token_offsets_[last] - token_offsets_[first], a.width);
    }
    for (size_t s = 0; s < n; ++s) objective_gradient(o, samples, s);
    std::vector<SampleFactors> factors(n);
    for (const size_t r : o.differentiated) {
      const size_t views = schedule_[r].views;
      if (recording) {
        step_ = "backward";
        backbone_.backward(d_pooled_[r], *recording, schedule_.first_row(r, n), workspace_,
                           gradient_);
        for (size_t s = 0; s < n; ++s)
          append_factors(gradient_, gradient_.offsets[s * views],
                         gradient_.offsets[(s + 1) * views], factors[s]);
      } else {
        backward_request(samples, r, factors);
      }
    }
    for (size_t s = 0; s < n; ++s) results[s].factors.push_back(std::move(factors[s]));
  }
  return results;
}

}  // namespace fungi
