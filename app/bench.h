// SPDX-License-Identifier: Apache-2.0
// What fungi bench measures, one function per depth of the machine.
#pragma once

#include <string>
#include <vector>

#include "app/cli.h"
#include "fungi/backbone/backbone.h"
#include "fungi/base/parallel.h"
#include "fungi/objective/presets.h"

namespace fungi::app {

struct BenchArguments {
  ModelOptions model;
  std::vector<std::string> objectives{"kl"}, presets;
  double seconds = 3;
  size_t batch = 0;
  bool json = false;
};

// A checkpoint, or random weights by the name of an architecture.
Backbone open_to_bench(const ModelOptions& model, const BackboneOptions& options, Pool& pool);

struct BenchRate {
  double samples_per_second = 0;
  double samples_per_processor_second = 0;  // of one core, whatever else runs on the machine
  size_t views = 1;                         // forward passes per sample
  double gflop = 0;                         // of them, unpruned: the usual way to count
  Stages stages;
};

// The backbone alone, each thread on batches of its own; with or without the backward.
BenchRate bench_backbone(const Backbone& backbone, bool backward, size_t batch, double seconds,
                         Pool& pool);
// The features of random pictures: everything but files.
BenchRate bench_features(const Backbone& backbone, const std::vector<std::string>& objectives,
                         Preset preset, double seconds, Pool& pool);

// Presets side by side, each with its own views and precision; prints them, the first one as the
// measure of the others.
int bench_presets(const BenchArguments& args);

}  // namespace fungi::app
