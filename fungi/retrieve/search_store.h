// SPDX-License-Identifier: Apache-2.0
// Internal to the library.
#pragma once

#include "fungi/feature/reduction.h"
#include "fungi/search/metric.h"

namespace fungi {

// The k nearest rows of a store itself, exactly; it is read in parts and may be larger than memory.
// Equal values by smaller row.
Neighbours search_store(const Store& store, const Reduction& reduction, View<const float> queries,
                        size_t k, Metric metric, Pool& pool);

}  // namespace fungi
