// SPDX-License-Identifier: Apache-2.0
// The numbers behind the page: combinations of blocks classified, and how two of them compare
// row by row. Internal to the library.
#pragma once

#include <string>
#include <vector>

#include "fungi/evaluate/classify.h"
#include "fungi/report/report.h"
#include "fungi/store/store.h"

namespace fungi::report {

struct Result {
  std::string features;
  size_t blocks = 0;
  bool step = false;  // one of embedding, embedding+first, ...: the road to the full combination
  KnnScore score;
  Neighbours neighbours;  // of the first and the full combination only
};

struct Samples {
  std::vector<std::string> ids;
  std::vector<int64_t> labels;
};

struct Evaluation {
  Samples train, test;               // test labels in the numbering of train
  std::vector<std::string> classes;  // a name for every label
  std::vector<std::string> blocks;   // without kept factors
  std::vector<Result> results;       // fewer blocks first
  const Result& plain() const { return results.front(); }
  const Result& full() const { return results.back(); }
};

// Of the combinations that Combine::overview names.
Evaluation evaluate(const Store& train, const Store& test, const ReportOptions& options,
                    Pool& pool);

// The accuracy of each combination, and how much it changes from the first one, for each of the
// options' draws; those of the first one are there already. Error: stores of other blocks.
struct OverDraws {
  std::vector<std::vector<double>> accuracy, change;  // [combination][draw]
};
OverDraws evaluate_draws(const Evaluation& first, const ReportOptions& options, Pool& pool);

struct Change {
  size_t gained = 0, lost = 0;  // rows that only one of the two has right
  double share = 0, standard_error =
                        0;  // of the difference in accuracy; paired, because both saw the same rows
};
Change compare(Labels before, Labels after, Labels targets);

}  // namespace fungi::report
