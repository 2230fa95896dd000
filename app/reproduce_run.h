// SPDX-License-Identifier: Apache-2.0
// One backbone on one data set: extract (or resume), then the table's protocol.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/reproduce_find.h"
#include "fungi/backbone/backbone.h"
#include "fungi/objective/presets.h"

namespace fungi::app {

struct RunOptions {
  std::string work;  // folder of the stores
  size_t limit = 0;  // a rehearsal: so many samples of each split, evenly spread; 0: all
  Preset preset = Preset::paper;
  uint64_t seed = 42;
  std::optional<Precision> precision = {};
  bool quiet = false;
};

struct RunResult {
  std::map<std::pair<std::string, std::string>, double> percent;  // by setting and features
  std::map<std::pair<std::string, std::string>, std::string>
      reasons;  // for those that could not be computed
  std::map<std::pair<std::string, std::string>, std::string>
      waiting;                             // for those that a language model has to be asked for
  size_t train = 0, test = 0, failed = 0;  // samples
  std::vector<std::string> notes;          // of the extraction
};

// What it would take to compute what is there.
struct PlannedRun {
  std::string backbone, data;
  size_t samples = 0, views = 0;  // of all splits; forward passes of each
  double seconds = 0;             // on this machine, by a short measurement; 0: not measured
};
PlannedRun plan_pair(const PaperTable& table, const PaperBackbone& facts, const Backbone& backbone,
                     const PaperData& data, const FoundData& found, const RunOptions& options,
                     double& seconds_per_view, Pool& pool);

RunResult run_pair(const PaperTable& table, const PaperBackbone& facts, const Backbone& backbone,
                   const PaperData& data, const FoundData& found, const RunOptions& options,
                   Pool& pool);

// A table of segmentations: the model is opened anew, at the size of the experiments.
RunResult run_segmentation(const PaperTable& table, const PaperBackbone& facts,
                           const std::filesystem::path& model, const PaperData& data,
                           const FoundData& found, const RunOptions& options, Pool& pool);

}  // namespace fungi::app
