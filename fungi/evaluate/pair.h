// SPDX-License-Identifier: Apache-2.0
// Two stores side by side, one that was extracted like the other: their rows in the same columns,
// their labels in one numbering.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "fungi/base/parallel.h"
#include "fungi/base/scratch_matrix.h"
#include "fungi/feature/column_map.h"
#include "fungi/store/store.h"

namespace fungi {

class Comm;

// Error unless rows of these features ("embedding+kl") can be compared. projected: as they are
// stored; whole gradients, which are compared by their factors, are not.
void require_comparable(const Store& train, const Store& test, std::string_view features,
                        bool projected);

// In the numbering of the training store. `chosen`: rows of it; none given: all. Errors: a row
// without a label, a class that the training store lacks.
struct PairLabels {
  std::vector<int64_t> train, test;
};
PairLabels pair_labels(const Store& train, const Store& test, std::span<const size_t> chosen = {});

struct RowOptions {
  size_t pca = 512;  // columns that are left, where Pca::applies or ColumnMap::applies says so; 0:
                     // all
  size_t memory_limit = default_memory_limit();  // rows beyond it go to a scratch file
  Reduce reduce = Reduce::pca;
  uint64_t seed = 42;  // of a random reduction
  Comm* ranks = nullptr;  // whole evaluations are collective then, and work and rows are shared
};

// A PCA is fitted on these rows of the store (none given: all).
std::optional<ColumnMap> fit_map(const Store& store, const std::vector<StoreBlock>& blocks,
                                 const RowOptions& options, Pool& pool,
                                 std::span<const size_t> rows = {});

// Shrunk, by what fit_map() says of the training rows. Rows by number; none given: all. Errors:
// require_comparable().
struct PairRows {
  ScratchMatrix train, test;
  bool pca_applied = false;
  bool reduced = false;  // by a PCA or otherwise
};
PairRows load_pair(const Store& train, const Store& test, std::string_view features,
                   const RowOptions& options, Pool& pool, std::span<const size_t> train_rows = {},
                   std::span<const size_t> test_rows = {});

}  // namespace fungi
