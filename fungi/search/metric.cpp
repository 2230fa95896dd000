// SPDX-License-Identifier: Apache-2.0
#include "fungi/search/metric.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fungi/base/cpu.h"
#include "fungi/search/scan_kernel.h"

namespace fungi {

const char* to_string(Metric metric) {
  switch (metric) {
    case Metric::euclidean:
      return "euclidean";
    case Metric::inner_product:
      return "inner_product";
    default:
      return "cosine";
  }
}

Metric parse_metric(std::string_view name) {
  for (Metric m : {Metric::euclidean, Metric::inner_product, Metric::cosine})
    if (name == to_string(m)) return m;
  fail(fmt::format("unknown metric '{}'", name), "metric",
       "use euclidean, inner_product or cosine");
}

namespace search {

ExactKey::ExactKey(Metric metric, size_t width)
    : metric_(metric), width_(width), kernel_(&scan_kernel(best_isa())) {}

double ExactKey::norm(const float* x) const {
  return std::sqrt(kernel_->inner_product(width_, x, x));
}

double ExactKey::operator()(const float* x, const float* y) const {
  const bool cosine = metric_ == Metric::cosine;
  return (*this)(x, y, cosine ? norm(x) : 0, cosine ? norm(y) : 0);
}

double ExactKey::operator()(const float* x, const float* y, double x_norm, double y_norm) const {
  if (metric_ == Metric::euclidean) return kernel_->squared_distance(width_, x, y);
  const double product = kernel_->inner_product(width_, x, y);
  if (metric_ == Metric::inner_product) return -product;
  const double length = x_norm * y_norm;
  return length > 0 ? -product / length : 0;
}

bool ExactKey::above(double key, const float* x, const float* y, double x_norm,
                     double y_norm) const {
  // The f32 sums err by their rounding and, where numbers are very small, by what underflows. Sums
  // that overflow say nothing: only a finite one counts.
  const double relative = (double(width_) + 8) * 0x1p-24 * 1.01,
               absolute = double(width_) * 0x1p-120;
  if (metric_ == Metric::euclidean) {
    const double rough = kernel_->rough_distance(width_, x, y);
    return std::isfinite(rough) && rough * (1 - relative) - absolute > key;
  }
  const double rough = -double(kernel_->rough_product(width_, x, y));
  const double length = x_norm * y_norm, lower = rough - relative * length - absolute;
  if (!std::isfinite(rough)) return false;
  if (metric_ == Metric::inner_product) return lower > key;
  return length > 0 && lower / length - 1e-12 > key;
}

double ExactKey::value(double key) const {
  return metric_ == Metric::euclidean ? std::sqrt(key) : 0.0 - key;
}

void Selection::offer(Best candidate) {
  if (size_ < k_) {
    heap_[size_++] = candidate;
    std::push_heap(heap_, heap_ + size_);
  } else if (candidate < heap_[0]) {
    std::pop_heap(heap_, heap_ + size_);
    heap_[size_ - 1] = candidate;
    std::push_heap(heap_, heap_ + size_);
  }
}

void Selection::sort() { std::sort_heap(heap_, heap_ + size_); }

void check_neighbours(size_t k, size_t available) {
  if (k == 0) fail("expected at least one neighbour, found k = 0", "k", "use k >= 1");
  if (k > available)
    fail(fmt::format("expected k <= {} rows, found k = {}", available, k), "k",
         "use a smaller k or more rows");
}

void check_search(View<const float> database, View<const float> queries, size_t k,
                  size_t available) {
  if (database.rows == 0 || database.cols == 0)
    fail(fmt::format("expected rows to search in, found a {} x {} matrix", database.rows,
                     database.cols),
         "database", "give at least one row of at least one column");
  if (queries.cols != database.cols)
    fail(fmt::format("expected queries of width {} like the database, found width {}",
                     database.cols, queries.cols),
         "queries", "use the same model, features and PCA for both");
  check_neighbours(k, available);
  if (database.rows > std::numeric_limits<uint32_t>::max())
    fail(fmt::format("expected at most 2^32 - 1 rows, found {}", database.rows), "database",
         "search it in parts");
}

Matrix<double> finite_norms(View<const float> rows, const char* what, Pool& pool) {
  const ExactKey key(Metric::euclidean, rows.cols);
  Matrix<double> norms(rows.rows, 1);
  pool.parallel_for(rows.rows, 1024, [&](size_t begin, size_t end, unsigned) {
    for (size_t i = begin; i < end; ++i) {
      norms(i, 0) = key.norm(rows.row(i));
      if (!std::isfinite(norms(i, 0))) fail_not_finite(what, i);
    }
  });
  return norms;
}

void require_finite(View<const float> rows, const char* what, Pool& pool) {
  finite_norms(rows, what, pool);
}

}  // namespace search
}  // namespace fungi
