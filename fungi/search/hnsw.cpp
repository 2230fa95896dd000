// SPDX-License-Identifier: Apache-2.0
// Searching the graph of hnsw_graph.h (Malkov & Yashunin 2016): greedy from the top level down,
// then a best-first walk on the lowest level; what it met is ordered by exact keys. Works on mapped
// arrays, reading only what it visits; every number from a file is checked before use.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <queue>

#include "fungi/base/error.h"
#include "fungi/kernel/kernel.h"
#include "fungi/search/hnsw_graph.h"
#include "fungi/search/index_body.h"

namespace fungi::search {
namespace {

using Path = std::filesystem::path;

struct Near {
  float distance;
  uint32_t row;
  friend bool operator<(const Near& a, const Near& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.row < b.row;
  }
  friend bool operator>(const Near& a, const Near& b) { return b < a; }
};

struct HnswBody final : Index::Body {
  HnswBody(Metric metric_, Rows rows_, Numbers<int32_t> links_, Numbers<int64_t> start,
           Numbers<int32_t> upper_, Numbers<int64_t> entry_)
      : Body(IndexKind::hnsw, metric_),
        rows(std::move(rows_)),
        links(std::move(links_)),
        upper_start(std::move(start)),
        upper(std::move(upper_)),
        entry(std::move(entry_)) {}

  View<const float> vectors() const override { return rows.view(); }

  void save_arrays(const Path& folder) const override {
    write_npy(folder / "links.npy", npy_array(links.view()));
    write_npy(folder / "upper_start.npy", column(upper_start));
    write_npy(folder / "upper.npy", npy_array(upper.view()));
    write_npy(folder / "entry.npy", column(entry));
  }

  Neighbours search(View<const float> queries, size_t k, Pool& pool,
                    const SearchOptions& options) const override {
    const size_t effort =
        std::max(k, options.effort ? options.effort : std::max<size_t>(64, 4 * k));
    const ExactKey exact(metric, queries.cols);
    Neighbours out{Matrix<uint32_t>(queries.rows, k), Matrix<double>(queries.rows, k)};
    std::vector<std::vector<uint32_t>> seen(
        pool.threads());  // the number of the last query that met the row
    pool.parallel_for(queries.rows, 1, [&](size_t q, size_t, unsigned worker) {
      if (seen[worker].empty()) seen[worker].assign(rows.view().rows, 0);
      const float* query = queries.row(q);
      if (!std::isfinite(exact.norm(query))) fail_not_finite("queries", q);
      std::vector<Best> best;
      for (const Near& near : walk(query, exact, effort, uint32_t(q + 1), seen[worker]))
        best.push_back({exact(query, rows.view().row(near.row)), near.row});
      if (best.size() < k)
        fail(fmt::format("expected {} neighbours, the graph reaches {} rows", k, best.size()),
             "index", "ask for fewer, or use another kind of index");
      std::sort(best.begin(), best.end());
      for (size_t b = 0; b < k; ++b)
        out.index(q, b) = best[b].row, out.value(q, b) = exact.value(best[b].key);
    });
    return out;
  }

 private:
  struct Distance {
    float operator()(uint32_t row) const {
      const float* y = rows.row(row);
      // The row's term costs a second pass over its numbers, which are in the cache by then.
      const float distance = graph_distance(metric, dot(rows.cols, query, y), term,
                                            graph_term(metric, y, rows.cols, dot));
      // Large numbers overflow f32 and are still numbers.
      if (!std::isfinite(distance) && !std::isfinite(exact.norm(y))) fail_damaged(row);
      return distance;
    }
    Metric metric;
    View<const float> rows;
    const float* query;
    float term;
    Dot* dot;
    const ExactKey& exact;
  };

  [[noreturn]] static void broken() {
    fail("expected links between rows of the index, found others", "index",
         "build the index again");
  }

  uint32_t checked(int64_t row) const {
    if (row < 0 || size_t(row) >= rows.view().rows) broken();
    return uint32_t(row);
  }

  // Calls visit(row) for the neighbours listed at `list`: a count, then rows; at most `most`.
  template <class Visit>
  void each(const int32_t* list, size_t most, Visit visit) const {
    if (list[0] < 0 || size_t(list[0]) > most) broken();
    for (int32_t i = 1; i <= list[0]; ++i) visit(checked(list[i]));
  }

  std::vector<Near> walk(const float* query, const ExactKey& exact, size_t effort, uint32_t stamp,
                         std::vector<uint32_t>& seen) const {
    Dot* const dot = kernel::f32_kernel().dot;
    const View<const float> all = rows.view();
    const float term = graph_term(metric, query, all.cols, dot);
    const Distance distance{metric, all, query, term, dot, exact};
    const uint32_t first = checked(entry.view()(0, 0));
    Near at{distance(first), first};
    for (int64_t level = entry.view()(1, 0); level > 0; --level) descend(level, at, distance);

    std::priority_queue<Near, std::vector<Near>, std::greater<>> open;  // nearest first
    std::priority_queue<Near> found;                                    // farthest first
    open.push(at), found.push(at);
    seen[at.row] = stamp;
    while (!open.empty() && !(found.size() == effort && found.top() < open.top())) {
      const Near next = open.top();
      open.pop();
      each(links.view().row(next.row), links.view().cols - 1, [&](uint32_t row) {
        if (seen[row] == stamp) return;
        seen[row] = stamp;
        const Near near{distance(row), row};
        if (found.size() == effort && !(near < found.top())) return;
        open.push(near), found.push(near);
        if (found.size() > effort) found.pop();
      });
    }
    std::vector<Near> out;
    for (; !found.empty(); found.pop()) out.push_back(found.top());
    return out;
  }

  // Walks to nearer rows on one upper level until there is none.
  void descend(int64_t level, Near& at, const Distance& distance) const {
    const View<const int32_t> lines = upper.view();
    for (bool moved = true; moved;) {
      moved = false;
      const int64_t start = upper_start.view()(at.row, 0);
      if (start < 0 || size_t(start) >= lines.rows) broken();
      const size_t line = size_t(start) + size_t(level - 1);
      if (line >= lines.rows || lines(line, 0) != int32_t(at.row)) broken();
      each(lines.row(line) + 1, lines.cols - 2, [&](uint32_t row) {
        const Near near{distance(row), row};
        if (near < at) at = near, moved = true;
      });
    }
  }

  Rows rows;
  Numbers<int32_t> links;
  Numbers<int64_t> upper_start;
  Numbers<int32_t> upper;
  Numbers<int64_t> entry;
};

}  // namespace

BodyPointer build_hnsw(View<const float> rows, const IndexOptions& options) {
  if (rows.rows > size_t(INT32_MAX))
    fail(fmt::format("expected at most 2^31 - 1 rows, found {}", rows.rows), "index",
         "use the exact kind");
  if (options.links < 2 || options.links > 1000)
    fail(fmt::format("expected 2 to 1000 links per row, found {}", options.links), "index",
         "16 is usual");
  HnswGraph graph = build_hnsw_graph(rows, options);
  return std::make_unique<HnswBody>(
      options.metric, Rows(copy_of(rows)), Numbers<int32_t>(std::move(graph.links)),
      Numbers<int64_t>(std::move(graph.upper_start)), Numbers<int32_t>(std::move(graph.upper)),
      Numbers<int64_t>(std::move(graph.entry)));
}

BodyPointer open_hnsw(const Path& folder, Metric metric) {
  Rows rows(NpyFile::open(folder / "vectors.npy"));
  Numbers<int32_t> links(NpyFile::open(folder / "links.npy")),
      upper(NpyFile::open(folder / "upper.npy"));
  Numbers<int64_t> start(NpyFile::open(folder / "upper_start.npy")),
      entry(NpyFile::open(folder / "entry.npy"));
  require_array(links.view().rows == rows.view().rows && links.view().cols >= 2,
                folder / "links.npy", "one line of links per vector");
  require_array(start.view().rows == rows.view().rows && start.view().cols == 1,
                folder / "upper_start.npy", "one number per vector");
  require_array(upper.view().rows == 0 || upper.view().cols >= 3, folder / "upper.npy",
                "lines of links");
  require_array(entry.view().rows == 2 && entry.view().cols == 1 && entry.view()(1, 0) >= 0 &&
                    entry.view()(1, 0) < 64,
                folder / "entry.npy", "a row and its level");
  return std::make_unique<HnswBody>(metric, std::move(rows), std::move(links), std::move(start),
                                    std::move(upper), std::move(entry));
}

}  // namespace fungi::search
