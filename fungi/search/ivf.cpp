// SPDX-License-Identifier: Apache-2.0
// The inverted-file index: k-means centres, and for each the rows that lie nearest to it, one list
// after the other in one matrix. A search looks into the lists whose centres are nearest to the
// query, row by row, exactly.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fungi/base/error.h"
#include "fungi/search/index_body.h"
#include "fungi/search/kmeans.h"
#include "fungi/search/knn.h"

namespace fungi::search {
namespace {

using Path = std::filesystem::path;

struct IvfBody final : Index::Body {
  IvfBody(Metric metric_, Vectors rows, Rows centres_, Numbers<int64_t> offsets_,
          Numbers<int32_t> numbers_)
      : Body(IndexKind::ivf, metric_, std::move(rows)),
        centres(std::move(centres_)),
        offsets(std::move(offsets_)),
        numbers(std::move(numbers_)) {}

  size_t place(size_t row) const override {
    const int32_t* first = numbers.view().data;
    return size_t(std::find(first, first + numbers.view().rows, int32_t(row)) - first);
  }

  void save_arrays(const Path& folder) const override {
    write_npy(folder / "centres.npy", npy_array(centres.view()));
    write_npy(folder / "offsets.npy", column(offsets));
    write_npy(folder / "numbers.npy", column(numbers));
  }

  Neighbours search(View<const float> queries, size_t k, Pool& pool,
                    const SearchOptions& options) const override {
    const size_t lists = centres.view().rows;
    const size_t wanted = options.probes ? options.probes : std::max<size_t>(8, lists / 16);
    const size_t probes = std::min(wanted, lists);
    const Neighbours order = knn(centres.view(), queries, probes, pool, {.metric = metric});
    const ExactKey exact(metric, queries.cols);
    Neighbours out{Matrix<uint32_t>(queries.rows, k), Matrix<double>(queries.rows, k)};
    pool.parallel_for(queries.rows, 1, [&](size_t q, size_t, unsigned) {
      std::vector<Best> heap(k);
      size_t size = 0;
      Selection selection(heap.data(), k, size);
      const double norm = exact.norm(queries.row(q));
      for (size_t p = 0; p < probes; ++p)
        look_into(order.index(q, p), exact, queries.row(q), norm, selection);
      if (!selection.full()) look_further(queries.row(q), norm, exact, probes, selection);
      selection.sort();
      for (size_t b = 0; b < k; ++b)
        out.index(q, b) = heap[b].row, out.value(q, b) = exact.value(heap[b].key);
    });
    return out;
  }

  // Goes on behind the first `probes` lists, in the same order, until there are k rows.
  void look_further(const float* query, double norm, const ExactKey& exact, size_t probes,
                    Selection& selection) const {
    const View<const float> all = centres.view();
    std::vector<Best> order;
    for (size_t l = 0; l < all.rows; ++l) order.push_back({exact(query, all.row(l)), uint32_t(l)});
    std::sort(order.begin(), order.end());
    for (size_t p = probes; p < order.size() && !selection.full(); ++p)
      look_into(order[p].row, exact, query, norm, selection);
  }

  void look_into(size_t list, const ExactKey& exact, const float* query, double norm,
                 Selection& selection) const {
    const View<const float> all = vectors.view();
    const auto begin = size_t(offsets.view()(list, 0)), end = size_t(offsets.view()(list + 1, 0));
    for (size_t i = begin; i < end; ++i) {
      const float* row = all.row(i);
      const double row_norm = metric == Metric::euclidean ? 0 : vectors.norm(i, exact);
      if (selection.full() && exact.above(selection.worst().key, query, row, norm, row_norm))
        continue;
      const Best best{exact(query, row, norm, row_norm), uint32_t(numbers.view()(i, 0))};
      // The cosine of a row without a length is 0: its length tells.
      if (!std::isfinite(row_norm) || !std::isfinite(best.key)) fail_damaged(best.row);
      selection.offer(best);
    }
  }

  Rows centres;
  Numbers<int64_t> offsets;  // [lists + 1]
  Numbers<int32_t> numbers;  // of the rows, list by list
};

// For the cosine, lists are made of directions.
Matrix<float> directions(View<const float> rows, View<const double> norms) {
  Matrix<float> out(rows.rows, rows.cols);
  for (size_t i = 0; i < rows.rows; ++i)
    for (size_t c = 0; c < rows.cols && norms(i, 0) > 0; ++c)
      out(i, c) = float(rows(i, c) / norms(i, 0));
  return out;
}

}  // namespace

BodyPointer build_ivf(View<const float> rows, View<const double> norms, const IndexOptions& options,
                      Pool& pool) {
  if (rows.rows > size_t(INT32_MAX))
    fail(fmt::format("expected at most 2^31 - 1 rows, found {}", rows.rows), "index",
         "use the exact kind");
  const auto by_default = size_t(std::lround(4 * std::sqrt(double(rows.rows))));
  KMeansOptions k;
  k.clusters = std::min(options.lists ? options.lists : by_default, rows.rows);
  k.seed = options.seed;
  k.rows_per_cluster = 64;
  k.progress = options.progress;
  const bool turn = options.metric == Metric::cosine;
  KMeans means = kmeans(turn ? directions(rows, norms).view() : rows, k, pool);

  Matrix<int64_t> offsets(k.clusters + 1, 1);
  for (uint32_t list : means.assignment) ++offsets(list + 1, 0);
  for (size_t l = 0; l < k.clusters; ++l) offsets(l + 1, 0) += offsets(l, 0);
  Matrix<int32_t> numbers(rows.rows, 1);
  Matrix<float> sorted(rows.rows, rows.cols);
  Matrix<double> sorted_norms(rows.rows, 1);
  std::vector<int64_t> next(offsets.data(), offsets.data() + k.clusters);
  for (size_t i = 0; i < rows.rows; ++i) {
    const auto at = size_t(next[means.assignment[i]]++);
    numbers(at, 0) = int32_t(i);
    std::copy_n(rows.row(i), rows.cols, sorted.row(at));
    sorted_norms(at, 0) = norms(i, 0);
  }
  Vectors vectors(Rows(std::move(sorted)), Numbers<double>(std::move(sorted_norms)));
  return std::make_unique<IvfBody>(
      options.metric, std::move(vectors), Rows(std::move(means.centres)),
      Numbers<int64_t>(std::move(offsets)), Numbers<int32_t>(std::move(numbers)));
}

BodyPointer open_ivf(const Path& folder, Metric metric) {
  Vectors vectors = Vectors::open(folder);
  Rows centres(NpyFile::open(folder / "centres.npy"));
  Numbers<int64_t> offsets(NpyFile::open(folder / "offsets.npy"));
  Numbers<int32_t> numbers(NpyFile::open(folder / "numbers.npy"));
  const View<const int64_t> o = offsets.view();
  const View<const int32_t> n = numbers.view();
  const size_t count = vectors.view().rows;
  require_array(centres.view().rows > 0 && centres.view().cols == vectors.view().cols,
                folder / "centres.npy", "centres as wide as the vectors");
  bool ascending =
      o.rows == centres.view().rows + 1 && o(0, 0) == 0 && o(o.rows - 1, 0) == int64_t(count);
  for (size_t l = 0; ascending && l + 1 < o.rows; ++l) ascending = o(l, 0) <= o(l + 1, 0);
  require_array(ascending, folder / "offsets.npy",
                "ascending offsets, one more than centres, from 0 to the rows");
  bool known = n.rows == count;
  for (size_t i = 0; known && i < count; ++i) known = n(i, 0) >= 0 && size_t(n(i, 0)) < count;
  require_array(known, folder / "numbers.npy", "one row number per vector");
  return std::make_unique<IvfBody>(metric, std::move(vectors), std::move(centres),
                                   std::move(offsets), std::move(numbers));
}

}  // namespace fungi::search
