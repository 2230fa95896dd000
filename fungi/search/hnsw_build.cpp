// SPDX-License-Identifier: Apache-2.0
// Builds the graph with hnswlib; the only file that knows it. Its memory is read into our own
// arrays afterwards.
#include <cmath>
#include <cstring>

#include "fungi/base/error.h"
#include "fungi/kernel/kernel.h"
#include "fungi/search/hnsw_graph.h"

#if __has_include(<hnswlib/hnswlib.h>)
#define FUNGI_HAS_HNSWLIB 1
// Distances are our own; and its manual fetching ahead reads one link behind a full list.
#define NO_MANUAL_VECTORIZATION
#include <hnswlib/hnswlib.h>
#endif

namespace fungi::search {

float graph_term(Metric metric, const float* row, size_t width, Dot* dot) {
  if (metric == Metric::inner_product) return 0;
  const float square = dot(width, row, row);
  if (metric == Metric::euclidean) return square / 2;
  return square > 0 ? 1 / std::sqrt(square) : 0;
}

#ifdef FUNGI_HAS_HNSWLIB

namespace {

constexpr size_t kRowsPerReport = 64;

// A row's numbers followed by its term.
struct Space final : hnswlib::SpaceInterface<float> {
  Space(Metric metric_, size_t width_)
      : metric(metric_), width(width_), dot(kernel::f32_kernel().dot) {}
  size_t get_data_size() override { return (width + 1) * sizeof(float); }
  hnswlib::DISTFUNC<float> get_dist_func() override { return distance; }
  void* get_dist_func_param() override { return this; }
  static float distance(const void* a, const void* b, const void* space) {
    const auto& s = *static_cast<const Space*>(space);
    const auto *x = static_cast<const float*>(a), *y = static_cast<const float*>(b);
    return graph_distance(s.metric, s.dot(s.width, x, y), x[s.width], y[s.width]);
  }
  Metric metric;
  size_t width;
  Dot* dot;
};

}  // namespace

HnswGraph build_hnsw_graph(View<const float> rows, const IndexOptions& options) {
  const size_t n = rows.rows, most = options.links;
  Space space(options.metric, rows.cols);
  hnswlib::HierarchicalNSW<float> graph(&space, n, most, options.build_effort, options.seed);
  std::vector<float> point(rows.cols + 1);
  for (size_t i = 0; i < n; ++i) {
    if (options.progress && i % kRowsPerReport == 0) options.progress(i, n);
    std::memcpy(point.data(), rows.row(i), rows.cols * sizeof(float));
    point[rows.cols] = graph_term(options.metric, rows.row(i), rows.cols, space.dot);
    graph.addPoint(point.data(), i);
  }
  if (options.progress) options.progress(n, n);
  // Rows went in one by one from zero, so that the graph's own numbers are the row numbers.
  HnswGraph out{Matrix<int32_t>(n, 1 + 2 * most), Matrix<int64_t>(n, 1), {}, Matrix<int64_t>(2, 1)};
  size_t lines = 0;
  for (size_t i = 0; i < n; ++i) lines += size_t(graph.element_levels_[i]);
  out.upper = Matrix<int32_t>(lines, 2 + most);
  const auto copy = [&](hnswlib::linklistsizeint* list, int32_t* to) {
    const size_t count = graph.getListCount(list);
    *to++ = int32_t(count);
    std::memcpy(to, list + 1, count * sizeof(int32_t));
  };
  size_t line = 0;
  for (size_t i = 0; i < n; ++i) {
    const auto id = hnswlib::tableint(i);
    copy(graph.get_linklist0(id), out.links.row(i));
    const int level = graph.element_levels_[i];
    out.upper_start(i, 0) = level > 0 ? int64_t(line) : -1;
    for (int l = 1; l <= level; ++l, ++line) {
      out.upper(line, 0) = int32_t(i);
      copy(graph.get_linklist(id, l), out.upper.row(line) + 1);
    }
  }
  out.entry(0, 0) = int64_t(graph.enterpoint_node_);
  out.entry(1, 0) = int64_t(graph.maxlevel_);
  return out;
}

#else

HnswGraph build_hnsw_graph(View<const float>, const IndexOptions&) {
  fail("this program was built without hnswlib", "index",
       "install libhnswlib-dev and build again, or use ivf");
}

#endif

}  // namespace fungi::search
