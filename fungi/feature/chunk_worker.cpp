// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/chunk_worker.h"

#include <algorithm>

#include "fungi/backbone/sides.h"
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
void append(const LayerGradient& g, size_t first, size_t last, SampleFactors& f) {
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
  whole_.assign(makers_.size(), 0);
  gradients_.resize(makers_.size());
  layer_gradients_.resize(backbone_.layers().size());
}

bool ChunkWorker::follows_at_once(const ScheduledObjective& o) const {
  return !backbone_.can_record() && !o.objective->wants_tokens() && o.requests.size() == 1 &&
         schedule_[o.requests[0].place].views <= backbone_.preferred_batch();
}

ChunkWorker::RowId ChunkWorker::locate(size_t row, size_t samples) const {
  size_t request = 0;
  while (row >= schedule_[request].views * samples) row -= schedule_[request++].views * samples;
  return {request, row / schedule_[request].views, row % schedule_[request].views};
}

size_t ChunkWorker::tokens_of(const RowId& id) const {
  const Architecture& a = backbone_.architecture();
  const size_t side = view_side(schedule_[id.request].request.plan, id.view);
  return side ? a.prefix_tokens + patches_at(a, side) : a.tokens();
}

ViewMaker& ChunkWorker::opened(const RowId& id, std::span<const PreparedSample> samples) {
  ViewMaker& maker = *makers_[id.request];
  if (open_[id.request] != std::pair(generation_, id.sample)) {
    const PreparedSample& s = samples[id.sample];
    maker.open(*s.sample, view_seed(seed_, schedule_[id.request].request.draw, s.id));
    open_[id.request] = {generation_, id.sample};
  }
  return maker;
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
                               size_t place, const Done& done) {
  const size_t most = backbone_.preferred_batch(), most_tokens = backbone_.preferred_tokens();
  const bool masked = std::any_of(schedule_.requests().begin(), schedule_.requests().end(),
                                  [](const auto& r) { return r.request.masked_views > 0; });
  places_.resize(std::max(places_.size(), last + 1));
  cut_.resize(samples.size()), resampled_.resize(samples.size());
  const size_t most_of_batch = most * backbone_.architecture().tokens();
  size_t rest = 0;  // of all rows from `row` on
  for (size_t row = first; row < last; ++row) rest += tokens_of(locate(row, samples.size()));
  for (size_t row = first; row < last;) {
    step_ = "view";
    inputs_.clear(), batch_.clear(), batch_words_.clear();
    const size_t batches = (rest + most_of_batch - 1) / most_of_batch;  // as even as can be
    const size_t share = (rest + batches - 1) / batches;
    for (size_t taken = 0; row < last; ++row) {
      const Stages::Scope scope(workspace_.stages, "views");
      const RowId id = locate(row, samples.size());
      const bool full = taken >= share || inputs_.ids() >= most_tokens,
                 other = !batch_.empty() && id.request != batch_[0].request &&
                         (whole_[id.request] || whole_[batch_[0].request]);
      if (other || (full && (id.view == 0 || !whole_[id.request]))) break;
      rest -= tokens_of(id);
      ViewMaker& maker = opened(id, samples);
      if (id.request == 0)
        cut_[id.sample] = maker.cut(), resampled_[id.sample] = maker.resampled();
      const size_t same = maker.same_as(id.view);
      places_[row] = same < id.view ? places_[row - id.view + same] : place + batch_.size();
      if (same < id.view) continue;
      maker.write(id.view, inputs_);
      batch_.push_back(id);
      taken += tokens_of(id);
      if (const auto words = maker.hidden_words(id.view); !words.empty()) {
        batch_words_.resize(batch_.size());
        batch_words_.back().assign(words.begin(), words.end());
      }
    }
    places_[row] = place + batch_.size();
    if (batch_.empty()) break;  // what was left are repetitions
    Inputs inputs = inputs_.inputs();
    const TokenLayout layout = backbone_.layout(inputs);
    if (masked) {
      const size_t tokens = backbone_.architecture().patches();  // only pictures can be masked
      if (masks_.rows() < batch_.size() || masks_.cols() != tokens)
        masks_ = Matrix<uint8_t>(std::max(most, batch_.size()), tokens);
      for (size_t i = 0; i < batch_.size(); ++i)
        write_mask(batch_[i], samples, layout.own(i), masks_.row(i));
      inputs.masked = masks_.view().slice(0, batch_.size());
    }
    step_ = "forward";
    done(place, batch_.size(), inputs, layout);
    place += batch_.size();
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
  const size_t first = row_of(request, 0, samples.size()),
               rows = schedule_[request].views * samples.size();
  Matrix<float> computed(rows, backbone_.architecture().embedding_width);
  forward_rows(samples, first, first + rows, 0,
               [&](size_t place, size_t count, const Inputs& inputs, const TokenLayout& layout) {
                 backbone_.forward(inputs, workspace_, computed.view().slice(place, count),
                                   batch_tokens(layout));
               });
  if (places_[first + rows] == rows) return computed;
  Matrix<float> out(rows, computed.cols());
  for (size_t i = 0; i < rows; ++i)
    std::copy_n(computed.row(places_[first + i]), out.cols(), out.row(i));
  return out;
}

// The gradient of one sample under one objective, added to gradients_; that of a view which occurs
// several times is the sum of theirs.
void ChunkWorker::objective_gradient(const ScheduledObjective& o,
                                     std::span<const PreparedSample> samples, size_t sample) {
  const Stages::Scope scope(workspace_.stages, "objective");
  step_ = "objective";
  const size_t d = backbone_.architecture().embedding_width, w = backbone_.architecture().width;
  const bool wants_tokens = o.objective->wants_tokens();
  struct Seen {
    size_t request, place;
    bool gradient;
  };
  std::vector<Seen> views;
  std::vector<size_t> offsets{0};  // in tokens, of the views side by side
  for (const auto& [r, gradient] : o.requests)
    for (size_t i = 0; i < schedule_[r].views; ++i) {
      const size_t row = row_of(r, sample, samples.size()) + i;
      views.push_back({r, places_[row], gradient});
      offsets.push_back(offsets.back() + (wants_tokens ? own_tokens(views.back().place) : 0));
    }
  Matrix<float> pooled(views.size(), d), d_pooled(views.size(), d), tokens(offsets.back(), w),
      d_tokens(offsets.back(), w);
  std::vector<uint8_t> hidden(offsets.back());
  std::vector<int32_t> words(offsets.back());
  for (size_t v = 0; v < views.size(); ++v) {
    const size_t place = views[v].place, count = offsets[v + 1] - offsets[v];
    std::copy_n(embeddings_.row(place), d, pooled.row(v));
    if (!wants_tokens) continue;
    const size_t first = token_offsets_[place];
    std::copy_n(tokens_.data() + first * w, count * w, tokens.row(offsets[v]));
    std::copy_n(words_.data() + first, count, words.data() + offsets[v]);
    if (!hidden_.empty()) std::copy_n(hidden_.data() + first, count, hidden.data() + offsets[v]);
  }
  Latents latents{pooled, {}, {}, {}, {}};
  if (wants_tokens) latents = {pooled, tokens, hidden, offsets, words};
  o.objective->loss_and_gradient(latents, {d_pooled, d_tokens});
  const auto add = [](const float* from, size_t count, float* to) {
    std::transform(from, from + count, to, to, std::plus<>());
  };
  for (size_t v = 0; v < views.size(); ++v) {
    const Seen& seen = views[v];
    if (!seen.gradient) continue;
    Gradients& g = gradients_[seen.request];
    add(d_pooled.row(v), d, g.pooled.row(seen.place - g.first));
    if (!wants_tokens) continue;
    const size_t first = token_offsets_[seen.place] - token_offsets_[g.first];
    add(d_tokens.row(offsets[v]), own_tokens(seen.place) * w, g.tokens.row(first));
  }
}

void ChunkWorker::append_factors(size_t request, size_t first_place, size_t first, size_t last,
                                 LayerFactors factors) const {
  for (size_t l = 0; l < factors.size(); ++l) {
    const LayerGradient& gradient = layer_gradients_[l];
    const size_t last_place = first_place + gradient.offsets.size() - 1, n = factors[l].size();
    for (size_t s = first; s < last; ++s) {
      const size_t begin = std::max(place_of(request, s, n), first_place),
                   end = std::min(place_of(request, s + 1, n), last_place);
      if (begin < end)
        append(gradient, gradient.offsets[begin - first_place],
               gradient.offsets[end - first_place], factors[l][s]);
    }
  }
}

// From the gradients at the embeddings of one request to factors of the layers, appended per
// sample.
void ChunkWorker::backward_request(std::span<const PreparedSample> samples, size_t request,
                                   LayerFactors factors) {
  const size_t width = backbone_.architecture().width, n = samples.size();
  const Gradients& g = gradients_[request];
  Matrix<float> embeddings, d_batch;
  const auto backward = [&](size_t place, size_t count, const Inputs& inputs,
                            const TokenLayout& layout) {
    resize(embeddings, count, backbone_.architecture().embedding_width);
    backbone_.forward(inputs, workspace_, embeddings, batch_tokens(layout));
    View<const float> d_token_view{};
    if (!g.tokens.empty()) {  // the model's own tokens have no gradient of their own
      d_batch = Matrix<float>(layout.rows(), width);
      for (size_t i = 0; i < count; ++i)
        std::copy_n(g.tokens.row(token_offsets_[place + i] - token_offsets_[g.first]),
                    layout.own(i) * width, d_batch.row(layout.first(i)));
      d_token_view = d_batch;
    }
    step_ = "backward";
    backbone_.backward(g.pooled.view().slice(place - g.first, count), workspace_, layer_gradients_,
                       d_token_view);
    append_factors(request, place, 0, n, factors);
  };
  forward_rows(samples, row_of(request, 0, n), row_of(request, n, n), g.first, backward);
}

void ChunkWorker::backward_batch(const ScheduledObjective& o,
                                 std::span<const PreparedSample> samples, size_t place,
                                 LayerFactors factors) {
  const size_t request = o.requests[0].place, first = batch_.front().sample,
               last = batch_.back().sample + 1;
  gradients_[request] = {
      place, Matrix<float>(batch_.size(), backbone_.architecture().embedding_width), {}};
  for (size_t s = first; s < last; ++s) objective_gradient(o, samples, s);
  step_ = "backward";
  backbone_.backward(gradients_[request].pooled, workspace_, layer_gradients_);
  append_factors(request, place, first, last, factors);
}

// Of each place what objectives look at, in the order of the places.
void ChunkWorker::keep_tokens(const Inputs& inputs, const TokenLayout& layout) {
  const size_t width = backbone_.architecture().width;
  batch_words_.resize(inputs.count());
  for (size_t i = 0; i < inputs.count(); ++i) {
    const size_t own = layout.own(i);
    words_.insert(words_.end(), batch_words_[i].begin(), batch_words_[i].end());
    words_.resize(tokens_.size() / width + own, -1);
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
  tokens_.clear(), hidden_.clear(), words_.clear(), token_offsets_.assign(1, 0);
  std::unique_ptr<Recording> recording;
  if (backbone_.can_record() && !objectives.empty())
    recording = std::make_unique<Recording>(backbone_, rows);
  std::vector<SampleResult> results(n);
  const size_t layers = layer_gradients_.size();
  std::vector<std::vector<SampleFactors>> factors(objectives.size() * layers);
  for (auto& of_samples : factors) of_samples.resize(n);
  const auto of_objective = [&](size_t o) {
    return LayerFactors(factors).subspan(o * layers, layers);
  };
  std::fill(whole_.begin(), whole_.end(), 0);
  for (const ScheduledObjective& o : objectives)
    if (follows_at_once(o)) whole_[o.requests[0].place] = 1;
  forward_rows(
      samples, 0, rows, 0,
      [&](size_t place, size_t count, const Inputs& inputs, const TokenLayout& layout) {
        const View<float> tokens = batch_tokens(layout);
        backbone_.forward(inputs, workspace_, embeddings_.view().slice(place, count), tokens);
        if (tokens.data) keep_tokens(inputs, layout);
        if (recording) backbone_.record(workspace_, *recording);
        for (size_t o = 0; o < objectives.size(); ++o) {
          const ScheduledObjective& objective = objectives[o];
          if (!follows_at_once(objective) || objective.requests[0].place != batch_[0].request)
            continue;
          backward_batch(objective, samples, place, of_objective(o));
        }
      });

  for (size_t s = 0; s < n; ++s) {
    const float* e = embeddings_.row(place_of(0, s, n));
    results[s].embedding.assign(e, e + d);
    results[s].cut = cut_[s], results[s].resampled = resampled_[s];
  }
  for (size_t o = 0; o < objectives.size(); ++o) {
    if (follows_at_once(objectives[o])) continue;
    for (const size_t r : objectives[o].differentiated) {
      Gradients& g = gradients_[r];
      g.first = place_of(r, 0, n);
      const size_t last = place_of(r, n, n);
      g.pooled = Matrix<float>(last - g.first, d), g.tokens = {};
      if (objectives[o].objective->wants_tokens())
        g.tokens = Matrix<float>(token_offsets_[last] - token_offsets_[g.first], a.width);
    }
    for (size_t s = 0; s < n; ++s) objective_gradient(objectives[o], samples, s);
    for (const size_t r : objectives[o].differentiated) {
      if (recording) {
        step_ = "backward";
        backbone_.backward(gradients_[r].pooled, *recording, gradients_[r].first, workspace_,
                           layer_gradients_);
        append_factors(r, gradients_[r].first, 0, n, of_objective(o));
      } else {
        backward_request(samples, r, of_objective(o));
      }
    }
  }
  for (size_t s = 0; s < n; ++s)
    for (auto& of_samples : factors) results[s].factors.push_back(std::move(of_samples[s]));
  return results;
}

}  // namespace fungi
