// SPDX-License-Identifier: Apache-2.0
// Features of a whole data set in memory, for data sets that are small and programs that want no
// store.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fungi/feature/extractor.h"
#include "fungi/feature/feature_rows.h"
#include "fungi/store/shards.h"

namespace fungi {
namespace {

bool all_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

}  // namespace

FeatureSet extract_to_memory(Extractor& extractor, const Dataset& dataset,
                             std::vector<StoreFailure>* failures) {
  for (size_t i = 0; i < dataset.size(); ++i)
    if (const int label = dataset.label(i), classes = int(dataset.class_names().size());
        label < -1 || (classes > 0 && label >= classes))
      fail(fmt::format("the label {} of sample '{}' has no class: there are {} classes", label,
                       dataset.id(i), classes),
           "data set");
  std::vector<size_t> everything(dataset.size());
  std::iota(everything.begin(), everything.end(), size_t{0});
  StoreRows rows = extractor.extract(dataset, everything);
  const std::vector<StoreBlock> blocks = extractor.blocks();
  const auto features =  // they stand before factors
      size_t(std::count_if(blocks.begin(), blocks.end(), is_feature));
  std::vector<uint8_t> good(dataset.size(), 1);
  for (const StoreFailure& f : rows.failures) good[f.position] = 0;
  for (size_t i = 0; i < good.size(); ++i)
    for (size_t b = 0; b < features && good[i]; ++b)
      if (!all_finite({rows.blocks[b].row(i), rows.blocks[b].cols()})) {
        good[i] = 0;
        rows.failures.push_back({i, "store",
                                 "the features of '" + blocks[b].name + "' are not finite",
                                 "leave it out, or use another precision"});
      }

  FeatureSet set;
  set.classes = dataset.class_names();
  set.blocks.assign(blocks.begin(), blocks.begin() + std::ptrdiff_t(features));
  set.features =
      Matrix<float>(size_t(std::count(good.begin(), good.end(), 1)), total_width(set.blocks));
  for (size_t i = 0; i < good.size(); ++i) {
    if (!good[i]) continue;
    float* to = set.features.row(set.ids.size());
    for (size_t b = 0; b < features; ++b)
      to = std::copy_n(rows.blocks[b].row(i), rows.blocks[b].cols(), to);
    set.ids.push_back(dataset.id(i));
    set.labels.push_back(dataset.label(i));
  }
  size_t column = 0;
  for (const StoreBlock& b : set.blocks) {
    store::unit_rows(
        {set.features.data() + column, set.features.rows(), b.width, set.features.cols()},
        float(b.weight));
    column += b.width;
  }
  if (failures) *failures = std::move(rows.failures);
  return set;
}

}  // namespace fungi
