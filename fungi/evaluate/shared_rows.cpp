// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/shared_rows.h"

#include <numeric>

#include "fungi/feature/feature_rows.h"
#include "fungi/search/ranks.h"

namespace fungi {

SharedKnn classify_on_ranks(const Store& train, const Store& test, std::string_view features,
                            const PairLabels& labels, const ClassifyOptions& options,
                            const RowOptions& how, Pool& pool, std::span<const size_t> train_rows) {
  Comm& comm = *how.ranks;
  const std::vector<StoreBlock> blocks = train.select(features);
  const std::optional<ColumnMap> map = fit_map(train, blocks, how, pool, train_rows);
  const size_t total = labels.train.size();
  const auto [first, last] = own_rows(total, comm);
  std::vector<size_t> mine(last - first);
  std::iota(mine.begin(), mine.end(), first);
  for (size_t& row : mine) row = train_rows.empty() ? row : train_rows[row];
  ScratchMatrix own;
  if (!mine.empty()) own = load_rows(train, blocks, map, how.memory_limit, pool, mine);
  const ScratchMatrix queries =
      load_rows(test, test.select(features), map, how.memory_limit, pool);
  SharedKnn out{.columns = queries.cols(), .pca_applied = map && map->is_pca(), .reduced = map.has_value()};
  out.score = classify({total, queries.rows()}, labels.train, labels.test, options, [&, at = first] {
    return knn_on_ranks(own, at, total, queries, options.k, pool, {.metric = options.metric}, comm);
  });
  return out;
}

ClusteringScore cluster_on_ranks(const Store& store, const std::vector<StoreBlock>& blocks,
                                 const std::optional<ColumnMap>& map, KMeansOptions options,
                                 const RowOptions& how, Pool& pool) {
  const Labels labels = store.labels();
  check_label_count(labels, store.rows());
  options.clusters = classes_of(labels).count();
  const auto load = [&](std::span<const size_t> rows) {
    return load_rows(store, blocks, map, how.memory_limit, pool, rows);
  };
  const size_t width = map ? map->output_width() : total_width(blocks);
  ClusteringScore score;
  score.kmeans = kmeans_on_ranks(store.rows(), width, load, options, pool, *how.ranks);
  score.overlap = cluster_overlap(score.kmeans.assignment, options.clusters, labels);
  return score;
}

}  // namespace fungi
