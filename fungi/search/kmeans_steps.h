// SPDX-License-Identifier: Apache-2.0
// What an iteration of k-means is made of, for rows that one process holds and for rows that are
// shared by several. Internal to this room.
#pragma once

#include <cstdint>
#include <vector>

#include "fungi/base/random.h"
#include "fungi/search/kmeans.h"

namespace fungi::search {

// Rows whose distances are added up together: parts of an inertia, which are added in their order.
inline constexpr size_t kInertiaBlock = 1024;
std::vector<double> inertia_parts(View<const float> rows, View<const float> centres,
                                  const std::vector<uint32_t>& assignment, Metric metric,
                                  Pool& pool);

// `count` distinct numbers below n, in random order.
std::vector<size_t> draw(size_t n, size_t count, const RandomStream& random);
// The training rows of a set that is sampled down, ascending; nothing: all are.
std::vector<size_t> training_rows(size_t rows, const KMeansOptions& options);
std::vector<size_t> first_centres(size_t rows, const KMeansOptions& options, size_t restart);

// The rows of cluster 0, of cluster 1, ..., each in their order.
struct Members {
  Members(const std::vector<uint32_t>& assignment, size_t clusters);
  std::vector<size_t> count, start;
  std::vector<uint32_t> rows;
};
inline constexpr size_t kColumnBlock = 512;  // columns of a centre summed together
// Adds the members of a cluster, one after the other, to sum [width] of the columns from `first`.
void add_members(View<const float> rows, const Members& members, size_t cluster, size_t first,
                 size_t width, double* sum);

// An empty cluster takes half of the largest one: both centres move apart a little. True if there
// was one.
bool fill_empty(std::vector<size_t>& count, Matrix<float>& centres);

void check_kmeans(size_t rows, size_t width, const KMeansOptions& options);
void report(const KMeansOptions& options, size_t iterations);

}  // namespace fungi::search
