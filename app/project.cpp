// SPDX-License-Identifier: Apache-2.0
// fungi project STORE -o STORE2: the gradients of a store projected anew from their kept factors,
// without the model.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/features.h"
#include "app/progress.h"
#include "fungi/feature/project_store.h"
#include "fungi/retrieve/outside.h"

namespace fungi::app {
namespace {

struct Arguments {
  std::string from, store, given;
  ProjectionArguments projection;
  std::optional<uint64_t> seed;
  ThreadsOption threads;
  bool factors = false, overwrite = false, prune = false, quiet = false, json = false;
};

int run(const Arguments& a) {
  const Store from = Store::open(a.from);
  require_outside(from, a.store);
  Pool pool(a.threads.count());
  ReprojectOptions options{.kind = parse_projection(a.projection.kind),
                           .rows = a.projection.rows,
                           .seed = a.seed,
                           .matrix = a.projection.read_matrix(a.given),
                           .keep_factors = a.factors,
                           .overwrite = a.overwrite,
                           .prune = a.prune};
  StoreTotals totals;
  size_t computed = 0;
  const std::atomic<bool>& stop = stop_on_interrupt();
  {
    Progress progress("project", a.quiet || a.json, &stop);
    ExtractRun run;
    run.stop = &stop;
    run.rewrite_progress = [&](size_t done, size_t total) {
      progress.turn_to("rewrite", "rows");
      progress.update(done, total);
    };
    run.progress = [&](const ExtractProgress& p) {
      progress.turn_to("project");
      progress.update(p.done, p.total, p.failed), computed = p.done;
    };
    totals = project_store(from, a.store, std::move(options), pool, run);
  }
  const size_t dropped = totals.complete ? totals.dropped : 0;  // until then the old ones stay
  if (a.json) {
    print_json({{"store", a.store},
                {"rows", totals.rows},
                {"failed", totals.failed},
                {"missing", totals.missing},
                {"complete", totals.complete},
                {"computed", computed},
                {"dropped", dropped}});
  } else {
    fmt::print("{}: {} rows of {}{}{}, {} projected now\n", shown(a.store), totals.rows,
               from.manifest().spec.pipeline,
               totals.failed ? fmt::format(", {} failed (failed.jsonl)", totals.failed) : "",
               dropped ? fmt::format(", {} dropped", dropped) : "", computed);
  }
  if (stop && !totals.complete) {
    if (!a.json) say("interrupted; repeat the command to go on\n");
    return kInterrupted;
  }
  return totals.failed ? kPartial : kOk;
}

}  // namespace

Verb add_project(CLI::App& parent, CLI::App*& self) {
  self = parent.add_subcommand(
      "project",
      "Project the gradients of a store anew, from the factors that extract --keep-factors stored");
  auto a = std::make_shared<Arguments>();
  self->add_option("store", a->from, "Store extracted with --keep-factors")->required();
  self->add_option("-o,--output", a->store, "The new store: a folder, made if needed")
      ->required()
      ->type_name("STORE");
  a->projection.add_to(*self);
  auto* given = self->add_option(
      "--given", a->given,
      "For --projection matrix: .npz or .safetensors with a tensor named 'projection'");
  self->add_option("--seed", a->seed, "Seed of the projection; default: that of the extraction");
  self->add_flag("--keep-factors", a->factors, "The new store holds the factors, too");
  self->add_flag("--prune", a->prune, "Drop rows of the new store that the other has no more");
  self->add_flag("--overwrite", a->overwrite, "Throw away what the new store holds");
  a->threads.add_to(*self);
  self->add_flag("-q,--quiet", a->quiet, "No progress");
  self->add_flag("--json", a->json, "Print JSON");
  self->parse_complete_callback([a, given] {
    a->projection.require_consistent(a->given);
    if (given->count() > 0 && a->projection.kind != "matrix")
      throw CLI::ValidationError(
          "--given", fmt::format("is the matrix of --projection matrix; --projection {} "
                                 "makes its own: leave one of them out",
                                 a->projection.kind));
  });
  return [a] { return run(*a); };
}

}  // namespace fungi::app
