// SPDX-License-Identifier: Apache-2.0
// Classification by the labels of the nearest training rows (SPEC 5.2). Equal votes go to the
// smallest label.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "fungi/base/parallel.h"
#include "fungi/evaluate/labels.h"
#include "fungi/search/knn.h"

namespace fungi {

enum class Vote {
  uniform,   // each neighbour counts one
  distance,  // 1 / distance; where some distances are zero, those neighbours alone count (Euclidean
             // only)
};

struct Votes {
  std::vector<int64_t> predicted;  // one label per query
  std::vector<double>
      second_share;  // share of votes for the larger label; filled when there are exactly two
};

// Counts the labels of the first k neighbours of each query; k = 0: all of them.
Votes vote(const Neighbours& neighbours, Labels train_labels, Vote kind = Vote::uniform,
           size_t k = 0);

struct KnnScore {
  double accuracy = 0, mean_per_class = 0;
  std::optional<double> auc;  // for two classes, when both are among the targets; over their rows
  Votes votes;
};

struct ClassifyOptions {
  size_t k = 20;
  Vote vote = Vote::uniform;
  Metric metric = Metric::euclidean;
};

// Neighbours, votes and figures at once. Errors of knn(), of labels, and k larger than the training
// rows.
KnnScore classify(View<const float> train, Labels train_labels, View<const float> test,
                  Labels test_labels, const ClassifyOptions& options, Pool& pool);

// The same for neighbours that another search gives, e.g. one by whole gradients (options.k of them
// by options.metric); it runs after labels and options were found good.
struct RowCounts {
  size_t train = 0, test = 0;
};
KnnScore classify(const RowCounts& rows, Labels train_labels, Labels test_labels,
                  const ClassifyOptions& options, const std::function<Neighbours()>& search);

// The figures for votes at hand.
KnnScore score_votes(Votes votes, Labels train_labels, Labels test_labels);

}  // namespace fungi
