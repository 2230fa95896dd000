// SPDX-License-Identifier: Apache-2.0
// The driver of the exact search: blocks, the running k best, and the choice of the scan.
#include "fungi/search/knn.h"

#include <algorithm>

#include "fungi/search/knn_block.h"

namespace fungi {
namespace {

// Below this many queries preparing the database costs more than it saves.
constexpr size_t kFewQueries = 12;

}  // namespace

Neighbours knn(View<const float> database, View<const float> queries, size_t k, Pool& pool,
               const KnnOptions& options, KnnWork* work) {
  const size_t available = database.rows - (options.skip_same_row && database.rows > 0 ? 1 : 0);
  search::check_search(database, queries, k, available);
  if (options.query_block == 0 || options.database_block == 0)
    fail("expected blocks of at least one row, found 0", "KnnOptions", "leave the defaults");
  Neighbours out{Matrix<uint32_t>(queries.rows, k), Matrix<double>(queries.rows, k)};
  KnnWork total;
  for (size_t first = 0; first < queries.rows; first += options.query_block) {
    const size_t count = std::min(options.query_block, queries.rows - first);
    search::Block block(database, queries.slice(first, count), first, k, options);
    if (options.scan == ScanKind::automatic && count < kFewQueries)
      block.run_direct(pool, total);
    else
      block.run_scan(pool, total);
    block.write(out);
  }
  if (work) *work = total;
  return out;
}

}  // namespace fungi
