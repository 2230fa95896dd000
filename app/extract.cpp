// SPDX-License-Identifier: Apache-2.0
// fungi extract DIR -m MODEL -o STORE: features of a data set, resumed by repeating the command.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/extract_arguments.h"
#include "app/progress.h"
#include "app/ranks.h"
#include "app/words.h"
#include "fungi/checkpoint/checkpoint.h"
#include "fungi/feature/extract_ranks.h"
#include "fungi/feature/extractor.h"
#include "fungi/feature/sound_statistics.h"
#include "fungi/input/published.h"
#include "fungi/store/store.h"

namespace fungi::app {
namespace {

namespace fs = std::filesystem;

std::vector<NamedMatrix> read_given(const std::string& file) {
  std::vector<NamedMatrix> given;
  if (file.empty()) return given;
  const Checkpoint archive = Checkpoint::open(file);
  for (const TensorInfo& t : archive.tensors())
    if (t.name != kProjectionTensor) {
      given.push_back({t.name, archive.read(t.name)});
      require_finite(given.back().values, t.name, file);
    }
  return given;
}

void note_data(const Dataset& dataset, Notes& notes) {
  const char* kind = to_string(dataset.samples());
  for (const auto& [extension, count] : dataset.ignored())
    notes.add(
        extension.empty()
            ? fmt::format("{} file(s) without extension are no {}s and were left out", count, kind)
            : fmt::format("{} file(s) '.{}' are no {}s and were left out", count, extension, kind));
  notes.add(dataset.notes());
}

void print_stages(const Stages& stages, bool alone) {
  double total = 0;
  for (const auto& row : stages.rows()) total += row.own;
  if (total == 0) return;  // nothing was computed
  auto rows = stages.rows();
  std::sort(rows.begin(), rows.end(), [](const auto& x, const auto& y) { return x.own > y.own; });
  say("time by stage, all threads{}:", alone ? "" : " of rank 0");
  for (const auto& row : rows)
    if (row.own > 0.005 * total)
      say("  {} {:.1f} s ({:.0f} %)", row.name, row.own, 100 * row.own / total);
  say("\n");
}

// What a run did, beside the totals of its store.
struct Outcome {
  StoreTotals totals;
  size_t computed = 0, failed = 0, dropped = 0;  // now
  std::vector<FailedSample> first_failed;        // now, the first few
};

constexpr size_t kFailuresShown = 3;

Outcome compute(Extractor& extractor, StoreWriter& writer, const Dataset& dataset,
                const std::vector<StoreSample>& samples, Notes& notes, const ExtractArguments& a,
                Comm& comm) {
  const std::atomic<bool>& stop = stop_on_interrupt();
  Outcome outcome;
  {
    Progress progress("support", a.quiet || a.json, &stop);
    const auto update = [&](size_t done, size_t total) { progress.update(done, total); };
    if (!extractor.settle(writer, dataset, update, &stop)) {
      outcome.totals.samples = outcome.totals.missing = samples.size();
      begin_work(false, comm);
      return outcome;
    }
  }
  const std::vector<std::string> early = extractor.notes();
  notes.add(early);
  {
    Progress progress("extract", a.quiet || a.json, &stop);
    const std::vector<StoreWork> plan = writer.plan(samples, dataset.class_names());
    begin_work(true, comm);
    ExtractRun run;
    run.stop = &stop;
    run.strict = a.strict;
    run.rewrite_progress = [&](size_t done, size_t total) {
      progress.turn_to("rewrite", "rows");
      progress.update(done, total);
    };
    run.progress = [&](const ExtractProgress& p) {
      progress.turn_to("extract");
      progress.update(p.done, p.total, p.failed);
      outcome.computed = p.saved;
    };
    run.failure = [&](const std::string& id, const StoreFailure& f) {
      if (outcome.failed++ < kFailuresShown)
        outcome.first_failed.push_back({id, f.stage, f.reason, f.hint, ""});
    };
    outcome.totals = run_plan_on_ranks(extractor, dataset, samples, writer, plan, run,
                                       {.gather = a.gather}, comm);
  }
  if (outcome.totals.complete) outcome.dropped = writer.dropped();  // until then the old ones stay
  const std::vector<std::string> all = extractor.notes();
  for (size_t i = early.size(); i < all.size(); ++i) notes.add(all[i]);
  if (const size_t kept = outcome.totals.failed - std::min(outcome.failed, outcome.totals.failed))
    notes.add(
        fmt::format("{} failures recorded before were not tried again: --retry-failed does", kept));
  return outcome;
}

int dry_run(const Extractor& extractor, StoreWriter& writer, const Dataset& dataset,
            const std::vector<StoreSample>& samples, const Notes& notes,
            const ExtractArguments& a) {
  size_t todo = 0;
  for (const StoreWork& w : writer.plan(samples, dataset.class_names())) todo += w.samples.size();
  const StoreSpec spec = extractor.spec();
  if (a.json)
    print_json({{"data", a.data},
                {"kind", to_string(dataset.kind())},
                {"samples", samples.size()},
                {"to_compute", todo},
                {"to_drop", writer.dropped()},
                {"classes", dataset.class_names().size()},
                {"pipeline", spec.pipeline},
                {"views_per_sample", extractor.views_per_sample()},
                {"model", spec.model_path},
                {"precision", spec.precision},
                {"ignored", dataset.ignored()},
                {"notes", notes.list}});
  else
    fmt::print(
        "{} samples ({}), {} to compute, {} classes\n{}{} with {} views per sample on "
        "{}\nnothing was written\n",
        samples.size(), to_string(dataset.kind()), todo, dataset.class_names().size(),
        writer.dropped() ? fmt::format("would drop {} rows\n", writer.dropped()) : "",
        spec.pipeline, extractor.views_per_sample(), spec.isa);
  return kOk;
}

void print_failures(const Outcome& o) {
  for (const FailedSample& f : o.first_failed)
    say("failed: {}: {}\n", shown(f.id), shown(worded(f.reason), true));
  if (o.failed > o.first_failed.size())
    say("failed: {} more, see failed.jsonl\n", o.failed - o.first_failed.size());
}

MeasuredSounds measure(const ExtractArguments& a, const DatasetOptions& data, Pool& pool,
                       Notes& notes) {
  const Architecture architecture =
      read_architecture(Checkpoint::open(a.settings.model), a.settings.backbone.stated_facts);
  const DatasetOptions looks = sound_data(architecture, a.settings.extractor.sound);
  DatasetOptions listened = data;
  listened.samples = looks.samples, listened.seconds = looks.seconds;
  const auto dataset = open_dataset(a.data, listened);
  Progress progress("measure", a.quiet || a.json, &stop_on_interrupt());
  const MeasuredSounds measured =
      measure_sounds(*dataset, architecture, a.settings.extractor.sound, pool,
                     [&](size_t done, size_t total) { progress.update(done, total); });
  notes.add(describe(measured));
  return measured;
}

DatasetOptions data_options(const ExtractArguments& a) {
  DatasetOptions data{.kind = parse_dataset_kind(a.kind), .split = a.split};
  data.fold = a.fold, data.window = a.settings.extractor.sound.window, data.hop = a.hop;
  return data;
}

Extractor open_extractor(ExtractArguments& a, BackboneOptions options, Pool& pool) {
  ExtractorOptions settings = std::move(a.settings.extractor);
  settings.projection_matrix = a.projection.read_matrix(a.given);
  settings.given = read_given(a.given);
  return Extractor::open(a.settings.model, std::move(settings), pool, std::move(options));
}

std::unique_ptr<Dataset> open_data(const ExtractArguments& a, DatasetOptions data,
                                   const Extractor& extractor) {
  data.samples = extractor.data().samples, data.seconds = extractor.data().seconds;
  a.columns.apply(data);
  auto dataset = open_dataset(a.data, data);
  if (a.classes.empty()) return dataset;
  return choose_classes(std::move(dataset), a.data, read_class_list(a.classes));
}

// Ranks but the first: what rank 0 found out, then shards as it gives them out.
int help(ExtractArguments& a, Comm& comm) {
  Pool pool(a.model.threads.count());
  const RankJob job = share_job({}, comm);
  BackboneOptions options = a.settings.backbone;
  options.stated_facts = job.facts, options.precision = job.precision;
  const DatasetOptions data = data_options(a);
  Extractor extractor = open_extractor(a, std::move(options), pool);
  const auto dataset = open_data(a, data, extractor);
  StoreSpec spec = extractor.spec();
  spec.type = a.settings.type;
  std::vector<StoreSample> samples = samples_without_keys(*dataset, a.limit);
  const RankOptions how{.gather = a.gather, .allow_mixed = a.mixed};
  require_same_job(spec, samples, dataset->class_names(), job.shard_size, how, comm);
  const std::atomic<bool>& stop = stop_on_interrupt();
  if (wait_for_work(comm))
    work_for_first_rank(extractor, *dataset, spec, std::move(samples), &stop, comm);
  return kOk;
}

int run(ExtractArguments& a, Comm& comm) {
  if (!comm.first()) return help(a, comm);
  const auto start = std::chrono::steady_clock::now();
  Pool pool(a.model.threads.count());
  const auto followed = begun_store(a.like), own = begun_store(a.overwrite ? "" : a.store);
  Notes notes{.shown = !a.quiet && !a.json};
  const DatasetOptions data = data_options(a);
  BackboneOptions options = a.settings.backbone;
  options.stated_facts =
      chosen_statistics(a.statistics, std::move(options.stated_facts), own ? &*own : nullptr,
                        [&] { return measure(a, data, pool, notes); });
  follow_precision(options, followed ? &*followed : nullptr, own ? &*own : nullptr);
  const StatedFacts facts = options.stated_facts;
  Extractor extractor = open_extractor(a, std::move(options), pool);
  const auto dataset = open_data(a, data, extractor);
  StoreSpec spec = extractor.spec();
  spec.type = a.settings.type;
  StoreOptions store_options{
      .shard_size = shard_size_for(a.shard, own ? &*own : nullptr, extractor),
      .overwrite = a.overwrite,
      .prune = a.prune,
      .retry_failed = a.retry || a.strict,
      .dry_run = a.dry_run};
  store_options.like = a.like;
  store_options.part = a.part_of_data();
  const std::vector<StoreSample> samples =
      store_samples(*dataset, a.limit, store_options.part, store_options.shard_size);
  const size_t shard = store_options.shard_size;
  share_job({facts, *extractor.backbone().options().precision, shard}, comm);
  const RankOptions ranks{.gather = a.gather, .allow_mixed = a.mixed};
  store_options.helpers =
      require_same_job(spec, samples, dataset->class_names(), shard, ranks, comm);
  if (samples.size() < dataset->size())
    store_options.prune_hint = fmt::format(
        "--limit leaves the first {} of {} samples: leave it out, or raise it; for fewer "
        "rows write to another folder",
        samples.size(), dataset->size());
  if (!a.given.empty() && !fs::exists(a.store)) {  // a refusal must not leave a folder behind
    StoreOptions look = store_options;
    look.dry_run = true;
    StoreWriter looked(a.store, spec, look);
    extractor.require_stated(looked);
  }
  stop_on_interrupt();  // from here on a signal saves what is there
  StoreWriter writer(a.store, spec, store_options);
  extractor.require_stated(writer);  // in a dry run, too
  note_data(*dataset, notes);
  if (a.dry_run) notes.add(extractor.notes());
  if (a.dry_run) begin_work(false, comm);
  if (a.dry_run) return dry_run(extractor, writer, *dataset, samples, notes, a);

  const Outcome o = compute(extractor, writer, *dataset, samples, notes, a, comm);
  const StoreTotals& totals = o.totals;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (a.json) {
    nlohmann::json stages = nlohmann::json::array();
    const Stages spent = extractor.stages();
    for (const auto& row : spent.rows())
      stages.push_back({{"name", row.name}, {"own_seconds", row.own}, {"calls", row.calls}});
    print_json({{"store", a.store},
                {"rows", totals.rows},
                {"failed", totals.failed},
                {"waiting", totals.waiting},
                {"missing", totals.missing},
                {"complete", totals.complete},
                {"computed", o.computed},
                {"dropped", o.dropped},
                {"seconds", seconds},
                {"samples_per_second", double(o.computed) / seconds},
                {"pipeline", spec.pipeline},
                {"peak_rss_mb", peak_rss_mb()},
                {"ignored", dataset->ignored()},
                {"notes", notes.list},
                {"stages", stages}});
  } else {
    if (!a.quiet) print_failures(o);
    fmt::print("{}: {} rows of {}{}{}{}{}, {} computed now in {}\n", shown(a.store), totals.rows,
               spec.pipeline, totals.waiting ? fmt::format(", {} more wait", totals.waiting) : "",
               totals.failed ? fmt::format(", {} failed (failed.jsonl)", totals.failed) : "",
               totals.missing ? fmt::format(", {} still to come", totals.missing) : "",
               o.dropped ? fmt::format(", {} dropped", o.dropped) : "", o.computed,
               human_seconds(seconds));
    if (!a.quiet) print_stages(extractor.stages(), comm.alone());
  }
  if (!totals.complete) {  // only a signal ends a run before
    if (!a.json) say("interrupted; repeat the command to go on\n");
    return kInterrupted;
  }
  if (totals.rows == 0 && totals.samples > 0) {
    const FailedSample first =
        o.first_failed.empty() ? Store::open(a.store).failed().at(0) : o.first_failed[0];
    fail(fmt::format("none of the {} samples could be used; the first: {}", totals.samples,
                     first.reason),
         first.id,
         (first.hint.empty() ? "" : first.hint + "; ") + "all reasons are in failed.jsonl");
  }
  return totals.failed ? kPartial : kOk;
}

}  // namespace

Verb add_extract(CLI::App& parent, CLI::App*& self) {
  self = parent.add_subcommand(
      "extract", "Features of every sample of a data set; repeat the command to resume");
  auto a = std::make_shared<ExtractArguments>();
  a->add_to(*self);
  return [a] { return on_ranks([a](Comm& comm) { return run(*a, comm); }); };
}

}  // namespace fungi::app
