// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/pair.h"

#include "fungi/evaluate/labels.h"
#include "fungi/feature/comparable.h"
#include "fungi/feature/feature_rows.h"

namespace fungi {

void require_comparable(const Store& train, const Store& test, std::string_view features,
                        bool projected) {
  require_comparable(train.manifest(), test.manifest(), names_of(train.select(features)), projected,
                     test.folder().string(),
                     "extract it with `like=" + train.folder().string() + "`");
}

PairLabels pair_labels(const Store& train, const Store& test, std::span<const size_t> chosen) {
  require_labels(train);
  require_labels(test);
  PairLabels labels{train.labels(), align_labels(train.classes(), test)};
  if (!chosen.empty()) labels.train = gather(train.labels(), {chosen.begin(), chosen.end()});
  return labels;
}

std::optional<ColumnMap> fit_map(const Store& store, const std::vector<StoreBlock>& blocks,
                                 const RowOptions& o, Pool& pool, std::span<const size_t> rows) {
  if (o.reduce == Reduce::pca) {
    std::optional<Pca> pca = fit_pca(store, blocks, o.pca, pool, rows, o.ranks);
    return pca ? std::optional<ColumnMap>(std::move(*pca)) : std::nullopt;
  }
  const size_t width = total_width(blocks);
  if (!ColumnMap::applies(o.pca, width)) return std::nullopt;
  return ColumnMap::random(o.reduce, o.pca, width, o.seed);
}

PairRows load_pair(const Store& train, const Store& test, std::string_view features,
                   const RowOptions& options, Pool& pool, std::span<const size_t> train_rows,
                   std::span<const size_t> test_rows) {
  require_comparable(train, test, features, true);
  const std::vector<StoreBlock> blocks = train.select(features);
  const std::optional<ColumnMap> map = fit_map(train, blocks, options, pool, train_rows);
  return {load_rows(train, blocks, map, options.memory_limit, pool, train_rows),
          load_rows(test, test.select(features), map, options.memory_limit, pool, test_rows),
          map && map->is_pca(), map.has_value()};
}

}  // namespace fungi
