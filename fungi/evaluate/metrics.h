// SPDX-License-Identifier: Apache-2.0
// Figures of merit for predicted labels (SPEC 5.1, 5.2).
#pragma once

#include <span>
#include <vector>

#include "fungi/evaluate/labels.h"

namespace fungi {

struct ClassAccuracy {
  int64_t label;
  size_t correct, total;  // over the rows whose target it is
};

// Share of rows predicted right. Errors: no rows, sizes that differ, a target without label.
double top1_accuracy(Labels predicted, Labels targets);

// One entry per class present in the targets, ascending.
std::vector<ClassAccuracy> accuracy_by_class(Labels predicted, Labels targets);

// Mean over the classes present in the targets of each class's share of right predictions.
// DEVIATION: the reference also counts classes that are only predicted, which makes its mean 0/0.
double mean_per_class_accuracy(Labels predicted, Labels targets);

// Area under the ROC curve: the chance that a positive scores higher than a negative, ties counting
// half. Error unless both kinds are there.
double area_under_curve(std::span<const double> scores, const std::vector<bool>& positive);

// Of a share that was found on so many rows: the binomial one.
double standard_error(double share, size_t rows);

}  // namespace fungi
