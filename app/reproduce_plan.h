// SPDX-License-Identifier: Apache-2.0
// What tables would take on this machine: samples, forward passes, hours.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/reproduce_run.h"

namespace fungi::app {

struct Cost {
  size_t samples = 0, passes = 0;  // forward passes of all seeds
  double seconds = 0;              // 0: not known
  Cost& operator+=(const Cost& more);
  std::string text() const;  // "1 200 samples, 74 400 forward passes, about 3 min 20 s"
  std::string text_if_any() const { return passes ? text() : ""; }
};

struct PlannedPair {
  std::string backbone, data;
  bool there = true;    // otherwise by the paper's numbers of samples
  bool shared = false;  // a table before wants the same features
  Cost cost;
  std::string trouble;  // why it could not be planned
};

Cost sum_of(const std::vector<PlannedPair>& pairs);
// Of what is missing: of a checkpoint all that it is for, of a data set what it is for with the
// checkpoints that are there.
Cost cost_of(const Absent& absent, const std::vector<PlannedPair>& missing,
             const Findings& findings);

// Goes through tables one after the other.
class Planner {
 public:
  Planner(const RunOptions& options, Pool& pool) : options_(options), pool_(pool) {}

  // What is there takes a look at the data, and tries the model on a few of its samples.
  std::vector<PlannedPair> there(const PaperTable& table, const Findings& findings);
  // By the paper's numbers of samples, and how fast this machine multiplies.
  std::vector<PlannedPair> missing(const PaperTable& table, const Findings& findings);
  // Without what is shared.
  const Cost& total() const { return total_; }
  const Cost& total_missing() const { return total_missing_; }

 private:
  const Backbone& opened(const PaperTable& table, const PaperBackbone& facts,
                         const std::filesystem::path& path, const PaperData& data);
  Cost cost_of_pair(const PaperTable& table, const PaperBackbone& facts,
                    const std::filesystem::path& path, const PaperData& data,
                    const FoundData& found);
  Cost cost_of_segmentation(const PaperTable& table, const PaperBackbone& facts,
                            const std::filesystem::path& path, const PaperData& data,
                            const FoundData& found);
  double gflops();
  double seconds_per_view(const PaperBackbone& facts, const Findings& findings, bool masks);
  // Which share of its features no table before wants.
  double new_share(const PaperTable& table, const PlannedPair& pair);
  void account(const PaperTable& table, PlannedPair& pair, Cost& total);

  const RunOptions& options_;
  Pool& pool_;
  std::map<std::string, double> seconds_per_view_;  // by model and data set
  std::set<std::string> seen_;
  std::map<std::string, Cost> known_;  // by the features and parts of a data set, for one seed
  std::string opened_as_;
  std::optional<Backbone> backbone_;  // the one opened last: most tables want the same
  double gflops_ = 0;
  Cost total_, total_missing_;
};

}  // namespace fungi::app
