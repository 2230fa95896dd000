// SPDX-License-Identifier: Apache-2.0
// Which gradients help on this data, and how much weight they deserve: every combination of weights
// of a small grid is scored on the training rows alone, each row classified by the others.
//
// Inner products add up: of the rows [w_1 x_1, w_2 x_2, ...] they are Σ w² ⟨x, y⟩, so that each
// block is multiplied once, whatever the number of combinations. There is no PCA.
//
// The best of many looks better than it is. What may be expected of the choice is therefore
// measured by choosing without a fold of the rows and scoring on that fold. Where that is no gain,
// the first block alone is chosen.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fungi/base/parallel.h"
#include "fungi/store/store.h"

namespace fungi {

struct ChooseOptions {
  std::string features = {};  // whose blocks to choose from; empty: all. The first one always stays
  std::vector<double> weights{0.25, 0.5, 1, 2};  // besides 0; against 1 of the first block
  size_t k = 20;
  size_t folds = 5;
  size_t most_rows = 8192;  // of larger stores so many are drawn: the work grows with their square
  uint64_t seed = 42;       // of that draw, and of the folds
  std::function<void(size_t done, size_t total)> progress = {};  // rows
};

struct WeightedFeatures {
  std::string features;  // "embedding+0.5*kl", as Store::select() reads it
  std::vector<double> weights = {};
  double accuracy = 0;    // share of the rows whose class the others give
  double gain = 0;        // over the first block alone
  double gain_error = 0;  // its standard error, over the rows
};

struct Choice {
  size_t rows = 0, k = 0;
  WeightedFeatures first;   // the first block alone
  WeightedFeatures equal;   // all blocks, each with weight 1
  WeightedFeatures chosen;  // the recommendation
  double expected = 0;      // accuracy of such choices on rows that had no say in them
  double expected_gain = 0, expected_error = 0;  // over the first block, and its standard error
  std::vector<WeightedFeatures> best_of_blocks;  // the best weights of each set of blocks
  std::vector<std::string> notes = {};
};

// Errors: rows without labels, blocks that are not there, fewer than two blocks, more combinations
// than anybody would wait for, fewer rows than folds.
Choice choose_features(const Store& train, const ChooseOptions& options, Pool& pool);

// Without labels: what a second draw agrees with. `draw` holds the same samples, extracted or
// projected with another seed. A neighbour that both draws find and the first block does not is
// something that the gradients know; one that a single draw finds is noise.
struct StableFeatures {
  std::string features;
  std::vector<double> weights = {};
  double agreed = 0;  // share of the neighbours that both draws find, and the first block does not
  double disputed = 0;  // share of the neighbours that one draw finds and the other does not
  double gain = 0, gain_error = 0;  // agreed - disputed; its standard error, over the rows
};

struct StableChoice {
  size_t rows = 0, k = 0;
  StableFeatures chosen;                       // the recommendation
  std::vector<StableFeatures> best_of_blocks;  // the best weights of each set of blocks
  std::vector<std::string> notes = {};
};

// Errors: as above, but for labels; stores that are not two draws of the same.
StableChoice choose_stable_features(const Store& train, const Store& draw,
                                    const ChooseOptions& options, Pool& pool);

}  // namespace fungi
