// SPDX-License-Identifier: Apache-2.0
// One backbone on one data set: extract (or resume), then the table's protocol.
#pragma once

#include <functional>
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
  std::vector<uint64_t> seeds = {};  // of every table; empty: see seeds_of()
  std::optional<Precision> precision = {};
  bool quiet = false;
};

// Those that were asked for; or `seed`, and the two after it where the paper tells a deviation.
std::vector<uint64_t> seeds_of(const PaperTable& table, const RunOptions& options);

using CellKey = std::pair<std::string, std::string>;  // setting and features

struct RunResult {
  std::map<CellKey, std::vector<double>> values = {};  // percent, or per second; one of each seed
  // What a cell stands for that stands for many, in order.
  std::map<CellKey, std::vector<CellKey>> many = {};
  std::map<CellKey, std::string> reasons = {};  // for those that could not be computed
  std::map<CellKey, std::string> waiting = {};  // for those that a language model has to be asked
  size_t train = 0, test = 0, failed = 0;       // samples
  std::vector<std::string> notes = {};          // of the extraction
};

RunResult run_pair(const PaperTable& table, const PaperBackbone& facts, const Backbone& backbone,
                   const PaperData& data, const FoundData& found, const RunOptions& options,
                   Pool& pool);

// A table of segmentations: the model is opened anew, at the size of the experiments.
RunResult run_segmentation(const PaperTable& table, const PaperBackbone& facts,
                           const std::filesystem::path& model, const PaperData& data,
                           const FoundData& found, const RunOptions& options, Pool& pool);

// What the machine decides: features and neighbours per second.
RunResult run_speed(const PaperTable& table, const PaperBackbone& facts, const Backbone& backbone,
                    const RunOptions& options, Pool& pool);

// `run` for each seed, put together.
RunResult over_seeds(const std::vector<uint64_t>& seeds, const RunOptions& options,
                     const std::function<RunResult(const RunOptions&)>& run);

// Opened as the table wants it, for one data set or (null) for none.
Backbone open_backbone(const PaperTable& table, const PaperBackbone& facts,
                       const std::filesystem::path& path, const PaperData* data,
                       const RunOptions& options, Pool& pool);

}  // namespace fungi::app
