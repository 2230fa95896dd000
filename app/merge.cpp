// SPDX-License-Identifier: Apache-2.0
// fungi merge PART... -o STORE: the store that one run would have written.
#include "fungi/store/merge.h"

#include <nlohmann/json.hpp>

#include "app/cli.h"
#include "app/progress.h"
#include "fungi/feature/comparable.h"

namespace fungi::app {
namespace {

struct Arguments {
  std::vector<std::string> parts;
  std::string store;
  bool mixed = false, overwrite = false, dry_run = false, quiet = false, json = false;
};

int run(const Arguments& a) {
  const std::vector<std::filesystem::path> parts(a.parts.begin(), a.parts.end());
  Progress progress("merge", a.quiet || a.json);
  MergeOptions options{.allow_mixed = a.mixed, .overwrite = a.overwrite, .dry_run = a.dry_run};
  options.require_same = require_same_features;
  options.stop = &stop_on_interrupt();
  options.progress = [&](size_t done, size_t total) {
    progress.turn_to("merge", "shards");
    progress.update(done, total);
  };
  const StoreTotals totals = merge_parts(parts, a.store, options);
  if (a.json)
    print_json({{"store", a.store},
                {"parts", parts.size()},
                {"rows", totals.rows},
                {"failed", totals.failed},
                {"complete", totals.complete}});
  else
    fmt::print("{}: {} parts, {} rows{}{}\n", shown(a.store), parts.size(), totals.rows,
               totals.failed ? fmt::format(", {} failed (failed.jsonl)", totals.failed) : "",
               a.dry_run ? "; nothing was written" : "");
  if (!totals.complete && !a.dry_run) {
    if (!a.json) say("interrupted; repeat the command to go on\n");
    return kInterrupted;
  }
  return totals.failed ? kPartial : kOk;
}

}  // namespace

Verb add_merge(CLI::App& parent, CLI::App*& self) {
  self = parent.add_subcommand(
      "merge", "Join the stores of 'extract --part' into the one store of a single run");
  auto a = std::make_shared<Arguments>();
  self->add_option("parts", a->parts, "The stores of all parts, in any order")->required();
  self->add_option("-o,--output", a->store, "The store: a folder, made if needed")
      ->required()
      ->type_name("STORE");
  self->add_flag("--allow-mixed", a->mixed,
                 "Also join parts of other versions or instruction sets; the store says so");
  self->add_flag("--overwrite", a->overwrite, "Throw away what the store holds");
  self->add_flag("--dry-run", a->dry_run, "Check everything, write nothing");
  self->add_flag("-q,--quiet", a->quiet, "No progress");
  self->add_flag("--json", a->json, "Print JSON");
  return [a] { return run(*a); };
}

}  // namespace fungi::app
