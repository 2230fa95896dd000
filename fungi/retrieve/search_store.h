// SPDX-License-Identifier: Apache-2.0
// Internal to the library.
#pragma once

#include <functional>

#include "fungi/feature/reduction.h"
#include "fungi/search/metric.h"

namespace fungi {

// Rows in parts, in order: visit(first row, vectors).
using EachPart =
    std::function<void(const std::function<void(size_t first, View<const float> part)>& visit)>;

// The k nearest of `rows` rows that come in parts, exactly. Equal values by smaller row.
// 0 < k <= rows.
Neighbours search_parts(const EachPart& each_part, View<const float> queries, size_t k,
                        Metric metric, Pool& pool);

// The same of the rows of a store itself, which is read in parts and may be larger than memory.
Neighbours search_store(const Store& store, const Reduction& reduction, View<const float> queries,
                        size_t k, Metric metric, Pool& pool);

}  // namespace fungi
