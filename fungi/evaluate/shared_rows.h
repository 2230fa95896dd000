// SPDX-License-Identifier: Apache-2.0
// Evaluations whose rows are shared by several processes (RowOptions::ranks): each loads its share
// of the rows alone. Internal to this room.
#pragma once

#include "fungi/evaluate/classify.h"
#include "fungi/evaluate/clustering.h"
#include "fungi/evaluate/pair.h"

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

}  // namespace fungi
