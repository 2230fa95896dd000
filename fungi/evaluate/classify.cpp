// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/classify.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/error.h"
#include "fungi/evaluate/metrics.h"

namespace fungi {

Votes vote(const Neighbours& neighbours, Labels train_labels, Vote kind, size_t k) {
  const Classes classes = classes_of(train_labels, "training labels");
  if (k == 0) k = neighbours.index.cols();
  if (k > neighbours.index.cols())
    fail(fmt::format("expected at most {} neighbours to vote, found k = {}",
                     neighbours.index.cols(), k),
         "k", "search for more neighbours");
  const size_t queries = neighbours.index.rows();
  Votes out;
  out.predicted.resize(queries);
  if (classes.count() == 2) out.second_share.resize(queries);
  std::vector<double> weight(classes.count());
  for (size_t i = 0; i < queries; ++i) {
    const uint32_t* index = neighbours.index.row(i);
    const double* distance = neighbours.value.row(i);
    std::fill(weight.begin(), weight.end(), 0.0);
    double total = 0;
    const bool touching = kind == Vote::distance && distance[0] == 0;
    for (size_t b = 0; b < k; ++b) {
      if (index[b] >= train_labels.size())
        fail(fmt::format("expected neighbours among {} labelled rows, found row {}",
                         train_labels.size(), index[b]),
             "neighbours", "use the labels of the rows that were searched");
      double w = 1;
      if (kind == Vote::distance) w = touching ? double(distance[b] == 0) : 1 / distance[b];
      weight[classes.index[index[b]]] += w;
      total += w;
    }
    const size_t winner = size_t(std::max_element(weight.begin(), weight.end()) - weight.begin());
    out.predicted[i] = classes.labels[winner];
    if (classes.count() == 2) out.second_share[i] = weight[1] / total;
  }
  return out;
}

KnnScore score_votes(Votes votes, Labels train_labels, Labels test_labels) {
  KnnScore score;
  score.accuracy = top1_accuracy(votes.predicted, test_labels);
  score.mean_per_class = mean_per_class_accuracy(votes.predicted, test_labels);
  if (!votes.second_share.empty()) {
    // Rows of a third class are neither: they have no place on the curve.
    const auto [first, second] = std::minmax_element(train_labels.begin(), train_labels.end());
    std::vector<bool> positive;
    std::vector<double> share;
    for (size_t i = 0; i < test_labels.size(); ++i) {
      if (test_labels[i] != *first && test_labels[i] != *second) continue;
      positive.push_back(test_labels[i] == *second);
      share.push_back(votes.second_share[i]);
    }
    const auto count = std::count(positive.begin(), positive.end(), true);
    if (count > 0 && size_t(count) < positive.size()) score.auc = area_under_curve(share, positive);
  }
  score.votes = std::move(votes);
  return score;
}

KnnScore classify(View<const float> train, Labels train_labels, View<const float> test,
                  Labels test_labels, const ClassifyOptions& options, Pool& pool) {
  return classify({train.rows, test.rows}, train_labels, test_labels, options,
                  [&] { return knn(train, test, options.k, pool, {.metric = options.metric}); });
}

KnnScore classify(const RowCounts& rows, Labels train_labels, Labels test_labels,
                  const ClassifyOptions& options, const std::function<Neighbours()>& search) {
  if (!search) fail("expected a function that searches, found none", "search");
  check_label_count(train_labels, rows.train, "training labels");
  check_label_count(test_labels, rows.test, "test labels");
  classes_of(train_labels, "training labels");
  classes_of(test_labels, "test labels");
  if (options.vote == Vote::distance && options.metric != Metric::euclidean)
    fail("expected the Euclidean metric for votes weighted by distance", "vote",
         "use uniform votes");
  return score_votes(vote(search(), train_labels, options.vote), train_labels, test_labels);
}

}  // namespace fungi
