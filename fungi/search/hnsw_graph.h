// SPDX-License-Identifier: Apache-2.0
// The arrays of a navigable small-world graph, as built in memory by hnsw_build.cpp and as mapped
// from a folder. Internal to this room.
#pragma once

#include <cstdint>

#include "fungi/base/matrix.h"
#include "fungi/search/index.h"

namespace fungi::search {

struct HnswGraph {
  Matrix<int32_t> links;  // [rows, 1 + 2·links]: how many, then which rows, on the lowest level
  Matrix<int64_t> upper_start;  // [rows, 1]: first line of `upper` of a row, -1 where it lives on
                                // the lowest level only
  Matrix<int32_t> upper;  // [lines, 2 + links]: the row, how many, which; a row's levels from 1 up,
                          // one line each
  Matrix<int64_t> entry;  // [2, 1]: the row where a search enters, and its level
};

// Inserts all rows in order. The distance in the graph comes from the kernel table's dot product.
HnswGraph build_hnsw_graph(View<const float> rows, const IndexOptions& options);

// What a search needs to know of a row beside its numbers: ‖x‖²/2 (Euclidean), 1/‖x‖ (cosine),
// nothing otherwise.
using Dot = float(size_t, const float*, const float*) noexcept;
float graph_term(Metric metric, const float* row, size_t width, Dot* dot);
// Grows with the distance: −x·y + terms, or −x·y · terms.
inline float graph_distance(Metric metric, float dot, float x_term, float y_term) {
  if (metric == Metric::euclidean) return x_term + y_term - dot;
  return metric == Metric::cosine ? -dot * x_term * y_term : -dot;
}

}  // namespace fungi::search
