// SPDX-License-Identifier: Apache-2.0
#include "fungi/retrieve/search_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/error.h"
#include "fungi/search/knn.h"

namespace fungi {

Neighbours search_parts(const EachPart& each_part, View<const float> queries, size_t k,
                        Metric metric, Pool& pool) {
  struct Found {
    double value;
    uint32_t row;
  };
  std::vector<std::vector<Found>> best(queries.rows);
  const auto nearer = [&](const Found& x, const Found& y) {
    return metric == Metric::euclidean ? x.value < y.value : x.value > y.value;
  };
  each_part([&](size_t first, View<const float> part) {
    const Neighbours found = knn(part, queries, std::min(k, part.rows), pool, {.metric = metric});
    for (size_t q = 0; q < queries.rows; ++q) {
      for (size_t b = 0; b < found.index.cols(); ++b)
        best[q].push_back({found.value(q, b), uint32_t(first + found.index(q, b))});
      // Stable: equal values may hide keys that differ, whose order knn() has found, and earlier
      // parts hold smaller rows.
      std::stable_sort(best[q].begin(), best[q].end(), nearer);
      if (best[q].size() > k) best[q].resize(k);
    }
  });
  Neighbours out{Matrix<uint32_t>(queries.rows, k), Matrix<double>(queries.rows, k)};
  for (size_t q = 0; q < queries.rows; ++q)
    for (size_t b = 0; b < k; ++b)
      out.index(q, b) = best[q][b].row, out.value(q, b) = best[q][b].value;
  return out;
}

Neighbours search_store(const Store& store, const Reduction& reduction, View<const float> queries,
                        size_t k, Metric metric, Pool& pool) {
  if (k == 0 || k > store.rows())
    fail(fmt::format("expected k from 1 to {} rows, found k = {}", store.rows(), k),
         store.folder().string(), "use another k");
  const auto each_part = [&](const auto& visit) { reduction.each_part(store, pool, visit); };
  return search_parts(each_part, queries, k, metric, pool);
}

}  // namespace fungi
