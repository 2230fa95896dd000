// SPDX-License-Identifier: Apache-2.0
// Searching the graph of hnsw_graph.h (Malkov & Yashunin 2016): greedy from the top level down,
// then a best-first walk on the lowest level; what it met is ordered by exact keys. Works on mapped
// arrays, reading only what it visits; every number from a file is checked before use.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fungi/base/error.h"
#include "fungi/kernel/kernel.h"
#include "fungi/search/hnsw_graph.h"
#include "fungi/search/index_body.h"

namespace fungi::search {
namespace {

using Path = std::filesystem::path;

struct HnswBody final : Index::Body {
  HnswBody(Metric metric_, Vectors rows, Numbers<int32_t> links_, Numbers<int64_t> start,
           Numbers<int32_t> upper_, Numbers<int64_t> entry_)
      : Body(IndexKind::hnsw, metric_, std::move(rows)),
        links(std::move(links_)),
        upper_start(std::move(start)),
        upper(std::move(upper_)),
        entry(std::move(entry_)) {}

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
    std::vector<Walker> walkers(pool.threads());
    pool.parallel_for(queries.rows, 1, [&](size_t q, size_t, unsigned worker) {
      const float* query = queries.row(q);
      const double norm = exact.norm(query);
      if (!std::isfinite(norm)) fail_not_finite("queries", q);
      const Distance distance{metric, vectors, query, graph_term(metric, norm), exact};
      std::vector<Best> best;
      for (const Near& near : walk(distance, effort, walkers[worker]))
        best.push_back(
            {exact(query, vectors.view().row(near.row()), norm, vectors.norm(near.row(), exact)),
             near.row()});
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
      const float* y = rows.view().row(row);
      const float distance = graph_distance(metric, dot(rows.view().cols, query, y), term,
                                            graph_term(metric, rows.norm(row, exact)));
      // Large numbers overflow f32 and are still numbers.
      if (!std::isfinite(distance) && !std::isfinite(exact.norm(y))) fail_damaged(row);
      return distance;
    }
    void prefetch(uint32_t row) const { search::prefetch(rows.view().row(row), rows.view().cols); }
    Metric metric;
    const Vectors& rows;
    const float* query;
    float term;
    const ExactKey& exact;
    Dot* dot = kernel::f32_kernel().dot;
  };

  [[noreturn]] static void broken() {
    fail("expected links between rows of the index, found others", "index",
         "build the index again");
  }

  uint32_t checked(int64_t row) const {
    if (row < 0 || size_t(row) >= vectors.view().rows) broken();
    return uint32_t(row);
  }

  // Calls visit(row) for the neighbours listed at `list`: a count, then rows; at most `most`.
  template <class Visit>
  void each(const int32_t* list, size_t most, Visit visit) const {
    if (list[0] < 0 || size_t(list[0]) > most) broken();
    for (int32_t i = 1; i <= list[0]; ++i) visit(checked(list[i]));
  }

  std::vector<Near> walk(const Distance& distance, size_t effort, Walker& walker) const {
    const uint32_t first = checked(entry.view()(0, 0));
    Near at{distance(first), first};
    for (int64_t level = entry.view()(1, 0); level > 0; --level)
      at = walker.descend(
          at, [&](uint32_t row, auto visit) { each_above(level, row, visit); }, distance);
    return walker.walk(
        at, effort, vectors.view().rows,
        [&](uint32_t row, auto visit) {
          each(links.view().row(row), links.view().cols - 1, visit);
        },
        distance);
  }

  template <class Visit>
  void each_above(int64_t level, uint32_t row, Visit visit) const {
    const View<const int32_t> lines = upper.view();
    const int64_t start = upper_start.view()(row, 0);
    if (start < 0 || size_t(start) >= lines.rows) broken();
    const size_t line = size_t(start) + size_t(level - 1);
    if (line >= lines.rows || lines(line, 0) != int32_t(row)) broken();
    each(lines.row(line) + 1, lines.cols - 2, visit);
  }

  Numbers<int32_t> links;
  Numbers<int64_t> upper_start;
  Numbers<int32_t> upper;
  Numbers<int64_t> entry;
};

}  // namespace

BodyPointer build_hnsw(Vectors vectors, const IndexOptions& options, Pool& pool) {
  const View<const float> rows = vectors.view();
  if (rows.rows > size_t(INT32_MAX))
    fail(fmt::format("expected at most 2^31 - 1 rows, found {}", rows.rows), "index",
         "use the exact kind");
  if (options.links < 2 || options.links > 1000)
    fail(fmt::format("expected 2 to 1000 links per row, found {}", options.links), "index",
         "16 is usual");
  HnswGraph graph = build_hnsw_graph(rows, vectors.norms(), options, pool);
  return std::make_unique<HnswBody>(
      options.metric, std::move(vectors), Numbers<int32_t>(std::move(graph.links)),
      Numbers<int64_t>(std::move(graph.upper_start)), Numbers<int32_t>(std::move(graph.upper)),
      Numbers<int64_t>(std::move(graph.entry)));
}

BodyPointer open_hnsw(const Path& folder, Metric metric) {
  Vectors vectors = Vectors::open(folder);
  const size_t rows = vectors.view().rows;
  Numbers<int32_t> links(NpyFile::open(folder / "links.npy")),
      upper(NpyFile::open(folder / "upper.npy"));
  Numbers<int64_t> start(NpyFile::open(folder / "upper_start.npy")),
      entry(NpyFile::open(folder / "entry.npy"));
  require_array(links.view().rows == rows && links.view().cols >= 2, folder / "links.npy",
                "one line of links per vector");
  require_array(start.view().rows == rows && start.view().cols == 1, folder / "upper_start.npy",
                "one number per vector");
  require_array(upper.view().rows == 0 || upper.view().cols >= 3, folder / "upper.npy",
                "lines of links");
  require_array(entry.view().rows == 2 && entry.view().cols == 1 && entry.view()(1, 0) >= 0 &&
                    entry.view()(1, 0) < 64,
                folder / "entry.npy", "a row and its level");
  return std::make_unique<HnswBody>(metric, std::move(vectors), std::move(links), std::move(start),
                                    std::move(upper), std::move(entry));
}

}  // namespace fungi::search
