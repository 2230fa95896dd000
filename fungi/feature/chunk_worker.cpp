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
    makers_.emplace_back(r.request.plan, r.preprocess);
  open_.assign(makers_.size(), {0, 0});
}

ChunkWorker::RowId ChunkWorker::locate(size_t row, size_t samples) const {
  size_t request = 0;
  while (row >= schedule_[request].views * samples) row -= schedule_[request++].views * samples;
  return {request, row / schedule_[request].views, row % schedule_[request].views};
}

void ChunkWorker::write_view(const RowId& id, std::span<const PreparedSample> samples, float* out) {
  const Stages::Scope scope(workspace_.stages, "views");
  ImageViews& maker = makers_[id.request];
  if (open_[id.request] != std::pair(generation_, id.sample)) {
    const PreparedSample& s = samples[id.sample];
    maker.open(*s.image, view_seed(seed_, schedule_[id.request].request.draw, s.id));
    open_[id.request] = {generation_, id.sample};
  }
  maker.write(id.view, {out, maker.view_floats()});
}

void ChunkWorker::write_mask(const RowId& id, std::span<const PreparedSample> samples,
                             uint8_t* out) const {
  const ViewRequest& r = schedule_[id.request].request;
  const size_t patches = backbone_.architecture().patches();
  if (id.view >= r.masked_views) {
    std::fill_n(out, patches, uint8_t(0));
    return;
  }
  const auto mask =
      token_mask(seed_, r.draw, fnv1a64(samples[id.sample].id), id.view, patches, r.mask_ratio);
  std::copy(mask.begin(), mask.end(), out);
}

template <class Done>
void ChunkWorker::forward_rows(std::span<const PreparedSample> samples, size_t first, size_t last,
                               const Done& done) {
  const Architecture& a = backbone_.architecture();
  const size_t batch = backbone_.preferred_batch(), patches = a.patches();
  const bool masked = std::any_of(schedule_.requests().begin(), schedule_.requests().end(),
                                  [](const auto& r) { return r.request.masked_views > 0; });
  resize(pixels_, batch, makers_.front().view_floats());
  if (masked && masks_.rows() != batch) masks_ = Matrix<uint8_t>(batch, patches);
  const size_t batches = (last - first + batch - 1) / batch;
  for (size_t b = 0, row = first; b < batches; ++b) {
    const size_t count = first + (last - first) * (b + 1) / batches - row;  // as even as can be
    step_ = "view";
    for (size_t i = 0; i < count; ++i) {
      const RowId id = locate(row + i, samples.size());
      write_view(id, samples, pixels_.row(i));
      if (masked) write_mask(id, samples, masks_.row(i));
    }
    Inputs inputs = Inputs::images(pixels_.view().slice(0, count));
    if (masked) inputs.masked = masks_.view().slice(0, count);
    step_ = "forward";
    done(row, count, inputs);
    row += count;
  }
}

Matrix<float> ChunkWorker::embed_request(std::span<const PreparedSample> samples, size_t request) {
  ++generation_;
  const size_t first = schedule_.first_row(request, samples.size()),
               rows = schedule_[request].views * samples.size();
  Matrix<float> out(rows, backbone_.architecture().embedding_width);
  Matrix<float> tokens;
  const size_t t = backbone_.architecture().tokens();
  forward_rows(samples, first, first + rows, [&](size_t row, size_t count, const Inputs& inputs) {
    if (backbone_.options().tokens) resize(tokens, count * t, backbone_.architecture().width);
    backbone_.forward(inputs, workspace_, out.view().slice(row - first, count),
                      tokens.empty() ? View<float>{} : tokens.view());
  });
  return out;
}

// The gradient of one sample under one objective, scattered into d_pooled_ and d_tokens_.
void ChunkWorker::objective_gradient(const ScheduledObjective& o,
                                     std::span<const PreparedSample> samples, size_t sample) {
  const Stages::Scope scope(workspace_.stages, "objective");
  step_ = "objective";
  const Architecture& a = backbone_.architecture();
  const bool wants_tokens = o.objective->wants_tokens();
  const size_t d = a.embedding_width, t = wants_tokens ? a.patches() : 0;
  size_t views = 0;
  for (const auto& request : o.requests) views += schedule_[request.place].views;
  Matrix<float> pooled(views, d), d_pooled(views, d), tokens(views * t, a.width),
      d_tokens(views * t, a.width);
  std::vector<uint8_t> masked(views * t);
  auto each_view = [&](auto&& visit) {
    size_t v = 0;
    for (const auto& [r, gradient] : o.requests)
      for (size_t i = 0; i < schedule_[r].views; ++i, ++v)
        visit(v, r, sample * schedule_[r].views + i, gradient);
  };
  each_view([&](size_t v, size_t r, size_t i, bool) {
    const size_t row = schedule_.first_row(r, samples.size()) + i;
    std::copy_n(embeddings_.row(row), d, pooled.row(v));
    if (!wants_tokens) return;
    std::copy_n(tokens_.row(row * t), t * a.width, tokens.row(v * t));
    if (!all_masks_.empty()) std::copy_n(all_masks_.row(row), t, masked.data() + v * t);
  });
  o.objective->loss_and_gradient({pooled, tokens, wants_tokens ? masked.data() : nullptr},
                                 {d_pooled, d_tokens});
  const auto add = [](const float* from, size_t count, float* to) {
    std::transform(from, from + count, to, to, std::plus<>());
  };
  each_view([&](size_t v, size_t r, size_t i, bool gradient) {
    if (!gradient) return;
    add(d_pooled.row(v), d, d_pooled_[r].row(i));
    if (wants_tokens) add(d_tokens.row(v * t), t * a.width, d_tokens_[r].row(i * t));
  });
}

// From the gradients at the embeddings of one request to factors of the layer, appended per sample.
void ChunkWorker::backward_request(std::span<const PreparedSample> samples, size_t request,
                                   std::vector<SampleFactors>& factors) {
  const Architecture& a = backbone_.architecture();
  const size_t views = schedule_[request].views,
               first = schedule_.first_row(request, samples.size()), rows = samples.size() * views;
  const size_t t = d_tokens_[request].empty() ? 0 : a.patches();
  Matrix<float> embeddings, all, d_all;
  forward_rows(samples, first, first + rows, [&](size_t row, size_t count, const Inputs& inputs) {
    resize(embeddings, count, a.embedding_width);
    View<float> token_view{};
    if (backbone_.options().tokens) {
      resize(all, count * a.tokens(), a.width);
      token_view = all.view();
    }
    backbone_.forward(inputs, workspace_, embeddings, token_view);
    View<const float> d_token_view{};
    if (t) {  // prefix tokens have no patch gradient
      d_all = Matrix<float>(count * a.tokens(), a.width);
      for (size_t i = 0; i < count; ++i)
        std::copy_n(d_tokens_[request].row((row - first + i) * t), t * a.width,
                    d_all.row(i * a.tokens() + a.prefix_tokens));
      d_token_view = d_all.view();
    }
    step_ = "backward";
    backbone_.backward(d_pooled_[request].view().slice(row - first, count), workspace_, gradient_,
                       d_token_view);
    for (size_t i = 0; i < count; ++i)
      append_factors(gradient_, gradient_.offsets[i], gradient_.offsets[i + 1],
                     factors[(row - first + i) / views]);
  });
}

std::vector<SampleResult> ChunkWorker::run(std::span<const PreparedSample> samples,
                                           const std::vector<ScheduledObjective>& objectives) {
  ++generation_;
  const Architecture& a = backbone_.architecture();
  const size_t n = samples.size(), rows = n * schedule_.views_per_sample(), d = a.embedding_width,
               t = a.patches();
  const bool tokens = backbone_.options().tokens, light = backbone_.can_record();
  resize(embeddings_, rows, d);
  if (tokens) resize(tokens_, rows * t, a.width);
  std::unique_ptr<Recording> recording;
  if (light && !objectives.empty()) recording = std::make_unique<Recording>(backbone_, rows);
  Matrix<float> all;
  forward_rows(samples, 0, rows, [&](size_t row, size_t count, const Inputs& inputs) {
    if (tokens) resize(all, count * a.tokens(), a.width);
    backbone_.forward(inputs, workspace_, embeddings_.view().slice(row, count),
                      tokens ? all.view() : View<float>{});
    for (size_t i = 0; tokens && i < count; ++i)
      std::copy_n(all.row(i * a.tokens() + a.prefix_tokens), t * a.width,
                  tokens_.row((row + i) * t));
    if (inputs.masked.data) {
      if (all_masks_.rows() != rows) all_masks_ = Matrix<uint8_t>(rows, t);
      std::copy_n(inputs.masked.data, count * t, all_masks_.row(row));
    }
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
      if (o.objective->wants_tokens())
        d_tokens_[r] = Matrix<float>(n * schedule_[r].views * t, a.width);
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
