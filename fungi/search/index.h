// SPDX-License-Identifier: Apache-2.0
// A searchable set of rows: built in memory, saved as a folder of .npy files, opened again by
// mapping them, so that only what a search touches is read. Whatever the kind, the neighbours it
// reports carry exact values and are ordered by search::ExactKey; kinds other than `exact` may miss
// some, and recall() says how many.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/base/parallel.h"
#include "fungi/search/metric.h"

namespace fungi {

enum class IndexKind {
  exact,  // every row, through knn()
  ivf,    // rows in lists around k-means centres; the nearest lists are searched
  hnsw,   // a navigable graph
};
const char* to_string(IndexKind kind);
IndexKind parse_index_kind(std::string_view name);  // throws Error naming the choices

struct IndexOptions {
  IndexKind kind = IndexKind::exact;
  Metric metric = Metric::euclidean;
  size_t lists = 0;           // ivf: 0 means 4·√rows
  size_t links = 16;          // hnsw: per row and level (twice that on the lowest)
  size_t build_effort = 200;  // hnsw: candidates looked at per inserted row
  uint64_t seed = 1234;
  // Calls progress(done, total) from the caller's thread now and then, first with 0: rows for hnsw,
  // iterations of k-means for ivf. What it throws ends the work.
  std::function<void(size_t, size_t)> progress = {};
};

struct SearchOptions {
  size_t probes = 0;  // ivf: lists searched; 0 means a sixteenth of them, at least 8
  size_t effort = 0;  // hnsw: candidates kept; 0 means 4·k, at least 64
};

// Const after building or opening, safe to share between threads.
class Index {
 public:
  // exact borrows the rows, which must outlive the index; ivf and hnsw copy them. The same for any
  // pool. Errors: no rows, NaN or infinity (naming the row).
  static Index build(View<const float> rows, const IndexOptions& options, Pool& pool);
  // The same of a matrix that is given away: exact and hnsw keep it.
  static Index build(Matrix<float>&& rows, const IndexOptions& options, Pool& pool);
  static Index open(const std::filesystem::path& folder);
  void save(const std::filesystem::path& folder) const;

  Index(Index&&) noexcept;
  Index& operator=(Index&&) noexcept;
  ~Index();

  IndexKind kind() const;
  Metric metric() const;
  size_t rows() const;
  size_t width() const;

  // The k nearest rows of each query. Errors as knn(); ivf goes on to further lists until it has k
  // rows, hnsw fails if its graph does not reach k rows. NaN or infinity in a row that is met is an
  // Error, too.
  Neighbours search(View<const float> queries, size_t k, Pool& pool,
                    const SearchOptions& options = {}) const;

  View<const float> row(size_t row) const;  // the vector it was built from, [1, width]

  struct Body;  // one per kind

 private:
  explicit Index(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

// Share of the exact neighbours that were found, over all queries; one that is as near as the last
// of them stands for it. Error unless both are of the same shape.
double recall(const Neighbours& found, const Neighbours& exact);

// Searches both ways with some of the given rows as queries, none of which counts as its own
// neighbour. The rows are those the index was built from; k < rows. Error where there is no such
// row.
double recall_of_rows(const Index& index, View<const float> rows,
                      const std::vector<size_t>& queries, size_t k, Pool& pool,
                      const SearchOptions& options = {});

}  // namespace fungi
