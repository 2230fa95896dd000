// SPDX-License-Identifier: Apache-2.0
// What the evaluation verbs share: which blocks of a store to combine, and the rows of a training and a test store made ready.
#pragma once

#include <string>
#include <vector>

#include "app/cli.h"
#include "fungi/evaluate/labels.h"
#include "fungi/feature/store.h"

namespace fungi::app {

struct FeatureOptions {
  std::string features;          // "embedding+kl"; empty: embedding, then one block more at a time
  bool all_combinations = false;
  size_t pca = 512;              // 0: never
  bool exact_gradients = false;  // compare whole gradients by their kept factors
  unsigned threads = 0;
  bool json = false;

  void add_to(CLI::App& verb, bool with_pca = true);
  void add_exact_gradients(CLI::App& verb);  // for verbs that need neighbours only; after add_to
  unsigned thread_count() const { return threads ? threads : default_threads(); }
  // Each as "embedding+kl+..."; blocks of kept factors are left out unless named.
  std::vector<std::string> combinations(const Store& store) const;
};

// Training and test rows with labels in one numbering.
struct TrainTest {
  FeatureSet train, test;
};
TrainTest load_pair(const Store& train, const Store& test, const std::string& features);
// The same without features, for --exact-gradients.
TrainTest load_pair_labels(const Store& train, const Store& test);

// Fits on the training rows when the rule of Pca::applies says so; they, and the test rows if there are any, are replaced.
// Returns whether it did.
bool apply_pca(Matrix<float>& train, Matrix<float>* test, size_t dim, Pool& pool);

// A table of strings with aligned columns; numbers right.
void print_table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows);
std::string percent(double share);  // "71.27"

}  // namespace fungi::app
