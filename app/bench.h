// SPDX-License-Identifier: Apache-2.0
// What fungi bench measures, one function per depth of the machine.
#pragma once

#include <string>
#include <vector>

#include "fungi/backbone/backbone.h"
#include "fungi/base/parallel.h"

namespace fungi::app {

struct BenchRate {
  double samples_per_second = 0;
  double samples_per_processor_second = 0;  // of one core, whatever else runs on the machine
  size_t views = 1;                         // forward passes per sample
  Stages stages;
};

// The backbone alone, each thread on batches of its own; with or without the backward.
BenchRate bench_backbone(const Backbone& backbone, bool backward, size_t batch, double seconds,
                         Pool& pool);
// The features of random pictures: everything but files.
BenchRate bench_features(const Backbone& backbone, const std::vector<std::string>& objectives,
                         double seconds, Pool& pool);

}  // namespace fungi::app
