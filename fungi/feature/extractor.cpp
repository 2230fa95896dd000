// SPDX-License-Identifier: Apache-2.0
// The order of everything: decode, views, forward, losses, backward (chunk_worker.cpp), then
// projection and normalisation here. What objectives need before is in extractor_fit.cpp.
#include "fungi/feature/extractor.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <new>

#include "fungi/backbone/architecture_json.h"
#include "fungi/feature/comparable.h"
#include "fungi/feature/extractor_state.h"
#include "fungi/feature/feature_rows.h"
#include "fungi/feature/kept_factors.h"
#include "fungi/kernel/kernel.h"
#include "fungi/objective/factory.h"
#include "fungi/store/text.h"

namespace fungi {

Extractor::Extractor(Backbone given, ExtractorOptions options, Pool& pool)
    : state_(std::make_unique<State>(std::move(given), std::move(options), pool)) {
  State& s = *state_;
  const Backbone& backbone = s.backbone;
  const Architecture& a = backbone.architecture();
  if (s.options.preset == Preset::paper && a.family == "clip" && !backbone.path().empty() &&
      !backbone.options().stated_facts.contains("activation"))
    fail("the preset 'paper' runs CLIP with GELU, whatever its weights were trained with",
         backbone.path().string(),
         "use Extractor::open() or backbone_for(options), or state its activation in "
         "BackboneOptions::stated_facts; rows that were made otherwise are to be extracted again");
  for (const std::string& specification : s.options.objectives)
    add(make_objective(specification, {a.embedding_width, a.width, s.options.seed, s.options.preset,
                                       s.modality->kind(), backbone.word_head(), a.input_h,
                                       a.patch_h}));
  for (std::unique_ptr<Objective>& own : s.options.own) add(std::move(own));
  s.options.own.clear();
  s.stated = s.restore(s.options.given);
}

Extractor::Extractor(Extractor&&) noexcept = default;
Extractor::~Extractor() = default;

const Backbone& Extractor::backbone() const { return state_->backbone; }

void Extractor::add(std::unique_ptr<Objective> objective) {
  State& s = *state_;
  if (!objective) fail("expected an objective, found none", "ExtractorOptions::own");
  const std::string name = objective->name();
  require_objective_name(name);
  for (const ScheduledObjective& o : s.objectives)
    if (o.objective->name() == name)
      fail(fmt::format("the objective '{}' is given twice", name), "objectives");
  if (!s.backbone.layer())
    fail("gradients are wanted, but the backbone was opened without a layer", name,
         "use Extractor::open() or backbone_for(options)");
  if (objective->wants_tokens() && !s.backbone.options().tokens)
    fail("this objective looks at patch tokens, but the backbone was opened without them", name,
         "use Extractor::open() or backbone_for(options)");
  if (objective->wants_word_head() && !s.backbone.word_head())
    fail("this objective guesses hidden words, but the backbone was opened without its head for it",
         name, "use Extractor::open() or backbone_for(options)");
  if (s.options.preset == Preset::paper && s.backbone.architecture().dialect == "torchvision" &&
      std::any_of(s.backbone.layers().begin(), s.backbone.layers().end(),
                  [](const LayerId& layer) { return layer.part == LayerId::Part::proj; }) &&
      !s.backbone.options().mha_input_as_activation)
    fail(
        "the preset 'paper' takes the output of norm1 for the layer's input on torchvision "
        "checkpoints",
        name, "use Extractor::open() or backbone_for(options)");
  if (s.projections.empty()) s.make_projections();
  ScheduledObjective o;
  ViewSchedule schedule = s.schedule;  // changed as a whole: a request may be refused
  for (const ViewRequest& request : objective->views()) {
    const size_t place = schedule.add(request);
    auto& once = o.differentiated;
    if (request.gradient && std::find(once.begin(), once.end(), place) == once.end())
      once.push_back(place);
    o.requests.push_back({place, request.gradient});
  }
  if (o.differentiated.empty())
    fail("the objective asks for no gradient: there is nothing to project", name,
         "set ViewRequest::gradient for at least one request");
  o.objective = std::move(objective);
  s.objectives.push_back(std::move(o));
  s.zeros.resize(s.zeros.size() + s.projections.size());
  s.schedule = std::move(schedule);
  s.workers.clear();
}

size_t Extractor::views_per_sample() const { return state_->schedule.views_per_sample(); }

double Extractor::forward_flops() const {
  return state_->schedule.forward_flops(state_->backbone.architecture());
}

// The gradients of a text whose embedding is the mean of its tokens add little that is not there,
// and at full length they cost accuracy (docs/results-text.md). Presets do as their references.
double Extractor::usual_weight(const State& s) {
  constexpr double kBesideAMean = 0.2;
  const bool mean_of_words = s.modality->kind() == SampleKind::text &&
                             s.backbone.architecture().pooling == Pooling::mean_all;
  return mean_of_words && !follows_reference(s.options.preset) ? kBesideAMean : 1;
}

std::vector<StoreBlock> Extractor::blocks() const {
  const State& s = *state_;
  std::vector<StoreBlock> list{{"embedding", s.backbone.architecture().embedding_width}};
  const double weight = s.options.gradient_weight.value_or(usual_weight(s));
  for (const ScheduledObjective& o : s.objectives)
    for (size_t l = 0; l < s.projections.size(); ++l)
      list.push_back({s.block_name(o, l), s.projections[l]->rows(), 1, weight});
  if (!s.options.keep_factors) return list;
  if (s.by_layer())
    fail("factors can be kept of one layer, not of several at once", "keep_factors",
         "leave `keep_factors` or `layers` out");
  for (const ScheduledObjective& o : s.objectives)
    if (o.objective->wants_tokens())
      fail(fmt::format("factors cannot be kept beside '{}', whose gradient comes from all patch "
                       "tokens: they would be too many",
                       o.objective->name()),
           "keep_factors",
           fmt::format("extract '{}' into a store of its own without `keep_factors`, or leave one "
                       "of the two out",
                       o.objective->name()));
  if (s.backbone.architecture().pooled_tokens() == 0)
    fail(
        "factors can be kept where the embedding is that of the first tokens; here it is a mean "
        "over all of them, each with factors of its own",
        "keep_factors", "leave `keep_factors` out");
  if (!s.backbone.can_record())
    fail("factors can be kept for layers after the last attention only", "keep_factors",
         "use the default layer");
  for (const ScheduledObjective& o : s.objectives) {
    const size_t views = s.gradient_views(o) * s.backbone.architecture().pooled_tokens();
    list.push_back({factor_block(o.objective->name(), 'b'), s.backbone.layer_outputs(), views});
    list.push_back({factor_block(o.objective->name(), 'a'), s.backbone.layer_inputs(), views});
  }
  return list;
}

std::vector<std::string> Extractor::notes() const {
  std::vector<std::string> all = state_->backbone.notes();
  const std::lock_guard lock(state_->telling);
  for (const ScheduledObjective& o : state_->objectives)
    for (const std::string& note : o.objective->notes(state_->support_views(*o.objective)))
      all.push_back(o.objective->name() + ": " + note);
  const size_t layers = state_->projections.size();
  for (size_t o = 0; o < state_->zeros.size(); ++o)
    if (const size_t count = state_->zeros[o])
      all.push_back(fmt::format(
          "{}: the gradient of {} samples is zero, and so are their features",
          state_->block_name(state_->objectives[o / layers], o % layers), count));
  if (!state_->objectives.empty() && !state_->options.gradient_weight)
    if (const double weight = usual_weight(*state_); weight != 1)
      all.push_back(fmt::format(
          "the embedding is the mean of a text's tokens: gradients have the weight {} beside it "
          "(at 1 they may cost accuracy); `weight` states another",
          weight));
  if (state_->cut)
    all.push_back(
        fmt::format("{} samples are longer than what the model looks at: their ends were cut off",
                    state_->cut));
  if (state_->resampled)
    all.push_back(fmt::format(
        "{} samples have another rate than the model's and were resampled", state_->resampled));
  return all;
}

bool Extractor::ready() const {
  const std::lock_guard lock(state_->telling);
  return std::all_of(state_->objectives.begin(), state_->objectives.end(),
                     [](const auto& o) { return o.objective->ready(); });
}

DatasetOptions Extractor::data() const {
  const Modality& modality = state_->schedule.modality();
  return {.samples = modality.kind(), .seconds = modality.seconds()};
}

Settings Extractor::settings() const {
  const State& s = *state_;
  const BackboneOptions& b = s.backbone.options();
  Settings settings{.preset = s.options.preset,
                    .precision = *b.precision,
                    .seed = s.options.seed,
                    .stated = b.stated_facts,
                    .input = s.modality->settings(s.options.decode)};
  for (const ScheduledObjective& o : s.objectives) {
    ObjectiveSettings& objective = settings.objectives.emplace_back();
    objective.name = o.objective->name();
    for (const Parameter& p : o.objective->parameters()) objective.parameters[p.name] = p.value;
  }
  for (size_t l = 0; l < s.projections.size(); ++l) {
    const LayerId& layer = s.backbone.layers()[l];
    GradientSettings gradient{layer.name(),
                              b.mha_input_as_activation && layer.part == LayerId::Part::proj,
                              s.projections[l]->layer(), settings_of(*s.projections[l])};
    if (s.by_layer())
      settings.layers.push_back(std::move(gradient));
    else
      settings.gradient = std::move(gradient);
  }
  return settings;
}

StoreSpec Extractor::spec() const {
  const State& s = *state_;
  const BackboneOptions& b = s.backbone.options();
  StoreSpec spec;
  write_settings(settings(), spec);
  spec.require_same = require_same_features;
  spec.isa = kernel::kernel_for(b.isa, *b.precision).name;
  spec.model_sha256 = s.backbone.sha256();
  if (const auto& path = s.backbone.path(); !path.empty())
    spec.model_path = std::filesystem::absolute(path).lexically_normal().string();
  spec.architecture = to_json(s.backbone.architecture());
  if (const auto& said = s.backbone.notes(); !said.empty())
    spec.notes = store::dump(store::Json{{"model", said}});
  spec.blocks = blocks();
  return spec;
}

size_t Extractor::shard_size() const {
  constexpr size_t kMostBytes = size_t{64} << 20;
  const size_t row_bytes = 4 * total_width(blocks()), most = views_per_sample() > 4 ? 64 : 512;
  return std::clamp<size_t>(kMostBytes / row_bytes, 1, most);
}

constexpr const char* kReading = "read";

// Of full-size samples that a thread holds at a time, unless a single one is larger.
constexpr size_t kHeldBytes = size_t{64} << 20;

void Extractor::State::run_chunk(ChunkWorker& worker, const Dataset& dataset,
                                 std::span<const size_t> samples, size_t first,
                                 std::span<SampleResult> results,
                                 std::span<StoreFailure> failures) {
  std::vector<Sample> decoded(results.size());
  std::vector<PreparedSample> held;
  std::vector<size_t> positions;  // of what is held
  size_t held_bytes = 0;
  const auto run_held = [&] {
    run_samples(worker, held, positions, first, results, failures);
    for (const size_t i : positions) decoded[i] = {};
    held.clear(), positions.clear(), held_bytes = 0;
  };
  for (size_t i = 0; i < results.size(); ++i) {
    const size_t index = samples[first + i];
    const char* stage = kReading;
    try {
      const Stages::Scope scope(worker.stages(), "decode");
      const std::vector<uint8_t> bytes = dataset.read(index);
      stage = "decode";
      decoded[i] = dataset.decode(index, bytes, options.decode);
      check(decoded[i]);
    } catch (const Exhausted&) {
      throw;  // no fault of the sample: it must not be recorded as a bad one
    } catch (const Error& e) {
      if (stage == kReading) dataset.require_present();
      failures[i] = {first + i, stage, e.message(), e.hint()};
      continue;
    } catch (const std::bad_alloc&) {
      if (!held.empty()) {  // once more, when the others have left
        run_held();
        --i;
        continue;
      }
      failures[i] = {first + i, stage, "there is not enough memory for this file",
                     "make it smaller, or free memory and repeat with `retry_failed`"};
      continue;
    }
    held.push_back({&decoded[i], dataset.id(index)});
    positions.push_back(i);
    held_bytes += bytes_of(decoded[i]);
    if (held_bytes >= kHeldBytes) run_held();
  }
  if (!held.empty()) run_held();
}

void Extractor::State::run_samples(ChunkWorker& worker, std::span<const PreparedSample> prepared,
                                   std::span<const size_t> positions, size_t first,
                                   std::span<SampleResult> results,
                                   std::span<StoreFailure> failures) {
  try {
    std::vector<SampleResult> done = worker.run(prepared, objectives);
    for (size_t i = 0; i < positions.size(); ++i) results[positions[i]] = std::move(done[i]);
  } catch (const Error&) {  // one by one: a sample that cannot be viewed costs no other
    for (size_t i = 0; i < positions.size(); ++i) {
      try {
        results[positions[i]] = std::move(worker.run({&prepared[i], 1}, objectives).front());
      } catch (const Error& e) {
        failures[positions[i]] = {first + positions[i], worker.step(), e.message(), e.hint()};
      }
    }
  }
}

StoreRows Extractor::extract(const Dataset& dataset, std::span<const size_t> samples,
                             const std::function<void(size_t, size_t)>& progress,
                             const std::atomic<bool>* stop) {
  State& s = *state_;
  const auto turn = s.take_turn();
  if (!ready())
    fail("an objective still needs its support samples", "extract",
         "call fit() or restore() first");
  for (const size_t i : samples) dataset.id(i);  // an Error where there is none
  s.make_workers();
  const std::vector<StoreBlock> layout = blocks();
  StoreRows out;
  for (const StoreBlock& b : layout) out.blocks.emplace_back(samples.size(), b.size());

  const size_t group =
      std::max<size_t>(s.options.waiting_bytes / (4 * s.waiting_floats()), s.pool.threads());
  const size_t most = std::max<size_t>(1, s.backbone.preferred_batch() / views_per_sample());
  std::mutex counting;
  size_t done = 0, failed = 0;
  for (size_t first = 0; first < samples.size(); first += group) {
    const size_t count = std::min(group, samples.size() - first);
    std::vector<SampleResult> results(count);
    std::vector<StoreFailure> failures(count);  // without a stage: none
    std::vector<char> done_here(count, 0);      // by sample, each written by one thread
    // Chunks as even as can be, the same number for every thread: none waits for the last one.
    const size_t chunks = round_up((count + most - 1) / most, s.pool.threads());
    s.pool.parallel_for(chunks, 1, [&](size_t c, size_t, unsigned w) {
      const size_t begin = count * c / chunks, end = count * (c + 1) / chunks;
      if (stop && stop->load()) return;
      s.run_chunk(s.workers[w], dataset, samples, first + begin,
                  std::span(results).subspan(begin, end - begin),
                  std::span(failures).subspan(begin, end - begin));
      s.collect_stages(s.workers[w]);
      std::fill(done_here.begin() + ptrdiff_t(begin), done_here.begin() + ptrdiff_t(end), 1);
      if (!progress || begin == end) return;
      const std::lock_guard lock(counting);
      done += end - begin;
      for (size_t i = begin; i < end; ++i) failed += !failures[i].stage.empty();
      progress(done, failed);
    });

    std::vector<size_t> good;
    for (size_t i = 0; i < count; ++i) {
      if (!done_here[i])
        out.undone.push_back(first + i);
      else if (failures[i].stage.empty())
        good.push_back(i);
      else
        out.failures.push_back(std::move(failures[i]));
    }
    for (size_t i : good)
      std::copy(results[i].embedding.begin(), results[i].embedding.end(),
                out.blocks[0].row(first + i));
    const auto cut =
        std::count_if(good.begin(), good.end(), [&](size_t i) { return results[i].cut; });
    const auto resampled =
        std::count_if(good.begin(), good.end(), [&](size_t i) { return results[i].resampled; });
    Stages stages;
    // Of each objective one gradient per layer.
    const size_t gradients = s.objectives.size() * s.projections.size();
    std::vector<size_t> zeros(gradients);
    for (size_t o = 0; o < gradients && !good.empty(); ++o) {
      const Projection& projection = *s.projections[o % s.projections.size()];
      const Stages::Scope scope(stages, "projection");
      std::vector<GradientFactors> factors;
      for (size_t i : good) factors.push_back({results[i].factors[o].b, results[i].factors[o].a});
      Matrix<float> y(good.size(), projection.rows());
      projection.project(factors, y, s.pool);
      for (size_t i = 0; i < good.size(); ++i) {
        zeros[o] += normalise({y.row(i), y.cols()}) == 0;
        std::copy_n(y.row(i), y.cols(), out.blocks[1 + o].row(first + good[i]));
        if (!s.options.keep_factors) continue;
        const size_t at = 1 + s.objectives.size() + 2 * o;
        std::copy_n(factors[i].b.data, factors[i].b.rows * factors[i].b.cols,
                    out.blocks[at].row(first + good[i]));
        std::copy_n(factors[i].a.data, factors[i].a.rows * factors[i].a.cols,
                    out.blocks[at + 1].row(first + good[i]));
      }
    }
    const std::lock_guard lock(s.telling);
    s.own.add(stages);
    s.cut += size_t(cut), s.resampled += size_t(resampled);
    for (size_t o = 0; o < zeros.size(); ++o) s.zeros[o] += zeros[o];
  }
  return out;
}

Stages Extractor::stages() const {
  const std::lock_guard lock(state_->telling);
  return state_->own;
}

}  // namespace fungi
