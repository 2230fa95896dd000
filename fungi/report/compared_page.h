// SPDX-License-Identifier: Apache-2.0
// One page of numbers that somebody has printed beside ours.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace fungi {

struct ComparedNumber {
  std::string backbone, data, setting, features;
  std::string unit = "percent";                                // or "per second"
  std::optional<double> paper, ours;                           // none: not printed, not computed
  std::optional<double> paper_deviation = {}, deviation = {};  // over seeds
};

// How a table is drawn.
enum class ComparedFigure {
  dots,           // ours and the paper's, by features
  over_settings,  // lines over the settings, one of each features: "5-shot"
  over_features,  // lines over the features, one of each setting: "simclr_4", "simclr_9"
  layers,         // lines over the blocks of a network: "kl@blocks.3.mlp.fc2"
  pairs,          // a square of features by features: "kl+dino", "kl~dino"
  classes,        // by class, which is the setting: what the last features change of the first
};

// What would have to be there; what it would cost to compute, if that is known.
struct ComparedMissing {
  std::string what, reason, cost;
};

struct ComparedTable {
  std::string name, title;
  ComparedFigure figure = ComparedFigure::dots;
  std::vector<ComparedNumber> numbers = {};
  std::vector<ComparedMissing> missing = {};
  std::string planned = {};  // what it costs to compute what is there, where this is a plan
  std::string cost = {};     // of all that is missing
  std::vector<std::string> notes = {};
};

struct ComparedPage {
  std::string title;
  // These stand first: that it is a rehearsal, or another model than the printed numbers are of.
  std::vector<std::string> warnings = {};
  std::string planned = {}, cost = {};  // as of a table, in all of them
  std::vector<ComparedTable> tables = {};
};

// A self-contained HTML page: a table and figures (SVG) of each that has numbers of ours; the
// others, and what is missing, are folded away.
std::string compared_page(const ComparedPage& page);

}  // namespace fungi
