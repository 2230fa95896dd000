// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/shared_rows.h"

#include <algorithm>
#include <numeric>

#include "fungi/evaluate/positive_ranks.h"
#include "fungi/feature/feature_rows.h"
#include "fungi/search/ranks.h"

namespace fungi {

namespace {

constexpr size_t kQueryBytes = size_t{64} << 20;  // of queries that every rank holds at a time

// The run of rows of this rank, through the map; `chosen`: of these rows of the store, or of all.
ScratchMatrix load_own(const Store& store, const std::vector<StoreBlock>& blocks,
                       const std::optional<ColumnMap>& map, size_t total, const RowOptions& how,
                       Pool& pool, std::span<const size_t> chosen) {
  const auto [first, last] = own_rows(total, *how.ranks);
  if (first == last) return {};
  std::vector<size_t> mine(last - first);
  std::iota(mine.begin(), mine.end(), first);
  for (size_t& row : mine) row = chosen.empty() ? row : chosen[row];
  return load_rows(store, blocks, map, how.memory_limit, pool, mine);
}

Matrix<float> load_some(const Store& store, const std::vector<StoreBlock>& blocks,
                        const std::optional<ColumnMap>& map, std::span<const size_t> chosen,
                        size_t first, size_t count, Pool& pool) {
  Matrix<float> rows = joined_rows(store, blocks, chosen, first, count);
  if (!map) return rows;
  Matrix<float> out(count, map->output_width());
  map->transform(rows, out, pool);
  return out;
}

size_t width_of(const std::vector<StoreBlock>& blocks, const std::optional<ColumnMap>& map) {
  return map ? map->output_width() : total_width(blocks);
}

}  // namespace

SharedKnn classify_on_ranks(const Store& train, const Store& test, std::string_view features,
                            const PairLabels& labels, const ClassifyOptions& options,
                            const RowOptions& how, Pool& pool, std::span<const size_t> train_rows) {
  Comm& comm = *how.ranks;
  const std::vector<StoreBlock> blocks = train.select(features), asked = test.select(features);
  const std::optional<ColumnMap> map = fit_map(train, blocks, how, pool, train_rows);
  const size_t total = labels.train.size(), first = own_rows(total, comm).first;
  const ScratchMatrix own = load_own(train, blocks, map, total, how, pool, train_rows);
  SharedKnn out{.columns = width_of(blocks, map),
                .pca_applied = map && map->is_pca(),
                .reduced = map.has_value()};
  const auto search = [&] {
    Neighbours all{Matrix<uint32_t>(test.rows(), options.k), Matrix<double>(test.rows(), options.k)};
    const size_t step = std::max<size_t>(1, kQueryBytes / (sizeof(float) * out.columns));
    for (size_t at = 0; at < test.rows(); at += step) {
      const size_t count = std::min(step, test.rows() - at);
      const Matrix<float> queries = load_some(test, asked, map, {}, at, count, pool);
      const Neighbours some = knn_on_ranks(own, first, total, queries, options.k, pool,
                                           {.metric = options.metric}, comm);
      std::copy_n(some.index.data(), count * options.k, all.index.row(at));
      std::copy_n(some.value.data(), count * options.k, all.value.row(at));
    }
    return all;
  };
  out.score = classify({total, test.rows()}, labels.train, labels.test, options, search);
  return out;
}

ProbeRows shared_rows(const Store& store, std::string_view features,
                      const std::optional<ColumnMap>& map, Labels labels, Pool& pool) {
  std::vector<StoreBlock> blocks = store.select(features);
  const size_t width = width_of(blocks, map);
  const auto load = [&store, &map, &pool, own = std::move(blocks)](std::span<const size_t> which) {
    Matrix<float> rows;  // an empty span means all to the store
    if (!which.empty()) rows = load_some(store, own, map, which, 0, which.size(), pool);
    return rows;
  };
  return {width, labels, load};
}

SharedRanking rank_on_ranks(const Store& database, const Store& queries, std::string_view features,
                            const RankingTask& task, const RetrievalOptions& options,
                            const RowOptions& how, Pool& pool) {
  const std::vector<StoreBlock> blocks = database.select(features), asked = queries.select(features);
  const std::span<const size_t> searched = task.rows.database, asking = task.rows.queries;
  const std::optional<ColumnMap> map = fit_map(database, blocks, how, pool, searched);
  const size_t total = searched.empty() ? database.rows() : searched.size();
  const ScratchMatrix own = load_own(database, blocks, map, total, how, pool, searched);
  DatabaseShare share{own, {}, how.ranks};
  share.rows.cols = width_of(blocks, map);  // also of a rank without rows
  for (size_t rank = 0; rank < how.ranks->size(); ++rank)
    share.bounds.push_back(own_rows(total, rank, how.ranks->size()).first);
  share.bounds.push_back(total);
  Matrix<float> held;
  const QueryRows rows{asking.empty() ? queries.rows() : asking.size(),
                       [&](size_t first, size_t count) -> View<const float> {
                         held = load_some(queries, asked, map, asking, first, count, pool);
                         return held;
                       }};
  SharedRanking out{.pca_applied = map && map->is_pca(), .reduced = map.has_value()};
  for (const auto& [name, relevance] : task.relevances)
    out.scores.emplace_back(name, evaluate_retrieval(share, rows, relevance, options, pool));
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
