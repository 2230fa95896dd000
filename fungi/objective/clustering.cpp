// SPDX-License-Identifier: Apache-2.0
#include "fungi/objective/clustering.h"

#include <algorithm>

#include "fungi/objective/head.h"

namespace fungi {

std::vector<uint32_t> assign_to_centroids(View<const float> points, View<const float> centroids,
                                          Pool& pool) {
  const kernel::PackedMatrix packed = kernel::pack(objective_kernel(), centroids);
  std::vector<uint32_t> nearest(points.rows);
  pool.parallel_for(points.rows, 64, [&](size_t begin, size_t end, unsigned) {
    Matrix<float> scores(end - begin, centroids.rows);
    multiply(points.slice(begin, end - begin), packed, nullptr, scores);
    for (size_t i = begin; i < end; ++i) {
      const float* row = scores.row(i - begin);
      nearest[i] = static_cast<uint32_t>(std::max_element(row, row + centroids.rows) - row);
    }
  });
  return nearest;
}

Matrix<float> cluster_points(View<const float> points, size_t k, size_t iterations,
                             const std::vector<uint32_t>& order, Pool& pool) {
  FUNGI_ASSERT(k > 0 && k <= points.rows && order.size() >= k);
  const size_t width = points.cols;
  Matrix<float> centroids(k, width);
  for (size_t c = 0; c < k; ++c) std::copy_n(points.row(order[c]), width, centroids.row(c));
  for (size_t round = 0; round < iterations; ++round) {
    const std::vector<uint32_t> nearest = assign_to_centroids(points, centroids, pool);
    Matrix<double> sum(k, width);
    std::vector<size_t> members(k, 0);
    for (size_t i = 0; i < points.rows; ++i) {
      ++members[nearest[i]];
      for (size_t j = 0; j < width; ++j) sum(nearest[i], j) += points(i, j);
    }
    for (size_t c = 0; c < k; ++c)
      for (size_t j = 0; j < width && members[c] > 0; ++j)
        centroids(c, j) = static_cast<float>(sum(c, j) / static_cast<double>(members[c]));
  }
  return centroids;
}

}  // namespace fungi
