// SPDX-License-Identifier: Apache-2.0
// Evaluations whose rows are shared by several processes (RowOptions::ranks): each loads its share
// of the rows alone. Internal to this room.
#pragma once

#include "fungi/evaluate/classify.h"
#include "fungi/evaluate/clustering.h"
#include "fungi/evaluate/linear_probe.h"
#include "fungi/evaluate/pair.h"
#include "fungi/evaluate/ranking_task.h"

namespace fungi {

struct SharedKnn {
  KnnScore score;
  size_t columns = 0;
  bool pca_applied = false, reduced = false;
};
// Collective; train_rows: of the training store, none given: all.
SharedKnn classify_on_ranks(const Store& train, const Store& test, std::string_view features,
                            const PairLabels& labels, const ClassifyOptions& options,
                            const RowOptions& how, Pool& pool, std::span<const size_t> train_rows);

// Collective.
ClusteringScore cluster_on_ranks(const Store& store, const std::vector<StoreBlock>& blocks,
                                 const std::optional<ColumnMap>& map, KMeansOptions options,
                                 const RowOptions& how, Pool& pool);

// Rows of a store as the probe asks for them. What is given has to live as long.
ProbeRows shared_rows(const Store& store, std::string_view features,
                      const std::optional<ColumnMap>& map, Labels labels, Pool& pool);

// Collective: the rows of the database are shared; queries come some at a time.
struct SharedRanking {
  bool pca_applied = false, reduced = false;
  std::vector<std::pair<std::string, RetrievalScore>> scores;
};
SharedRanking rank_on_ranks(const Store& database, const Store& queries, std::string_view features,
                            const RankingTask& task, const RetrievalOptions& options,
                            const RowOptions& how, Pool& pool);

}  // namespace fungi
