// SPDX-License-Identifier: Apache-2.0
// What an Extractor holds. Internal to it.
#pragma once

#include <mutex>

#include "fungi/feature/chunk_worker.h"
#include "fungi/feature/extractor.h"

namespace fungi {

struct Extractor::State {
  const Backbone backbone;
  ExtractorOptions options;
  Pool& pool;
  const std::shared_ptr<const Modality> modality;
  ViewSchedule schedule;
  std::vector<ScheduledObjective> objectives;
  std::vector<std::unique_ptr<Projection>> projections;  // one per layer; none: no objectives
  std::vector<ChunkWorker> workers;  // one per thread, made when the schedule is final

  // Held by fit(), restore(), settle() and extract(); recursive, since one calls another.
  std::recursive_mutex working;
  // Held for moments within those, where something changes that may be asked for meanwhile: what
  // follows, and what restore() gives objectives. Never while waiting for the pool, whose bodies
  // may ask: hence not around Objective::prepare().
  std::mutex telling;
  Stages own;
  std::vector<size_t> zeros;  // of each objective per layer: gradients so far that were zero
  size_t cut = 0;        // samples so far that were longer than what the model looks at
  size_t resampled = 0;  // and that had another rate
  std::vector<std::string> stated;  // state that the user gave, by its name in a store

  State(Backbone b, ExtractorOptions o, Pool& p)
      : backbone(std::move(b)),
        options(std::move(o)),
        pool(p),
        modality(options.modality ? options.modality
                                  : modality_for(backbone.architecture(), options.preset,
                                                 options.text, backbone.path(),
                                                 options.sound)),
        schedule(modality) {}

  // A callback, which a thread of the pool calls, would wait for itself.
  std::unique_lock<std::recursive_mutex> take_turn() {
    pool.require_outside();
    return std::unique_lock(working);
  }

  // Only a worker itself, between two chunks, can tell its times.
  void collect_stages(ChunkWorker& worker) {
    const std::lock_guard lock(telling);
    own.add(worker.stages());
    worker.stages().clear();
  }

  size_t gradient_views(const ScheduledObjective& o) const {
    size_t views = 0;
    for (const size_t r : o.differentiated) views += schedule[r].views;
    return views;
  }

  // Of each sample that an objective is prepared with.
  size_t support_views(const Objective& objective) const {
    const Support wanted = objective.support();
    if (wanted.samples == 0) return 0;
    return modality->views(wanted.views.plan);
  }

  // Results and failures (without a stage: none) of samples first, first + 1, ... of the list.
  void run_chunk(ChunkWorker& worker, const Dataset& dataset, std::span<const size_t> samples,
                 size_t first, std::span<SampleResult> results,
                 std::span<StoreFailure> failures);  // extractor.cpp
  // The same of samples that are decoded, at these positions of results and failures.
  void run_samples(ChunkWorker& worker, std::span<const PreparedSample> prepared,
                   std::span<const size_t> positions, size_t first, std::span<SampleResult> results,
                   std::span<StoreFailure> failures);

  // Gives each objective what is its own; the answer: the names in a store of what was given.
  std::vector<std::string> restore(const std::vector<NamedMatrix>& state);  // extractor_fit.cpp

  // Of one sample, until its group is projected.
  size_t waiting_floats() const {
    const Architecture& a = backbone.architecture();
    const size_t per_view = backbone.can_record() ? a.pooled_tokens() : a.tokens();
    size_t floats = a.embedding_width;
    for (const ScheduledObjective& o : objectives)
      for (const auto& projection : projections) {
        const LayerShape& layer = projection->layer();
        floats += projection->rows() +
                  gradient_views(o) * per_view * (layer.inputs + layer.outputs);
      }
    return floats;
  }

  // Whether each layer has blocks of its own, named after it.
  bool by_layer() const { return !backbone.options().layers.empty(); }
  std::string block_name(const ScheduledObjective& o, size_t layer) const {
    const std::string name = o.objective->name();
    return by_layer() ? layer_block(name, backbone.layers()[layer].name()) : name;
  }
  void make_projections();  // extractor.cpp

  void make_workers() {
    if (!workers.empty()) return;
    for (unsigned i = 0; i < pool.threads(); ++i)
      workers.emplace_back(backbone, schedule, options.seed);
  }
};

}  // namespace fungi
