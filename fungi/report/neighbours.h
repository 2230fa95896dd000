// SPDX-License-Identifier: Apache-2.0
// Test samples with their nearest training samples, by the first block and by the full
// combination. Internal to this room.
#pragma once

#include <string>
#include <vector>

#include "fungi/report/evaluation.h"

namespace fungi::report {

enum class Kind {
  gained,
  lost,
  right,
  wrong
};  // right only with gradients, only without, with both, with neither

struct Query {
  size_t row = 0;
  Kind kind = Kind::gained;
};

// Where the two disagree is where the gradients matter: half of the queries gained, half lost, as
// far as there are any; the rest from rows on which they agree. Evenly spread over the test rows,
// so that all classes have a chance.
std::vector<Query> choose_queries(const Evaluation& evaluation, size_t count);

// How many rows of the store have no picture, naming the first; empty where all have one. Error
// where most have none: it is another data set.
std::string note_missing_pictures(const Store& store, const Dataset& pictures);

std::string neighbour_cards(const Evaluation& evaluation, const Store& train,
                            const Dataset& train_pictures, const Dataset& test_pictures,
                            const ReportOptions& options);

}  // namespace fungi::report
