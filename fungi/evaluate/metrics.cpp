// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fungi/base/error.h"

namespace fungi {

std::vector<ClassAccuracy> accuracy_by_class(Labels predicted, Labels targets) {
  check_label_count(predicted, targets.size(), "predictions");
  const Classes classes = classes_of(targets, "targets");
  std::vector<ClassAccuracy> out;
  for (size_t c = 0; c < classes.count(); ++c)
    out.push_back({classes.labels[c], 0, classes.sizes[c]});
  for (size_t i = 0; i < targets.size(); ++i)
    out[classes.index[i]].correct += predicted[i] == targets[i];
  return out;
}

double top1_accuracy(Labels predicted, Labels targets) {
  size_t correct = 0;
  for (const ClassAccuracy& c : accuracy_by_class(predicted, targets)) correct += c.correct;
  return double(correct) / double(targets.size());
}

double mean_per_class_accuracy(Labels predicted, Labels targets) {
  const std::vector<ClassAccuracy> classes = accuracy_by_class(predicted, targets);
  double sum = 0;
  for (const ClassAccuracy& c : classes) sum += double(c.correct) / double(c.total);
  return sum / double(classes.size());
}

double area_under_curve(std::span<const double> scores, const std::vector<bool>& positive) {
  if (scores.size() != positive.size())
    fail(fmt::format("expected one score for each of {} rows, found {}", positive.size(),
                     scores.size()),
         "scores", "");
  const size_t positives = size_t(std::count(positive.begin(), positive.end(), true));
  const size_t negatives = positive.size() - positives;
  if (positives == 0 || negatives == 0)
    fail(fmt::format("expected rows of two classes, found {} and {}", positives, negatives),
         "targets", "the area under the curve needs both");
  if (std::any_of(scores.begin(), scores.end(), [](double s) { return std::isnan(s); }))
    fail("expected numbers, found NaN", "scores", "");
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] < scores[b]; });
  double wins = 0;  // Σ over positives of the negatives below, equal ones counting half
  size_t below = 0;
  for (size_t i = 0; i < order.size();) {
    size_t end = i, tied_positive = 0;
    for (; end < order.size() && scores[order[end]] == scores[order[i]]; ++end)
      tied_positive += positive[order[end]];
    const size_t tied_negative = end - i - tied_positive;
    wins += double(tied_positive) * (double(below) + 0.5 * double(tied_negative));
    below += tied_negative;
    i = end;
  }
  return wins / (double(positives) * double(negatives));
}

double standard_error(double share, size_t rows) {
  return std::sqrt(share * (1 - share) / double(rows));
}

}  // namespace fungi
