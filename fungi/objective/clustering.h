// SPDX-License-Identifier: Apache-2.0
// The clustering step of DeepCluster (SPEC 2.5): k-means by dot product with centroids that are
// plain means. Internal to this room.
#pragma once

#include <cstdint>
#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"

namespace fungi {

// Row of `centroids` with the largest dot product, per point; the lower index wins a tie.
std::vector<uint32_t> assign_to_centroids(View<const float> points, View<const float> centroids,
                                          Pool& pool);

// Starts from the points that `order` names first (k of them), then `iterations` times: assign,
// replace each centroid by the mean of its members. A centroid without members stays. Deterministic
// for any pool.
Matrix<float> cluster_points(View<const float> points, size_t k, size_t iterations,
                             const std::vector<uint32_t>& order, Pool& pool);

}  // namespace fungi
