// SPDX-License-Identifier: Apache-2.0
// What the evaluation verbs share: which blocks of a store to combine, and the rows of a training
// and a test store made ready.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/cli.h"
#include "fungi/base/scratch_matrix.h"
#include "fungi/evaluate/ground_truth.h"
#include "fungi/evaluate/labels.h"
#include "fungi/store/store.h"

namespace fungi::app {

struct FeatureOptions {
  std::string features;  // "embedding+kl"; empty: embedding, then one block more at a time
  bool all_combinations = false;
  size_t pca = 512;  // 0: never
  MemoryOption memory;
  bool exact_gradients = false;  // compare whole gradients by their kept factors
  ThreadsOption threads;
  bool json = false;

  void add_to(CLI::App& verb, bool with_pca = true);
  void add_exact_gradients(CLI::App& verb);  // for verbs that need neighbours only; after add_to
  size_t memory_limit() const { return memory.bytes ? memory.bytes : default_memory_limit(); }
  // Each as "embedding+kl+..."; blocks of kept factors are left out unless named.
  std::vector<std::string> combinations(const Store& store) const;
};

// Error when `out` would lie in the store, or in any other or an index: they hold nothing but their
// own files.
void require_outside(const Store& store, const std::filesystem::path& out);

struct LoadedRows {
  std::vector<std::string> ids;
  std::vector<int64_t> labels;
  std::vector<std::string> classes;
  ScratchMatrix features;
};

// One store, through a PCA fitted on it where Pca::applies says so.
LoadedRows load_rows(const Store& store, const std::string& features, const FeatureOptions& options,
                     Pool& pool, bool& shrunk);

// Training and test rows with labels in one numbering.
struct TrainTest {
  LoadedRows train, test;
  bool shrunk = false;  // by a PCA fitted on the training rows
};
// `chosen`: rows of the training store; none given: all.
TrainTest load_pair(const Store& train, const Store& test, const std::string& features,
                    const FeatureOptions& options, Pool& pool,
                    const std::vector<size_t>& chosen = {});
// The same without features, for --exact-gradients; require_comparable() is the caller's.
TrainTest load_pair_labels(const Store& train, const Store& test,
                           const std::vector<size_t>& chosen = {});

// The rows of a retrieval, through a PCA fitted on those of the database. `chosen`: rows of the two
// stores; none given: all.
struct RankedRows {
  ScratchMatrix database, queries;
  bool shrunk = false;
};
RankedRows load_ranked(const Store& database, const Store& queries, const std::string& features,
                       const RevisitedRows& chosen, const FeatureOptions& options, Pool& pool);

// A note on stderr when test rows are of classes that the training rows lack: they count as errors.
void say_unknown_classes(Labels train, Labels test);

// Error unless rows of these features ("embedding+kl") can be compared; whole gradients are not
// projected.
void require_comparable(const Store& train, const Store& test, const std::string& features,
                        bool projected);

// A table of strings with aligned columns; numbers right.
void print_table(const std::vector<std::string>& head,
                 const std::vector<std::vector<std::string>>& rows);
std::string percent(double share);  // "71.27"

}  // namespace fungi::app
