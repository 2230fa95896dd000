// SPDX-License-Identifier: Apache-2.0
// What a run on many machines would take, and what would hold it up first: a model of times, bytes
// and memory, with numbers that docs/scale.md compares with measurements.
#pragma once

#include <string>
#include <vector>

#include "fungi/backbone/architecture.h"

namespace fungi {

// What a plan takes for granted. Each can be measured, and stated.
struct Machines {
  size_t cores = 1, cores_per_host = 64;
  double network_gflops = 60;  // of one core, in the layers of a network
  double row_gflops = 50;      // of one core, in products of rows
  double disk_gb = 2;          // GB/s that the shared file system gives to all hosts together
  double link_gb = 1.25;       // GB/s of one host
  double operations = 5000;    // files that are made per second, by all hosts together
  double memory_gb = 256;      // of one host

  size_t hosts() const { return (cores + cores_per_host - 1) / cores_per_host; }
};

struct PlannedRun {
  double samples = 0, queries = 0;
  double sample_kb = 110;  // of an encoded picture
  size_t views = 1;        // forward passes of a sample
  double flops = 0;        // of a forward pass
  size_t blocks = 1, columns = 0, reduced = 512;
  size_t value_bytes = 4;   // of a stored number
  size_t classes = 1000, neighbours = 20;
  size_t shard_size = 0;    // 0: as extract chooses it, but so that there are not too many
};

struct PlannedStep {
  std::string name;
  double seconds = 0;
  std::string limit;       // what it waits for
  double memory_gb = 0;    // of a host
};

struct RunPlan {
  double samples_per_second = 0, store_gb = 0, shards = 0;
  size_t shard_size = 0;
  std::vector<PlannedStep> steps;
  std::vector<std::string> walls;  // what does not fit at all
  std::string bottleneck;          // the first wall, or what the longest step waits for
};

// Floating-point operations of one forward pass: two for each product.
double forward_flops(const Architecture& architecture);

// Of a model, a file or the name of an architecture, and objectives; other fields keep what they
// have in `run`. projection_rows: 0 as `extract` has it.
PlannedRun planned_run(PlannedRun run, const std::string& model,
                       const std::vector<std::string>& objectives, size_t projection_rows = 0);

RunPlan plan_run(const PlannedRun& run, const Machines& machines);

}  // namespace fungi
