// SPDX-License-Identifier: Apache-2.0
// One thread's share of an extraction: decoded samples → views → embeddings → losses → factors of
// the layer's gradient. Views go through the backbone a few at a time, across requests and samples;
// nothing of size outputs × inputs is ever formed here. Internal to this room.
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
  std::vector<SampleFactors> factors;  // one per objective
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
  struct RowId {
    size_t request, sample, view;
  };
  RowId locate(size_t row, size_t samples) const;
  void write_view(const RowId& id, std::span<const PreparedSample> samples);  // into inputs_
  void write_mask(const RowId& id, std::span<const PreparedSample> samples, size_t tokens,
                  uint8_t* out) const;
  // Runs rows [first, last) through the backbone in batches, calling done(first_row, count) after
  // each forward.
  template <class Done>
  void forward_rows(std::span<const PreparedSample> samples, size_t first, size_t last,
                    const Done& done);
  View<float> batch_tokens(const TokenLayout& layout);
  void keep_tokens(const Inputs& inputs, const TokenLayout& layout);
  size_t own_tokens(size_t row) const { return token_offsets_[row + 1] - token_offsets_[row]; }
  void objective_gradient(const ScheduledObjective& o, std::span<const PreparedSample> samples,
                          size_t sample);
  void backward_request(std::span<const PreparedSample> samples, size_t request,
                        std::vector<SampleFactors>& factors);

  Backbone backbone_;
  const ViewSchedule& schedule_;
  uint64_t seed_;
  const char* step_ = "view";
  Workspace workspace_;
  std::vector<std::unique_ptr<ViewMaker>> makers_;  // per request
  std::vector<std::pair<size_t, size_t>> open_;     // per maker: (generation, sample) it holds
  size_t generation_ = 0;
  InputBuffer inputs_;                       // of the batch
  Matrix<uint8_t> masks_;                    // of the batch, [count, tokens of a view]
  Matrix<float> embeddings_, batch_tokens_;  // of all rows; of the batch, with the model's own
  std::vector<float> tokens_;                // of all rows, without the model's own, as the next
  std::vector<uint8_t> hidden_;
  std::vector<size_t> token_offsets_;               // rows + 1, in tokens
  std::vector<Matrix<float>> d_pooled_, d_tokens_;  // per request: of its rows, of their tokens
  LayerGradient gradient_;
};

}  // namespace fungi
