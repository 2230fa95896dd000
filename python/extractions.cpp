// SPDX-License-Identifier: Apache-2.0
// extract: features of a data set into a store, resumed by calling it again.
#include <fmt/format.h>

#include <chrono>

#include "python/samples.h"
#include "python/settings.h"
#include "python/watch.h"

namespace fungi::python {
namespace {

namespace fs = std::filesystem;

struct Plan {  // what `extract` was told beside what decides about features
  fs::path data, output, like;
  Samples* held = nullptr;  // instead of data
  DatasetOptions how;
  std::string statistics;
  std::string classes;  // a file that names those that are wanted; empty: all
  size_t limit = 0, shard = 0;
  std::optional<StorePart> part;
  bool strict = false, retry = false, prune = false, overwrite = false, dry_run = false;
  unsigned threads = 0;
};

struct Outcome {
  std::optional<StoreTotals> totals;  // none: a dry run
  size_t computed = 0, failed = 0, dropped = 0, samples = 0, to_compute = 0, classes = 0;
  std::vector<FailedSample> failures;  // of this run
  std::vector<std::string> notes;
  std::map<std::string, size_t> ignored;
  std::string pipeline, precision, model;
  size_t views = 0;
  const char* kind = "";
  double seconds = 0;
  Stages stages;
};

void note_data(const Dataset& data, std::vector<std::string>& notes) {
  const char* kind = to_string(data.samples());
  for (const auto& [extension, count] : data.ignored())
    notes.push_back(
        extension.empty()
            ? fmt::format("{} file(s) without extension are no {}s and were left out", count, kind)
            : fmt::format("{} file(s) '.{}' are no {}s and were left out", count, extension, kind));
  notes.insert(notes.end(), data.notes().begin(), data.notes().end());
}

void compute(Extractor& extractor, StoreWriter& writer, const Dataset& data,
             const std::vector<StoreSample>& samples, const Plan& plan, Watch& watch,
             Outcome& out) {
  if (!extractor.settle(writer, data, watch.reporter("support"), watch.stop())) {
    out.totals = StoreTotals{.samples = samples.size(), .missing = samples.size()};
    return;
  }
  ExtractRun run;
  run.stop = watch.stop();
  run.strict = plan.strict;
  run.rewrite_progress = watch.reporter("rewrite");
  run.progress = [&](const ExtractProgress& p) {
    watch.report("extract", p.done, p.total, p.failed);
    out.computed = p.saved;
  };
  run.failure = [&](const std::string& id, const StoreFailure& f) {
    ++out.failed;
    out.failures.push_back({id, f.stage, f.reason, f.hint, ""});
  };
  out.totals = run_plan(extractor, data, writer, writer.plan(samples, data.class_names()), run);
  if (out.totals->complete) out.dropped = writer.dropped();
}

void require_some_rows(const StoreTotals& totals, const Outcome& out, const fs::path& store) {
  if (!totals.complete || totals.rows > 0 || totals.samples == 0) return;
  const FailedSample first =
      out.failures.empty() ? Store::open(store).failed().at(0) : out.failures[0];
  fail(fmt::format("none of the {} samples could be used; the first: {}", totals.samples,
                   first.reason),
       first.id, (first.hint.empty() ? "" : first.hint + "; ") + "all reasons are in failed.jsonl");
}

MeasuredSounds measure(const Plan& plan, const Model& model, const ExtractionSettings& settings,
                       Pool& pool, Watch& watch, std::vector<std::string>& notes) {
  const Architecture architecture =
      read_architecture(checkpoint_of(model), settings.backbone.stated_facts);
  const SoundOptions& sound = settings.extractor.sound;
  const double seconds = sound_data(architecture, sound).seconds;
  std::unique_ptr<Dataset> opened;
  if (plan.held) {
    plan.held->listen(seconds);
  } else {
    DatasetOptions how = plan.how;
    how.samples = SampleKind::sound, how.window = sound.window, how.seconds = seconds;
    opened = open_dataset(plan.data, how);
  }
  const Dataset& data = plan.held ? *plan.held : *opened;
  const MeasuredSounds measured = measure_sounds(data, architecture, sound, pool,
                                                 watch.reporter("measure"));
  notes.push_back(describe(measured));
  return measured;
}

Extractor open_extractor(const Model& model, ExtractionSettings& settings, Pool& pool) {
  const BackboneOptions wanted = backbone_for(settings.extractor, settings.backbone);
  return Extractor(open_backbone(model, wanted, pool), std::move(settings.extractor), pool);
}

Outcome extract(const Plan& plan, const Model& model, ExtractionSettings settings, Watch& watch) {
  const auto start = std::chrono::steady_clock::now();
  Pool pool(threads_or_default(plan.threads));
  const auto followed = begun_store(plan.like),
             own = begun_store(plan.overwrite ? fs::path() : plan.output);
  follow_precision(settings.backbone, followed ? &*followed : nullptr, own ? &*own : nullptr);
  const bool stated = !settings.extractor.given.empty();
  const StoreType type = settings.type;
  Outcome out;
  settings.backbone.stated_facts = chosen_statistics(
      plan.statistics, settings.backbone.stated_facts, own ? &*own : nullptr,
      [&] { return measure(plan, model, settings, pool, watch, out.notes); });
  const double window = settings.extractor.sound.window;
  Extractor extractor = open_extractor(model, settings, pool);
  const DatasetOptions looks = extractor.data();
  std::unique_ptr<Dataset> opened;
  if (plan.held) {
    plan.held->listen(looks.seconds);
  } else {
    DatasetOptions how = plan.how;
    how.samples = looks.samples, how.seconds = looks.seconds, how.window = window;
    opened = open_dataset(plan.data, how);
    if (!plan.classes.empty())
      opened = choose_classes(std::move(opened), plan.data, read_class_list(plan.classes));
  }
  const Dataset& data = plan.held ? *plan.held : *opened;
  StoreSpec spec = extractor.spec();
  spec.type = type;
  StoreOptions options{.shard_size = shard_size_for(plan.shard, own ? &*own : nullptr, extractor),
                       .overwrite = plan.overwrite,
                       .prune = plan.prune,
                       .retry_failed = plan.retry || plan.strict,
                       .dry_run = plan.dry_run};
  options.like = plan.like;
  options.part = plan.part;
  const std::vector<StoreSample> samples =
      store_samples(data, plan.limit, plan.part, options.shard_size);
  if (samples.size() < data.size())
    options.prune_hint = fmt::format(
        "limit leaves the first {} of {} samples: leave it out, or raise it; for fewer rows write "
        "to another folder",
        samples.size(), data.size());
  if (stated && !fs::exists(plan.output)) {  // a refusal must not leave a folder behind
    StoreOptions look = options;
    look.dry_run = true;
    StoreWriter looked(plan.output, spec, look);
    extractor.require_stated(looked);
  }
  StoreWriter writer(plan.output, spec, options);
  extractor.require_stated(writer);
  out.samples = samples.size();
  out.classes = data.class_names().size();
  out.ignored = data.ignored();
  out.pipeline = spec.pipeline;
  out.precision = spec.precision;
  out.model = spec.model_path;
  out.views = extractor.views_per_sample();
  out.kind = to_string(data.kind());
  note_data(data, out.notes);
  if (plan.dry_run) {
    for (const StoreWork& w : writer.plan(samples, data.class_names()))
      out.to_compute += w.samples.size();
    out.dropped = writer.dropped();
  } else {
    compute(extractor, writer, data, samples, plan, watch, out);
  }
  for (const std::string& note : extractor.notes()) out.notes.push_back(note);
  if (out.totals) {
    if (const size_t kept = out.totals->failed - std::min(out.failed, out.totals->failed))
      out.notes.push_back(fmt::format(
          "{} failures recorded before were not tried again: `retry_failed` does", kept));
    require_some_rows(*out.totals, out, plan.output);
  }
  out.stages = extractor.stages();
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

nb::dict to_dict(const Plan& plan, const Outcome& o) {
  nb::dict d, ignored;
  for (const auto& [extension, count] : o.ignored) ignored[to_str(extension)] = count;
  d["ignored"] = ignored;
  d["notes"] = worded_list(o.notes);
  d["pipeline"] = o.pipeline;
  d["dropped"] = o.dropped;
  if (!o.totals) {
    d["kind"] = o.kind;
    d["samples"] = o.samples;
    d["to_compute"] = o.to_compute;
    d["to_drop"] = o.dropped;
    d["classes"] = o.classes;
    d["views_per_sample"] = o.views;
    d["model"] = to_str(o.model);
    d["precision"] = o.precision;
    return d;
  }
  d["store"] = to_str(plan.output.string());
  d["rows"] = o.totals->rows;
  d["failed"] = o.totals->failed;
  d["waiting"] = o.totals->waiting;
  d["missing"] = o.totals->missing;
  d["complete"] = o.totals->complete;
  d["computed"] = o.computed;
  d["seconds"] = o.seconds;
  nb::list failures, stages;
  for (const FailedSample& f : o.failures)
    failures.append(nb::make_tuple(to_str(f.id), f.stage, to_str(worded(f.reason)),
                                   to_str(worded(f.hint))));
  d["failures"] = failures;
  for (const Stages::Row& row : o.stages.rows())
    stages.append(nb::make_tuple(nb::str(row.name.data(), row.name.size()), row.own, row.calls));
  d["stages"] = stages;
  return d;
}

nb::dict extract_of(nb::handle data, const fs::path& output, nb::handle model,
                    const nb::dict& stated, const nb::dict& how, unsigned threads,
                    nb::object progress) {
  const auto flag = [&](const char* name) { return nb::cast<bool>(how[name]); };
  Plan plan{.output = output,
            .like = nb::cast<fs::path>(how["like"]),
            .how = dataset_options(how),
            .statistics = nb::cast<std::string>(how["statistics"]),
            .classes = nb::cast<std::string>(how["classes"]),
            .limit = nb::cast<size_t>(how["limit"]),
            .shard = nb::cast<size_t>(how["shard"]),
            .strict = flag("strict"),
            .retry = flag("retry_failed"),
            .prune = flag("prune"),
            .overwrite = flag("overwrite"),
            .dry_run = flag("dry_run"),
            .threads = threads};
  if (const auto part = nb::cast<std::string>(how["part"]); !part.empty())
    plan.part = parse_part(part);
  if (nb::isinstance<Samples>(data))
    plan.held = nb::cast<Samples*>(data);
  else
    plan.data = nb::cast<fs::path>(data);
  ExtractionSettings settings;
  if (!plan.like.empty()) settings = followed_settings(plan.like);
  Model where = settings.model;
  if (!model.is_none()) where = model_of(model);
  if (!plan.like.empty() && std::holds_alternative<fs::path>(where))
    require_followed_model(plan.like, std::get<fs::path>(where));
  apply(stated, settings);
  Watch watch(std::move(progress));
  Outcome out;
  watch.run([&] { out = extract(plan, where, std::move(settings), watch); });
  return to_dict(plan, out);
}

std::unique_ptr<Dataset> open_data(const fs::path& path, const nb::dict& how) {
  const DatasetOptions options = dataset_options(how);
  const nb::gil_scoped_release free;
  return open_dataset(path, options);
}

nb::dict merge_of(const std::vector<fs::path>& parts, const fs::path& output, bool allow_mixed,
                  bool overwrite, bool dry_run, nb::object progress) {
  Watch watch(std::move(progress));
  StoreTotals totals;
  watch.run([&] {
    MergeOptions options{
        .allow_mixed = allow_mixed, .overwrite = overwrite, .dry_run = dry_run};
    options.require_same = require_same_features;
    options.progress = watch.reporter("merge");
    options.stop = watch.stop();
    totals = merge_parts(parts, output, options);
  });
  nb::dict d;
  d["store"] = to_str(output.string());
  d["parts"] = parts.size();
  d["rows"] = totals.rows;
  d["failed"] = totals.failed;
  d["complete"] = totals.complete;
  return d;
}

}  // namespace

void add_extractions(nb::module_& m) {
  m.def("merge", merge_of, nb::arg("parts"), nb::arg("output"), nb::arg("allow_mixed"),
        nb::arg("overwrite"), nb::arg("dry_run"), nb::arg("progress").none());
  m.def("extract", extract_of, nb::arg("data"), nb::arg("output"), nb::arg("model").none(),
        nb::arg("stated"), nb::arg("how"), nb::arg("threads"), nb::arg("progress").none());
  m.def("open_dataset", open_data, nb::arg("path"), nb::arg("how"));
}

}  // namespace fungi::python
