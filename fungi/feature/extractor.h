// SPDX-License-Identifier: Apache-2.0
// The product: samples in, named feature blocks out. Joins views, backbone, objectives and
// projection; extractor.cpp is the only place that knows the whole order (SPEC 1.2). A sample's
// features depend on the settings, the seed, its id and its bytes alone.
//
// An Extractor may be shared between threads: fit(), restore(), settle() and extract() wait for
// each other, one extraction at a time. The const functions may be called meanwhile, also from
// progress callbacks; but ready(), state() and notes() not while another thread is in fit() or
// settle(). A callback that calls one of the four gets an Error, since it would wait for itself.
//
//   Extractor extractor = Extractor::open(model, {.objectives = {"kl", "ibot"}}, pool);
//   StoreWriter writer("train", extractor.spec());
//   extract_to_store(extractor, train, writer);  // or fit() and extract() for samples in memory
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fungi/backbone/backbone.h"
#include "fungi/feature/modality.h"
#include "fungi/feature/settings.h"
#include "fungi/input/dataset.h"
#include "fungi/objective/objective.h"
#include "fungi/objective/presets.h"
#include "fungi/projection/projection.h"
#include "fungi/store/store.h"
#include "fungi/store/writer.h"

namespace fungi {

struct ExtractorOptions {
  std::vector<std::string> objectives{
      "kl", "dino", "simclr"};  // specifications (objective/factory.h); empty: embedding alone
  Preset preset = Preset::native;
  ProjectionKind projection = ProjectionKind::sign;
  size_t projection_rows = 0;       // 0: the embedding's width; Preset::paper: the model's
  Matrix<float> projection_matrix;  // for ProjectionKind::matrix; with another kind an Error
  uint64_t seed = 42;
  std::optional<uint64_t> projection_seed;  // default: seed
  // How long the rows of gradients are beside the embedding, whose length is 1. Default: 1; 0.2
  // where the embedding of a text is the mean of its tokens, which has less to gain
  // (docs/results-text.md).
  std::optional<double> gradient_weight;
  bool keep_factors =
      false;  // also store the gradients' factors: exact inner products without projection
  DecodeOptions decode;  // of images
  TextOptions text;
  SoundOptions sound;
  std::shared_ptr<const Modality> modality;  // of your own; null: what the model looks at
  // Samples wait in groups for the projection, which then passes over its matrix once for many; so
  // many bytes of results may wait.
  size_t waiting_bytes = size_t{256} << 20;
  // Heads of the user's own and the like, by objective: "<objective>-<name>" as in state().
  std::vector<NamedMatrix> given;
  // Objectives of your own, behind those named above; each under its name(), which has to be fit
  // for a block of a store (manifest.h).
  std::vector<std::unique_ptr<Objective>> own;
};

// How to open a backbone that several extractors shall share; Extractor::open() does it for one.
// With patch tokens where an objective looks at them, without a layer where there are none, and
// with the layer's input and CLIP's activation that the preset means; the rest stays as it is in
// `backbone`. An Error names an objective that there is not.
BackboneOptions backbone_for(const ExtractorOptions& options, BackboneOptions backbone = {});

class Extractor {
 public:
  // A checkpoint file or folder, opened as the objectives want it. The pool must outlive the
  // extractor.
  static Extractor open(const std::filesystem::path& model, ExtractorOptions options, Pool& pool,
                        BackboneOptions backbone = {});
  // The same with weights that are there: an Error where they were opened for something else (see
  // backbone_for).
  Extractor(Backbone backbone, ExtractorOptions options, Pool& pool);
  Extractor(Extractor&&) noexcept;
  ~Extractor();

  const Backbone& backbone() const;
  std::vector<StoreBlock> blocks()
      const;                        // embedding first, then one per objective, then kept factors
  size_t views_per_sample() const;  // forward passes, shared ones counted once
  double forward_flops() const;     // of all of these, as Architecture::forward_flops()
  // What the user should know about the backbone (its notes come first), the objectives, and the
  // samples extracted so far.
  std::vector<std::string> notes() const;
  // What notes() says of samples in numbers, and those of an extractor of the same settings in
  // another process, which are added.
  std::vector<uint64_t> counted() const;
  void add_counted(std::span<const uint64_t> others);

  bool ready() const;  // false: fit() or restore() must come first
  // Calls progress(done, total) after each sample, from any thread of the pool, one at a time. Once
  // *stop is set no further sample is begun, and the answer is false: call it again to have the
  // objectives ready.
  bool fit(const Dataset& support, const std::function<void(size_t, size_t)>& progress = {},
           const std::atomic<bool>* stop = nullptr);
  std::vector<NamedMatrix> state() const;  // "<objective>-<name>"
  void restore(const std::vector<NamedMatrix>& state);
  // Error where options.given or restore() said otherwise than the store, or the one it follows.
  // What fit() found is not compared: the data set may have grown since.
  void require_stated(StoreWriter& writer) const;
  // The objectives' state agreed upon with a store, before its plan(): what the store has (from an
  // earlier run, or from StoreOptions::like) is taken, what is missing is found by fit(), and all
  // of it is put into the store. So a store keeps the state it began with, also when its data set
  // has grown; require_stated() comes first. False: stopped, as fit().
  bool settle(StoreWriter& writer, const Dataset& support,
              const std::function<void(size_t, size_t)>& progress = {},
              const std::atomic<bool>* stop = nullptr);

  // How to open a data set for it: what the model looks at, and of sounds how much of each.
  DatasetOptions data() const;
  // Everything that decides about the features; and the same, with the model and the blocks, for a
  // store's manifest: an Error where a name or a parameter of your own is no UTF-8.
  Settings settings() const;
  StoreSpec spec() const;
  // Samples worth losing to a kill, fewer when each costs many views, and no more than fit well
  // into memory: a shard is held as a whole.
  size_t shard_size() const;

  // The rows of some samples of a data set, in their order; failures are reported, not thrown.
  // Calls progress(done, failed) as samples leave the backbone, as fit() does. Once *stop is set no
  // further sample is begun: those are StoreRows::undone.
  StoreRows extract(const Dataset& dataset, std::span<const size_t> samples,
                    const std::function<void(size_t, size_t)>& progress = {},
                    const std::atomic<bool>* stop = nullptr);

  Stages stages() const;  // time spent so far, over all threads

 private:
  void add(std::unique_ptr<Objective> objective);
  struct State;
  static double usual_weight(const State& state);
  std::unique_ptr<State> state_;
};

struct ExtractProgress {
  size_t done = 0, total = 0, failed = 0;  // samples of this run
  size_t saved = 0;                        // of those done: on disk
};

struct ExtractRun {
  std::function<void(const ExtractProgress&)> progress;  // from any thread, one call at a time
  std::function<void(size_t, size_t)> support_progress;  // of Extractor::settle(), comes before
  // Rows of shards in which nothing is new, written again where samples moved: before `progress`.
  std::function<void(size_t, size_t)> rewrite_progress;
  // Each failure that was recorded, with the sample's id.
  std::function<void(const std::string&, const StoreFailure&)> failure;
  const std::atomic<bool>* stop =
      nullptr;  // set from a signal handler: the samples at hand are finished, then all is saved
  bool strict = false;  // the first failure is an Error, after its shard is saved
};

// Settles the state with the store, then computes what the writer's plan still wants: called
// again, it goes on where it was stopped. The result says whether all is there.
StoreTotals extract_to_store(Extractor& extractor, const Dataset& dataset, StoreWriter& writer,
                             const ExtractRun& run = {});

// The second half of it, for callers that settled the state and looked at the plan themselves.
StoreTotals run_plan(Extractor& extractor, const Dataset& dataset, StoreWriter& writer,
                     const std::vector<StoreWork>& plan, const ExtractRun& run = {});

// Without a store: the features of all samples as Store::load() gives them, without kept factors.
// Samples that cannot be used are no rows; `failures` says which (by number in the data set) and
// why. The extractor must be ready. Error where a label of the data set has no class. progress and
// stop as of Extractor::extract(): samples that were not begun are no rows either, nor failures.
struct MemoryRun {
  bool normalise = true;  // each block of each row to length 1; else rows as a store has them
  std::function<void(size_t, size_t)> progress = {};
  const std::atomic<bool>* stop = nullptr;
};
FeatureSet extract_to_memory(Extractor& extractor, const Dataset& dataset,
                             std::vector<StoreFailure>* failures = nullptr,
                             const MemoryRun& run = {});

// The first `limit` samples, 0: all.
std::vector<StoreSample> samples_without_keys(const Dataset& dataset, size_t limit = 0);

// The same with their keys. A key of a file takes a look at the disk: of a part of the data
// set, in shards of `shard_size`, only its own samples are asked for theirs.
std::vector<StoreSample> store_samples(const Dataset& dataset, size_t limit = 0,
                                       const std::optional<StorePart>& part = {},
                                       size_t shard_size = 1);

}  // namespace fungi
