// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "fungi/backbone/backbone.h"
#include "fungi/backbone/sides.h"
#include "fungi/checkpoint/checkpoint.h"
#include "fungi/feature/view_schedule.h"
#include "fungi/objective/factory.h"
#include "fungi/store/shards.h"

namespace fungi {
namespace {

constexpr double kGiga = 1e9;
// Measured: docs/scale.md.
constexpr double kListSeconds = 3e-6;   // of a sample: its name, its label, its place in a plan
constexpr double kListBytes = 332;      // that a rank keeps of it
constexpr double kRowBytes = 90;        // its line in a rows file
constexpr double kShardSeconds = 1.2e-3;  // of rank 0, for a shard of another rank
constexpr double kOperationsPerFile = 3;  // made, synchronised, renamed
constexpr double kNumberSeconds = 4e-9;   // of a core: a number read, its row of length 1
constexpr double kScan = 8;  // neighbours: bounds from short numbers, beside products in f32
constexpr double kPlaceSeconds = 1.5e-8;  // of a core: a row's place among the right ones of a query
constexpr double kBackward = 1.04;  // the short way back, beside all forward passes
constexpr double kLinearSteps = 50, kLinearGroups = 16;
constexpr double kLinearReads = 5;  // for the PCA, and twice for each of two problems
constexpr double kMeansSteps = 25, kMeansRows = 256;
constexpr double kMeansRoom = 1.27;  // rows, and what bounds are made of
constexpr double kBlockRows = 2304, kTurnBlocks = 8, kTileNumbers = 192 * 192;  // of a PCA
constexpr double kEigen = 9;        // operations of the eigenproblem by columns³, on one core
constexpr double kProgramGb = 0.2;  // a program, its buffers, and its share of messages

class Planner {
 public:
  Planner(const PlannedRun& run, const Machines& machines) : r_(run), m_(machines) {
    choose_shards();
    p_.store_gb = r_.samples * (double(r_.columns * r_.value_bytes) + kRowBytes) / kGiga;
  }

  RunPlan plan() {
    extract();
    evaluate();
    const auto longest = std::max_element(
        p_.steps.begin(), p_.steps.end(),
        [](const PlannedStep& a, const PlannedStep& b) { return a.seconds < b.seconds; });
    p_.bottleneck = p_.walls.empty() ? longest->name + ": " + longest->limit : p_.walls[0];
    return std::move(p_);
  }

 private:
  void choose_shards() {
    const double most = double(store::kMaxShards);
    p_.shard_size = r_.shard_size ? r_.shard_size : r_.views > 4 ? 64 : 512;
    if (const double least = std::ceil(r_.samples / most); double(p_.shard_size) < least) {
      if (r_.shard_size)
        p_.walls.push_back(fmt::format("{} samples per shard make more than {} shards: at least {} "
                                       "are needed",
                                       r_.shard_size, store::kMaxShards, least));
      p_.shard_size = size_t(least);
    }
    p_.shards = std::ceil(r_.samples / double(p_.shard_size));
  }

  // The longest of several things that go on side by side.
  void step(std::string name, std::vector<std::pair<double, std::string>> limits,
            double memory_gb) {
    const auto& longest = *std::max_element(limits.begin(), limits.end());
    if (memory_gb > m_.memory_gb)
      p_.walls.push_back(fmt::format("{}: {:.3g} GB of memory per host, which has {:g}", name,
                                     memory_gb, m_.memory_gb));
    p_.steps.push_back({std::move(name), longest.first, longest.second, memory_gb});
  }

  double cores(double tasks) const { return std::min(double(m_.cores), std::max(tasks, 1.0)); }
  double hosts() const { return double(m_.hosts()); }

  void extract() {
    const double list_gb = r_.samples * kListBytes / kGiga;
    step("list", {{r_.samples * kListSeconds, "one core of each rank"}}, list_gb);
    const double flops = r_.samples * double(r_.views) * r_.flops * kBackward;
    const double files = p_.shards * double(r_.blocks + 1);
    step("extract",
         {{flops / (cores(p_.shards * 8) * m_.network_gflops * kGiga), "cores"},
          {r_.samples * r_.sample_kb * 1e3 / (m_.disk_gb * kGiga), "reading of samples"},
          {p_.store_gb / m_.disk_gb, "writing of rows"},
          {files * kOperationsPerFile / m_.operations, "files that are made"},
          {p_.shards * kShardSeconds, "rank 0, which takes up shards"}},
         list_gb);
    p_.samples_per_second = r_.samples / p_.steps.back().seconds;
  }

  void evaluate() {
    const double n = r_.samples, w = double(r_.columns), h = hosts(), q = r_.queries;
    const double d = double(std::min(r_.reduced ? r_.reduced : r_.columns, r_.columns));
    const double core = m_.row_gflops * kGiga, rate = double(m_.cores) * core;
    const double rows_gb = n * w * double(r_.value_bytes) / kGiga;
    const double reads = std::max(rows_gb / m_.disk_gb, rows_gb / h / m_.link_gb);  // own rows once
    const double load = n * w * kNumberSeconds / double(m_.cores);
    const double project = load + (d < w ? 2 * n * w * d / rate : 0), own_gb = n * d * 4 / h / kGiga;
    if (d < w) {
      const double turns = n / (kBlockRows * kTurnBlocks), tiles = std::max(1.0, w * w / kTileNumbers / 2);
      step("pca",
           {{load + n * w * w / rate + kEigen * w * w * w / core, "cores"},
            {reads, "reading of rows"},
            {turns * w * w * 4 / kGiga / m_.link_gb / std::min(h, tiles), "sums that go round"}},
           (w * w * 20 + kBlockRows * kTurnBlocks * w * 4) / kGiga + kProgramGb);
    }
    const double answers_gb = q * double(r_.neighbours) * 16 / kGiga;
    step("knn",
         {{2 * n * q * d / rate / kScan + project, "cores"},
          {reads, "reading of rows"},
          {2 * answers_gb / m_.link_gb, "neighbours that are merged"}},
         own_gb + answers_gb + kProgramGb);
    const double trained = std::min(n, kMeansRows * double(r_.classes));
    step("kmeans",
         {{2 * (n + trained * kMeansSteps) * double(r_.classes) * d / rate + project, "cores"},
          {reads, "reading of rows"}},
         own_gb * kMeansRoom + n * 4 / kGiga + kProgramGb);
    const double fits = 6;  // five penalties, and the chosen one on all rows
    step("linear",
         {{4 * n * d * double(r_.classes) * kLinearSteps * fits / (cores(kLinearGroups) * core),
           "cores, of which 16 can share a sum"},
          {reads * kLinearReads, "reading of rows"}},
         2 * n * d * 4 / std::min(h, kLinearGroups) / kGiga + kProgramGb);
    const double relevant_gb = q * n / double(r_.classes) * 8 / kGiga;
    step("retrieve",
         {{2 * n * q * d / rate + n * q * kPlaceSeconds / double(m_.cores) + project, "cores"},
          {reads, "reading of rows"},
          {h > 1 ? 2 * relevant_gb / m_.link_gb : 0, "keys of relevant rows that travel"}},
         own_gb + kProgramGb);
  }

  const PlannedRun r_;
  const Machines m_;
  RunPlan p_;
};

}  // namespace

double forward_flops(const Architecture& a) {
  const double n = double(a.tokens()), d = double(a.width), hidden = double(a.mlp_hidden);
  const double layer = 8 * n * d * d + 4 * n * n * d + 4 * n * d * hidden;
  return double(a.depth) * layer + 2 * n * d * double(a.patch_h * a.patch_w * 3);
}

PlannedRun planned_run(PlannedRun run, const std::string& model,
                       const std::vector<std::string>& objectives, size_t projection_rows) {
  std::error_code ignored;  // then it is the name of an architecture, or none
  const Architecture a = std::filesystem::exists(model, ignored)
                             ? read_architecture(Checkpoint::open(model))
                             : named_architecture(model);
  ViewSchedule schedule(modality_for(a, Preset::native));
  for (const std::string& specification : objectives) {
    const ObjectiveContext context{a.embedding_width, a.width, 42, Preset::native, sample_kind(a)};
    for (const ViewRequest& request : make_objective(specification, context)->views())
      schedule.add(request);
  }
  if (run.queries <= 0) run.queries = std::max(1.0, run.samples / 100);
  run.views = schedule.views_per_sample();
  double flops = 0;
  for (const ScheduledRequest& r : schedule.requests())
    for (size_t view = 0; view < r.views; ++view)
      flops += forward_flops(at_side(a, view_side(r.request.plan, view)));
  run.flops = flops / double(run.views);
  run.blocks = 1 + objectives.size();
  run.columns = a.embedding_width +
                objectives.size() * (projection_rows ? projection_rows : a.embedding_width);
  return run;
}

RunPlan plan_run(const PlannedRun& run, const Machines& machines) {
  return Planner(run, machines).plan();
}

}  // namespace fungi
