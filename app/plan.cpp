// SPDX-License-Identifier: Apache-2.0
// fungi plan --samples 1e9 -m vit_base_patch16_224: what a run on many machines would take.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli.h"
#include "app/progress.h"
#include "fungi/feature/cost.h"

namespace fungi::app {
namespace {

struct Arguments {
  std::string model, storage = "float32";
  std::vector<std::string> objectives{"kl", "dino", "simclr"};
  size_t projection_rows = 0;
  PlannedRun run;
  Machines machines;
  bool json = false;
};

std::string gigabytes(double gb) { return human_bytes(gb * 1e9); }

int run(const Arguments& a) {
  PlannedRun stated = a.run;
  stated.value_bytes = a.storage == "float16" ? 2 : 4;
  const PlannedRun wanted =
      planned_run(stated, a.model, objective_list(a.objectives), a.projection_rows);
  const RunPlan plan = plan_run(wanted, a.machines);
  nlohmann::json steps = nlohmann::json::array();
  for (const PlannedStep& step : plan.steps) {
    steps.push_back({{"name", step.name},
                     {"seconds", step.seconds},
                     {"limit", step.limit},
                     {"memory_gb_per_host", step.memory_gb}});
  }
  if (a.json) {
    print_json({{"samples", wanted.samples},
                {"queries", wanted.queries},
                {"views_per_sample", wanted.views},
                {"gflops_per_view", wanted.flops / 1e9},
                {"columns", wanted.columns},
                {"samples_per_second", plan.samples_per_second},
                {"store_gb", plan.store_gb},
                {"shards", plan.shards},
                {"shard_size", plan.shard_size},
                {"hosts", a.machines.hosts()},
                {"steps", steps},
                {"walls", plan.walls},
                {"bottleneck", plan.bottleneck}});
    return kOk;
  }
  fmt::print("{:g} samples, {} views of {:.3g} GFLOP each, {} columns; {} cores on {} hosts\n",
             wanted.samples, wanted.views, wanted.flops / 1e9, wanted.columns, a.machines.cores,
             a.machines.hosts());
  fmt::print("{:.4g} samples/s; a store of {} in {:g} shards of {} (--shard)\n\n",
             plan.samples_per_second, gigabytes(plan.store_gb), plan.shards, plan.shard_size);
  fmt::print("{:<10}{:>14}{:>10}  waits for\n", "step", "time", "memory");
  for (const PlannedStep& s : plan.steps)
    fmt::print("{:<10}{:>14}{:>10}  {}\n", s.name, human_seconds(s.seconds), gigabytes(s.memory_gb),
               s.limit);
  fmt::print("\nfirst bottleneck: {}\n", plan.bottleneck);
  for (size_t i = 1; i < plan.walls.size(); ++i) fmt::print("then: {}\n", plan.walls[i]);
  return kOk;
}

}  // namespace

Verb add_plan(CLI::App& parent, CLI::App*& self) {
  self = parent.add_subcommand("plan", "What a run on many machines would take, by a cost model");
  auto a = std::make_shared<Arguments>();
  Machines& m = a->machines;
  self->add_option("-m,--model", a->model,
                   "Name of an architecture (fungi models), or a checkpoint")
      ->required();
  self->add_option("--samples", a->run.samples, "Samples to extract, such as 1e9")
      ->required()
      ->check(positive_number());
  self->add_option("--objectives", a->objectives, "As for 'fungi extract'")
      ->capture_default_str()
      ->check(objective_word());
  self->add_option("--queries", a->run.queries, "Test rows of knn and retrieve; 0 = a hundredth")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  self->add_option("--classes", a->run.classes, "Classes of kmeans and linear")
      ->capture_default_str();
  self->add_option("--projection-dim", a->projection_rows, "As for 'fungi extract'")
      ->capture_default_str();
  self->add_option("--pca", a->run.reduced, "Columns that a PCA leaves; 0 = none")
      ->capture_default_str();
  self->add_option("--storage", a->storage, "float32 or float16")
      ->capture_default_str()
      ->check(CLI::IsMember({"float32", "float16"}));
  self->add_option("--shard", a->run.shard_size, "Samples per shard; 0 = chosen")
      ->capture_default_str();
  self->add_option("--sample-kb", a->run.sample_kb, "kB that a sample has on disk")
      ->capture_default_str()
      ->check(positive_number());
  const auto count = [&](const char* name, size_t& value, const char* what) {
    self->add_option(name, value, what)->type_name(kCount)->capture_default_str();
  };
  const auto number = [&](const char* name, double& value, const char* what) {
    self->add_option(name, value, what)->capture_default_str()->check(positive_number());
  };
  count("--cores", m.cores, "Cores of all hosts");
  count("--host-cores", m.cores_per_host, "Cores of one host, which is one rank");
  number("--gflops", m.network_gflops, "GFLOP/s of a core in a network ('fungi bench' tells)");
  number("--row-gflops", m.row_gflops, "GFLOP/s of a core in products of rows");
  number("--disk-gb", m.disk_gb, "GB/s of the shared file system, for all hosts together");
  number("--link-gb", m.link_gb, "GB/s of a host's link");
  number("--file-rate", m.operations, "File system operations per second, of all hosts together");
  number("--memory-gb", m.memory_gb, "Memory of one host");
  self->add_flag("--json", a->json, "Print JSON");
  return [a] { return run(*a); };
}

}  // namespace fungi::app
