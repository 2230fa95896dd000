// SPDX-License-Identifier: Apache-2.0
// fungi extract DIR -m MODEL -o STORE: features of a data set, resumed by repeating the command.
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "app/cli.h"
#include "app/progress.h"
#include "fungi/checkpoint/checkpoint.h"
#include "fungi/feature/extractor.h"
#include "fungi/feature/store.h"

namespace fungi::app {
namespace {

struct Arguments {
  ModelOptions model;
  std::string data, store, kind = "auto", split, preset = "native", like, storage = "float32",
                           given;
  std::vector<std::string> objectives{"kl", "dino", "simclr"};
  ProjectionArguments projection;
  size_t limit = 0, shard = 0;
  uint64_t seed = 42;
  bool exif = false, truncated = false, strict = false, dry_run = false, json = false,
       quiet = false, overwrite = false, prune = false, retry = false, factors = false;
};

// A view of the first `limit` samples; everything else as it is.
std::vector<StoreSample> limited_samples(const Dataset& dataset, size_t limit) {
  std::vector<StoreSample> samples = store_samples(dataset);
  if (limit && limit < samples.size()) samples.resize(limit);
  return samples;
}

std::vector<NamedMatrix> read_given(const std::string& file) {
  std::vector<NamedMatrix> given;
  if (file.empty()) return given;
  const Checkpoint archive = Checkpoint::open(file);
  for (const TensorInfo& t : archive.tensors())
    if (t.name != "projection") given.push_back({t.name, archive.read(t.name)});
  return given;
}

ExtractorOptions extractor_options(const Arguments& a) {
  ExtractorOptions o;
  o.objectives = objective_list(a.objectives);
  o.preset = parse_preset(a.preset);
  o.projection = parse_projection(a.projection.kind);
  o.projection_rows = a.projection.rows;
  o.projection_matrix = a.projection.read_matrix(a.given);
  o.seed = a.seed;
  o.keep_factors = a.factors;
  o.decode.exif_orientation = a.exif;
  o.decode.allow_truncated = a.truncated;
  o.given = read_given(a.given);
  return o;
}

// State goes into the store before the first shard, so that a resumed run and --like use the same.
void settle_state(Extractor& extractor, StoreWriter& writer, const Dataset& dataset,
                  const Arguments& a) {
  std::vector<NamedMatrix> stored;
  for (const std::string& name : writer.state_names()) stored.push_back({name, writer.state(name)});
  if (!stored.empty()) extractor.restore(stored);
  if (!extractor.ready()) {
    Progress progress("support", a.quiet || a.json);
    extractor.fit(dataset, [&](size_t done, size_t total) { progress.update(done, total); });
  }
  for (const NamedMatrix& m : extractor.state())
    if (!writer.has_state(m.name)) writer.put_state(m.name, m.values);
}

void print_stages(const Stages& stages) {
  double total = 0;
  for (const auto& row : stages.rows()) total += row.own;
  auto rows = stages.rows();
  std::sort(rows.begin(), rows.end(), [](const auto& x, const auto& y) { return x.own > y.own; });
  fmt::print(stderr, "time by stage, all threads:");
  for (const auto& row : rows)
    if (row.own > 0.005 * total)
      fmt::print(stderr, "  {} {:.0f} %", row.name, 100 * row.own / total);
  fmt::print(stderr, "\n");
}

int run(const Arguments& a) {
  const auto start = std::chrono::steady_clock::now();
  const auto dataset = open_dataset(a.data, {.kind = parse_dataset_kind(a.kind), .split = a.split});
  Pool pool(a.model.thread_count());
  BackboneOptions options = a.model.backbone();
  const std::vector<std::string> objectives = objective_list(a.objectives);
  if (objectives.empty()) options.layer = "none";
  for (const std::string& o : objectives) options.tokens |= o.starts_with("ibot");
  options.mha_input_as_activation = parse_preset(a.preset) == Preset::paper;
  const Backbone backbone = Backbone::open(a.model.model, options, pool);
  Extractor extractor(backbone, extractor_options(a), pool);
  StoreSpec spec = extractor.spec();
  spec.type = parse_store_type(a.storage);
  StoreOptions store_options{.shard_size = a.shard ? a.shard : extractor.shard_size(),
                             .overwrite = a.overwrite,
                             .prune = a.prune,
                             .retry_failed = a.retry || a.strict,
                             .dry_run = a.dry_run};
  store_options.like = a.like;
  StoreWriter writer(a.store, spec, store_options);
  const std::vector<StoreSample> samples = limited_samples(*dataset, a.limit);

  if (a.dry_run) {
    size_t todo = 0;
    for (const StoreWork& w : writer.plan(samples, dataset->class_names()))
      todo += w.samples.size();
    const nlohmann::json out{{"data", a.data},
                             {"kind", to_string(dataset->kind())},
                             {"samples", samples.size()},
                             {"to_compute", todo},
                             {"classes", dataset->class_names().size()},
                             {"pipeline", spec.pipeline},
                             {"views_per_sample", extractor.views_per_sample()},
                             {"model", spec.model_path},
                             {"precision", spec.precision}};
    if (a.json)
      fmt::print("{}\n", out.dump(2));
    else
      fmt::print(
          "{} samples ({}), {} to compute, {} classes\n{} with {} views per sample, {} on "
          "{}\nnothing was written\n",
          samples.size(), to_string(dataset->kind()), todo, dataset->class_names().size(),
          spec.pipeline, extractor.views_per_sample(), spec.precision, spec.isa);
    return kOk;
  }
  for (const auto& [extension, count] : dataset->ignored())
    if (!a.quiet && !a.json)
      fmt::print(stderr, "note: {} file(s) '{}' are no images and were left out\n", count,
                 extension);
  settle_state(extractor, writer, *dataset, a);
  for (const std::string& note : extractor.notes())
    if (!a.quiet && !a.json) fmt::print(stderr, "note: {}\n", note);
  const std::vector<StoreWork> plan = writer.plan(samples, dataset->class_names());

  const std::atomic<bool>& stop_requested = stop_on_interrupt();
  StoreTotals totals;
  size_t computed = 0;
  {
    Progress progress("extract", a.quiet || a.json);
    ExtractRun run;
    run.stop = &stop_requested;
    run.strict = a.strict;
    run.progress = [&](const ExtractProgress& p) {
      progress.update(p.done, p.total, p.failed), computed = p.done;
    };
    totals = run_plan(extractor, *dataset, writer, plan, run);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (a.json) {
    nlohmann::json stages = nlohmann::json::array();
    const Stages spent = extractor.stages();
    for (const auto& row : spent.rows())
      stages.push_back({{"name", row.name}, {"own_seconds", row.own}, {"calls", row.calls}});
    const nlohmann::json out{{"store", a.store},
                             {"rows", totals.rows},
                             {"failed", totals.failed},
                             {"missing", totals.missing},
                             {"complete", totals.complete},
                             {"computed", computed},
                             {"seconds", seconds},
                             {"samples_per_second", computed / seconds},
                             {"pipeline", spec.pipeline},
                             {"peak_rss_mb", peak_rss_mb()},
                             {"stages", stages}};
    fmt::print("{}\n", out.dump(2));
  } else {
    fmt::print("{}: {} rows of {}{}{}, {} computed now in {}\n", a.store, totals.rows,
               spec.pipeline,
               totals.failed ? fmt::format(", {} failed (failed.jsonl)", totals.failed) : "",
               totals.missing ? fmt::format(", {} still to come", totals.missing) : "", computed,
               human_seconds(seconds));
    if (!a.quiet) print_stages(extractor.stages());
  }
  if (stop_requested && !totals.complete) {
    if (!a.json) fmt::print(stderr, "interrupted; repeat the command to go on\n");
    return kInterrupted;
  }
  return totals.failed ? kPartial : kOk;
}

}  // namespace

Verb add_extract(CLI::App& parent, CLI::App*& self) {
  self = parent.add_subcommand(
      "extract", "Features of every image of a data set; repeat the command to resume");
  auto a = std::make_shared<Arguments>();
  self->add_option(
          "data", a->data,
          "Folder of classes, flat folder, list (.csv .tsv .jsonl), tar shards, CIFAR or IDX files")
      ->required();
  a->model.add_to(*self, true);
  self->add_option("-o,--output", a->store, "The store: a folder, made if needed")->required();
  self->add_option(
          "--objectives", a->objectives,
          "kl, dino, simclr, deepcluster, ibot with parameters (simclr:negatives=64), or none")
      ->capture_default_str();
  self->add_option("--preset", a->preset,
                   "native: what is right; paper, lib: what the references do")
      ->capture_default_str()
      ->check(CLI::IsMember({"native", "paper", "lib"}));
  a->projection.add_to(*self);
  self->add_option("--given", a->given,
                   "Heads or a projection of your own: .npz or .safetensors with tensors named as "
                   "in the store's state");
  self->add_option("--seed", a->seed, "Seed of heads, projection, crops and support")
      ->capture_default_str();
  self->add_option("--like", a->like,
                   "Another store: same settings required, its heads and negatives are used");
  self->add_option("--kind", a->kind,
                   "Kind of data set: auto, classes, flat, list, tar, cifar, idx")
      ->capture_default_str();
  self->add_option("--split", a->split, "Split of the data set: train or test");
  self->add_option("--storage", a->storage, "float32 or float16")
      ->capture_default_str()
      ->check(CLI::IsMember({"float32", "float16"}));
  self->add_option("--shard", a->shard, "Samples per shard; 0 = chosen by their cost")
      ->capture_default_str();
  self->add_option("--limit", a->limit, "Only the first so many samples");
  self->add_flag("--keep-factors", a->factors,
                 "Also store the gradients' factors, for exact gradient neighbours");
  self->add_flag("--exif", a->exif, "Turn pictures as their EXIF orientation says");
  self->add_flag("--allow-truncated", a->truncated, "Use what a cut-off file still holds");
  self->add_flag("--strict", a->strict, "Stop at the first bad file");
  self->add_flag("--retry-failed", a->retry, "Try recorded failures again");
  self->add_flag("--prune", a->prune, "Drop rows whose files have gone");
  self->add_flag("--overwrite", a->overwrite, "Throw away what the store holds");
  self->add_flag("--dry-run", a->dry_run, "Check everything, write nothing");
  self->add_flag("-q,--quiet", a->quiet, "No progress, no notes");
  self->add_flag("--json", a->json, "Print JSON");
  return [a] { return run(*a); };
}

}  // namespace fungi::app
