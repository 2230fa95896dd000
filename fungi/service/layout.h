// SPDX-License-Identifier: Apache-2.0
// Rows as points of a plane, both coordinates from -1 to 1. The same for any pool.
// Internal to this room.
#pragma once

#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"
#include "fungi/search/metric.h"

namespace fungi::service {

// The first two principal components.
Matrix<float> principal_plane(View<const float> rows, Pool& pool);

// Rows near those that they are near to: begins with `plane`, pulls neighbours together and pushes
// others apart, as UMAP does. For some thousands of rows; at least 3.
Matrix<float> neighbour_plane(View<const float> rows, View<const float> plane, Metric metric,
                              Pool& pool);

}  // namespace fungi::service
