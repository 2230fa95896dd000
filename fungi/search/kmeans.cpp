// SPDX-License-Identifier: Apache-2.0
#include "fungi/search/kmeans.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "fungi/base/cpu.h"
#include "fungi/base/error.h"
#include "fungi/base/random.h"
#include "fungi/search/kmeans_steps.h"
#include "fungi/search/metric.h"
#include "fungi/search/nearest_centre.h"
#include "fungi/search/scan_kernel.h"

namespace fungi {
namespace search {
namespace {

constexpr size_t kAhead = 2;           // rows fetched before they are added
constexpr double kSplit = 1.0 / 1024;  // how far the two halves of a split cluster move apart

}  // namespace

void check_kmeans(size_t rows, size_t width, const KMeansOptions& o) {
  if (o.clusters == 0) fail("expected at least one cluster, found 0", "clusters", "");
  if (width == 0 || rows < o.clusters)
    fail(fmt::format("expected at least {} rows for {} clusters, found {} of width {}", o.clusters,
                     o.clusters, rows, width),
         "features", "use fewer clusters or more rows");
  if (o.initial.data && (o.initial.rows != o.clusters || o.initial.cols != width))
    fail(fmt::format("expected {} x {} initial centres, found {} x {}", o.clusters, width,
                     o.initial.rows, o.initial.cols),
         "initial centres", "");
}

std::vector<size_t> draw(size_t n, size_t count, const RandomStream& random) {
  std::vector<size_t> all(n);
  std::iota(all.begin(), all.end(), size_t{0});
  for (size_t i = 0; i < count; ++i) std::swap(all[i], all[i + random.bits(i) % (n - i)]);
  all.resize(count);
  return all;
}

std::vector<size_t> training_rows(size_t rows, const KMeansOptions& options) {
  const size_t limit = options.rows_per_cluster * options.clusters;
  if (limit == 0 || rows <= limit) return {};
  std::vector<size_t> which = draw(rows, limit, RandomStream(options.seed, "k-means sample"));
  std::sort(which.begin(), which.end());
  return which;
}

std::vector<size_t> first_centres(size_t rows, const KMeansOptions& o, size_t restart) {
  return draw(rows, o.clusters, RandomStream(o.seed, "k-means centres", restart));
}

std::vector<double> inertia_parts(View<const float> rows, View<const float> centres,
                                  const std::vector<uint32_t>& assignment, Metric metric,
                                  Pool& pool) {
  const ExactKey key(metric, rows.cols);
  std::vector<double> parts((rows.rows + kInertiaBlock - 1) / kInertiaBlock, 0.0);
  pool.parallel_for(rows.rows, kInertiaBlock, [&](size_t begin, size_t end, unsigned) {
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += key(rows.row(i), centres.row(assignment[i]));
    parts[begin / kInertiaBlock] = sum;
  });
  return parts;
}

Members::Members(const std::vector<uint32_t>& assignment, size_t clusters)
    : count(clusters, 0), start(clusters + 1, 0), rows(assignment.size()) {
  for (uint32_t a : assignment) ++count[a];
  std::partial_sum(count.begin(), count.end(), start.begin() + 1);
  std::vector<size_t> next = start;
  for (size_t i = 0; i < rows.size(); ++i) rows[next[assignment[i]]++] = uint32_t(i);
}

void add_members(View<const float> rows, const Members& members, size_t j, size_t first,
                 size_t width, double* sum) {
  const ScanKernel& kernel = scan_kernel(best_isa());
  const size_t end = members.start[j + 1];
  for (size_t m = members.start[j]; m < end; ++m) {
    if (m + kAhead < end) prefetch(rows.row(members.rows[m + kAhead]) + first, width);
    kernel.accumulate(width, rows.row(members.rows[m]) + first, sum);
  }
}

bool fill_empty(std::vector<size_t>& count, Matrix<float>& centres) {
  bool split = false;
  for (size_t empty = 0; empty < count.size(); ++empty) {
    if (count[empty] > 0) continue;
    split = true;
    const size_t largest = size_t(std::max_element(count.begin(), count.end()) - count.begin());
    for (size_t c = 0; c < centres.cols(); ++c) {
      const float value = centres(largest, c);
      const float up = float(value * (1 + kSplit)), down = float(value * (1 - kSplit));
      centres(empty, c) = c % 2 == 0 ? up : down;
      centres(largest, c) = c % 2 == 0 ? down : up;
    }
    count[empty] = count[largest] / 2;
    count[largest] -= count[empty];
  }
  return split;
}

void report(const KMeansOptions& o, size_t iterations) {
  if (o.progress) o.progress(iterations, std::max<size_t>(o.restarts, 1) * o.iterations);
}

}  // namespace search

namespace {

using search::report;

double inertia_of(View<const float> rows, View<const float> centres,
                  const std::vector<uint32_t>& assignment, Metric metric, Pool& pool) {
  const auto parts = search::inertia_parts(rows, centres, assignment, metric, pool);
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

// Centres become the means of their rows, each summed by one thread in the order of the rows.
std::vector<size_t> move_centres(View<const float> rows, const std::vector<uint32_t>& assignment,
                                 Matrix<float>& centres, Pool& pool) {
  const search::Members members(assignment, centres.rows());
  const size_t parts = (rows.cols + search::kColumnBlock - 1) / search::kColumnBlock;
  pool.parallel_for(centres.rows() * parts, 1, [&](size_t task, size_t, unsigned) {
    const size_t j = task / parts, first = task % parts * search::kColumnBlock;
    const size_t width = std::min(search::kColumnBlock, rows.cols - first);
    if (members.count[j] == 0) return;
    std::vector<double> sum(width, 0.0);
    search::add_members(rows, members, j, first, width, sum.data());
    for (size_t c = 0; c < width; ++c)
      centres(j, first + c) = float(sum[c] / double(members.count[j]));
  });
  return members.count;
}

KMeans run(View<const float> rows, search::NearestCentre& nearest, const KMeansOptions& o,
           size_t restart, Pool& pool) {
  KMeans result;
  if (o.initial.data) {
    result.centres = copy_of(o.initial);
  } else {
    result.centres = gather(rows, search::first_centres(rows.rows, o, restart));
  }
  result.assignment = nearest.assign(result.centres, pool);
  bool split = false;
  while (result.iterations < o.iterations) {
    ++result.iterations;
    std::vector<size_t> count = move_centres(rows, result.assignment, result.centres, pool);
    split = o.empty == EmptyClusters::split && search::fill_empty(count, result.centres);
    const std::vector<uint32_t>& next = nearest.assign(result.centres, pool);
    const bool settled = next == result.assignment;
    result.assignment = next;
    report(o, restart * o.iterations + (settled ? o.iterations : result.iterations));
    if (settled) break;
  }
  if (split) {  // a centre that moved aside to no avail goes back to the mean of its rows
    move_centres(rows, result.assignment, result.centres, pool);
    result.assignment = nearest.assign(result.centres, pool);
  }
  result.inertia = inertia_of(rows, result.centres, result.assignment, o.metric, pool);
  return result;
}

}  // namespace

std::vector<uint32_t> assign_to_centres(View<const float> rows, View<const float> centres,
                                        Pool& pool, Metric metric) {
  if (centres.rows == 0 || centres.cols != rows.cols)
    fail(fmt::format("expected centres of width {} like the rows, found a {} x {} matrix",
                     rows.cols, centres.rows, centres.cols),
         "centres", "give at least one, of the same features");
  return search::NearestCentre(rows, metric, pool).assign(centres, pool);
}

KMeans kmeans(View<const float> rows, const KMeansOptions& options, Pool& pool) {
  search::check_kmeans(rows.rows, rows.cols, options);
  search::require_finite(rows, "features", pool);
  if (options.initial.data) search::require_finite(options.initial, "initial centres", pool);
  View<const float> training = rows;
  Matrix<float> sample;
  if (const std::vector<size_t> which = search::training_rows(rows.rows, options); !which.empty()) {
    sample = gather(rows, which);
    training = sample;
  }
  KMeans best;
  report(options, 0);
  search::NearestCentre nearest(training, options.metric, pool);
  for (size_t restart = 0; restart < std::max<size_t>(options.restarts, 1); ++restart) {
    KMeans result = run(training, nearest, options, restart, pool);
    if (restart == 0 || result.inertia < best.inertia) best = std::move(result);
  }
  best.trained_rows = training.rows;
  if (training.data != rows.data) {
    best.assignment = assign_to_centres(rows, best.centres, pool, options.metric);
    best.inertia = inertia_of(rows, best.centres, best.assignment, options.metric, pool);
  }
  return best;
}

}  // namespace fungi
