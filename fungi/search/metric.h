// SPDX-License-Identifier: Apache-2.0
// How near two rows are, and the one total order that every search of this house obeys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"

namespace fungi {

enum class Metric {
  euclidean,      // distance; the smallest is nearest
  inner_product,  // similarity; the largest is nearest
  cosine,         // similarity; a zero row has similarity 0 to everything
};
const char* to_string(Metric metric);
Metric parse_metric(std::string_view name);  // throws Error naming the choices

// k neighbours of each query, nearest first. `value` is the Euclidean distance, or the similarity.
struct Neighbours {
  Matrix<uint32_t> index;  // [queries, k], rows of the database
  Matrix<double> value;    // [queries, k]
};

namespace search {

struct ScanKernel;

// A neighbour under the total order: smaller key first (squared distance, or minus the similarity),
// then smaller row.
struct Best {
  double key;
  uint32_t row;
  friend bool operator<(const Best& a, const Best& b) {
    return a.key != b.key ? a.key < b.key : a.row < b.row;
  }
};

// The true key of a pair, in f64 in one fixed order of operations: it depends on the two rows and
// on nothing else.
class ExactKey {
 public:
  ExactKey(Metric metric, size_t width);
  double operator()(const float* x, const float* y) const;
  // The same when the lengths are known; norm() gives them. Only the cosine looks at them.
  double operator()(const float* x, const float* y, double x_norm, double y_norm) const;
  // True only if the key of the pair is certainly greater than `key`; a third of the cost of
  // knowing it.
  bool above(double key, const float* x, const float* y, double x_norm, double y_norm) const;
  double norm(const float* x) const;  // ‖x‖, NaN or infinite exactly when x holds such a value
  double value(double key) const;     // what Neighbours reports for a key
  Metric metric() const { return metric_; }
  size_t width() const { return width_; }
  const ScanKernel& kernel() const { return *kernel_; }

 private:
  Metric metric_;
  size_t width_;
  const ScanKernel* kernel_;
};

// The k best of what is offered, as a heap in memory of the caller's.
class Selection {
 public:
  Selection(Best* heap, size_t k, size_t& size) : heap_(heap), k_(k), size_(size) {}
  bool full() const { return size_ == k_; }
  const Best& worst() const { return heap_[0]; }
  void offer(Best candidate);
  void sort();  // nearest first; no offers afterwards

 private:
  Best* heap_;
  size_t k_;
  size_t& size_;
};

// Errors that every search shares: widths, k, counts.
void check_search(View<const float> database, View<const float> queries, size_t k,
                  size_t available);
void check_neighbours(size_t k, size_t available);
// The length of each row, [rows, 1]. Error naming the first row of NaN or infinity. `what` names
// the matrix ("database", "query").
Matrix<double> finite_norms(View<const float> rows, const char* what, Pool& pool);
void require_finite(View<const float> rows, const char* what, Pool& pool);

}  // namespace search
}  // namespace fungi
