// SPDX-License-Identifier: Apache-2.0
// The arrays of a navigable small-world graph (Malkov & Yashunin 2016), as built in memory by
// hnsw_build.cpp and as mapped from a folder; and how to walk in one.
// Internal to this room.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <compare>
#include <cstdint>
#include <queue>
#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"
#include "fungi/search/index.h"
#include "fungi/search/scan.h"

namespace fungi::search {

struct HnswGraph {
  Matrix<int32_t> links;  // [rows, 1 + 2·links]: how many, then which rows, on the lowest level
  Matrix<int64_t> upper_start;  // [rows, 1]: first line of `upper` of a row, -1 where it lives on
                                // the lowest level only
  Matrix<int32_t> upper;  // [lines, 2 + links]: the row, how many, which; a row's levels from 1 up,
                          // one line each
  Matrix<int64_t> entry;  // [2, 1]: the row where a search enters, and its level
};

// norms [rows, 1]: the lengths of the rows. Distances come from the kernel table's dot product. The
// same graph for any pool.
HnswGraph build_hnsw_graph(View<const float> rows, View<const double> norms,
                           const IndexOptions& options, Pool& pool);

using Dot = float(size_t, const float*, const float*) noexcept;

// What a distance needs of a row beside its numbers: ‖x‖²/2 (Euclidean), 1/‖x‖ (cosine), nothing
// otherwise.
inline float graph_term(Metric metric, double norm) {
  if (metric == Metric::euclidean) return float(norm * norm / 2);
  return metric == Metric::cosine && norm > 0 ? float(1 / norm) : 0;
}
// Grows with the distance: −x·y + terms, or −x·y · terms.
inline float graph_distance(Metric metric, float dot, float x_term, float y_term) {
  if (metric == Metric::euclidean) return x_term + y_term - dot;
  return metric == Metric::cosine ? -dot * x_term * y_term : -dot;
}

// A row and its distance as one number, so that heaps compare fast: a greater distance is a greater
// number, of equal ones that of the greater row, and NaN stands behind all others.
class Near {
 public:
  Near() = default;
  Near(float distance, uint32_t row)
      : key_(uint64_t(turn(std::bit_cast<int32_t>(distance))) << 32 | row) {}
  float distance() const { return std::bit_cast<float>(turn_back(uint32_t(key_ >> 32))); }
  uint32_t row() const { return uint32_t(key_); }
  friend auto operator<=>(const Near&, const Near&) = default;

 private:
  static uint32_t turn(int32_t bits) {
    return uint32_t(bits) ^ (uint32_t(bits >> 31) | 0x80000000u);
  }
  static uint32_t turn_back(uint32_t bits) {
    return bits & 0x80000000u ? bits ^ 0x80000000u : ~bits;
  }
  uint64_t key_ = 0;
};

// What one thread keeps from walk to walk.
class Walker {
 public:
  // To the nearest row that greedy steps lead to. links(row, visit) calls visit(row) for each
  // neighbour; distance(row) is that from the goal.
  template <class Links, class Distance>
  Near descend(Near at, const Links& links, const Distance& distance) {
    for (bool moved = true; moved;) {
      moved = false;
      links(at.row(), [&](uint32_t row) {
        const Near near{distance(row), row};
        if (near < at) at = near, moved = true;
      });
    }
    return at;
  }

  // The `effort` nearest rows that a best-first walk meets, in no order; `rows` is how many there
  // are. Prefetches through distance.prefetch(row).
  template <class Links, class Distance>
  std::vector<Near> walk(Near start, size_t effort, size_t rows, const Links& links,
                         const Distance& distance) {
    if (met_.size() != rows) met_.assign(rows, 0), walks_ = 0;
    if (++walks_ == 0) met_.assign(rows, 0), walks_ = 1;
    std::priority_queue<Near, std::vector<Near>, std::greater<>> open;  // nearest first
    open.push(start);
    std::vector<Near> found{start};  // a heap, farthest first
    met_[start.row()] = walks_;
    while (!open.empty() && !(found.size() == effort && found.front() < open.top())) {
      const Near next = open.top();
      open.pop();
      fresh_.clear();
      links(next.row(), [&](uint32_t row) {
        if (met_[row] == walks_) return;
        met_[row] = walks_;
        distance.prefetch(row);
        fresh_.push_back(row);
      });
      for (const uint32_t row : fresh_) {
        const Near near{distance(row), row};
        if (found.size() == effort) {
          if (!(near < found.front())) continue;
          std::pop_heap(found.begin(), found.end());
          found.pop_back();
        }
        open.push(near);
        found.push_back(near);
        std::push_heap(found.begin(), found.end());
      }
    }
    return found;
  }

 private:
  std::vector<uint32_t> met_;  // the number of the last walk that met the row
  uint32_t walks_ = 0;
  std::vector<uint32_t> fresh_;
};

}  // namespace fungi::search
