// SPDX-License-Identifier: Apache-2.0
// One thread's share of an extraction: decoded samples → views → embeddings → losses → factors of
// the layer's gradient. Views go through the backbone a few at a time, across requests and samples,
// and equal ones of a sample once; nothing of size outputs × inputs is ever formed here. Internal
// to this room.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fungi/backbone/backbone.h"
#include "fungi/feature/view_schedule.h"
#include "fungi/objective/objective.h"

namespace fungi {

// The gradient of one sample under one objective, G = Σ_i b_i ⊗ a_i (rows that are zero in b are
// left out).
struct SampleFactors {
  Matrix<float> a, b;
};

struct SampleResult {
  std::vector<float> embedding;
  std::vector<SampleFactors> factors;  // of each objective one per layer
  bool cut = false;                    // it is longer than what the model can look at
  bool resampled = false;              // it had another rate than the model wants
};

// An objective and where its views stand in the schedule. Two of its requests may be one there: a
// student and a teacher look at the same views.
struct ScheduledObjective {
  std::unique_ptr<Objective> objective;
  struct Request {
    size_t place;  // in the schedule
    bool gradient;
  };
  std::vector<Request> requests;       // in the objective's order
  std::vector<size_t> differentiated;  // places with a gradient, each once
};

struct PreparedSample {
  const Sample* sample = nullptr;
  std::string id;
};

class ChunkWorker {
 public:
  ChunkWorker(Backbone backbone, const ViewSchedule& schedule, uint64_t seed);

  // The embeddings of every view of one request for the given samples: [samples · views, d]. For
  // fit().
  Matrix<float> embed_request(std::span<const PreparedSample> samples, size_t request);

  std::vector<SampleResult> run(std::span<const PreparedSample> samples,
                                const std::vector<ScheduledObjective>& objectives);

  Stages& stages() { return workspace_.stages; }
  const char* step() const {
    return step_;
  }  // what it was at: view, forward, objective or backward

 private:
  // A row is a view of a sample for a request. Rows with equal views of one sample have one place
  // among those that are computed; places follow the order of the rows.
  struct RowId {
    size_t request, sample, view;
  };
  RowId locate(size_t row, size_t samples) const;
  size_t row_of(size_t request, size_t sample, size_t samples) const {  // of its first view
    return schedule_.first_row(request, samples) + sample * schedule_[request].views;
  }
  // Of the first view of a sample, or behind the last one of the request.
  size_t place_of(size_t request, size_t sample, size_t samples) const {
    return places_[row_of(request, sample, samples)];
  }
  // What a view costs, in tokens: those of a batch are about as many whatever their sizes.
  size_t tokens_of(const RowId& id) const;
  ViewMaker& opened(const RowId& id, std::span<const PreparedSample> samples);
  void write_mask(const RowId& id, std::span<const PreparedSample> samples, size_t tokens,
                  uint8_t* out) const;
  // Runs rows [first, last) through the backbone in batches, calling done(first_place, count) after
  // each forward; places begin at `place`.
  template <class Done>
  void forward_rows(std::span<const PreparedSample> samples, size_t first, size_t last,
                    size_t place, const Done& done);
  // Whether the backward pass of an objective follows each forward at once, of the same batch:
  // where nothing is recorded, and its views are those of one request, few enough to be together.
  bool follows_at_once(const ScheduledObjective& o) const;
  View<float> batch_tokens(const TokenLayout& layout);
  void keep_tokens(const Inputs& inputs, const TokenLayout& layout);
  size_t own_tokens(size_t place) const {
    return token_offsets_[place + 1] - token_offsets_[place];
  }
  void objective_gradient(const ScheduledObjective& o, std::span<const PreparedSample> samples,
                          size_t sample);
  // `factors`: of each layer one per sample.
  using LayerFactors = std::span<std::vector<SampleFactors>>;
  void backward_request(std::span<const PreparedSample> samples, size_t request,
                        LayerFactors factors);
  // The same of the batch that was run, whose first view has this place.
  void backward_batch(const ScheduledObjective& o, std::span<const PreparedSample> samples,
                      size_t place, LayerFactors factors);
  // Those of layer_gradients_, whose first view has this place, to samples first .. last of the request.
  void append_factors(size_t request, size_t first_place, size_t first, size_t last,
                      LayerFactors factors) const;

  Backbone backbone_;
  const ViewSchedule& schedule_;
  uint64_t seed_;
  const char* step_ = "view";
  Workspace workspace_;
  std::vector<std::unique_ptr<ViewMaker>> makers_;  // per request
  std::vector<std::pair<size_t, size_t>> open_;     // per maker: (generation, sample) it holds
  size_t generation_ = 0;
  std::vector<size_t> places_;  // of every row, and one behind the last
  InputBuffer inputs_;          // of the batch
  std::vector<RowId> batch_;
  std::vector<std::vector<int32_t>> batch_words_;  // ViewMaker::hidden_words() of its views
  std::vector<char> cut_, resampled_;              // of every sample, as in SampleResult
  std::vector<char> whole_;  // per request: a batch has whole samples of it, and no other request
  Matrix<uint8_t> masks_;    // of the batch, [count, tokens of a view]
  Matrix<float> embeddings_, batch_tokens_;  // of all places; of the batch, with the model's own
  std::vector<float> tokens_;                // of all places, without the model's own, as the next
  std::vector<uint8_t> hidden_;
  std::vector<int32_t> words_;
  std::vector<size_t> token_offsets_;  // places + 1, in tokens
  // Per request the gradients at its places from `first` on, and at their tokens.
  struct Gradients {
    size_t first = 0;
    Matrix<float> pooled, tokens;
  };
  std::vector<Gradients> gradients_;
  std::vector<LayerGradient> layer_gradients_;
};

}  // namespace fungi
