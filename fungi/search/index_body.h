// SPDX-License-Identifier: Apache-2.0
// What each kind of index provides behind Index. A folder holds index.json (kind, metric, sizes)
// and .npy arrays; for every kind rows in vectors.npy and their lengths in norms.npy. Internal to
// the library.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "fungi/checkpoint/npy.h"
#include "fungi/search/index.h"

namespace fungi {

namespace search {

// Whether a file is the index.json of an index: another program may have one, too.
bool describes_index(const std::filesystem::path& file);

// Numbers that are owned, borrowed or mapped.
template <class T>
class Numbers {
 public:
  explicit Numbers(View<const T> borrowed) : view_(borrowed) {}
  explicit Numbers(Matrix<T> owned) : owned_(std::move(owned)), view_(owned_) {}
  explicit Numbers(NpyFile mapped) : mapped_(std::move(mapped)), view_(mapped_->view<T>()) {}
  View<const T> view() const { return view_; }

 private:
  Matrix<T> owned_;
  std::optional<NpyFile> mapped_;
  View<const T> view_;
};
using Rows = Numbers<float>;

// Of one column, as an array of one dimension.
template <class T>
NpyArray column(const Numbers<T>& numbers) {
  return npy_array(numbers.view().data, {numbers.view().rows});
}

// The rows of an index, in the order of its file, with their lengths. An index from before lengths
// were stored has none: they are computed when a row is met.
class Vectors {
 public:
  Vectors(Rows rows, Numbers<double> norms) : rows_(std::move(rows)), norms_(std::move(norms)) {}
  static Vectors open(const std::filesystem::path& folder);
  void save(const std::filesystem::path& folder) const;
  View<const float> view() const { return rows_.view(); }
  View<const double> norms() const { return norms_.view(); }  // [rows, 1] or empty
  // A length of 0 is looked at again: nothing else would tell a damaged row from a row of zeros.
  double norm(size_t row, const ExactKey& exact) const {
    const double known = norms().rows ? norms()(row, 0) : 0;
    return known > 0 ? known : exact.norm(rows_.view().row(row));
  }

 private:
  Rows rows_;
  Numbers<double> norms_;
};

}  // namespace search

struct Index::Body {
  Body(IndexKind kind_, Metric metric_, search::Vectors vectors_)
      : kind(kind_), metric(metric_), vectors(std::move(vectors_)) {}
  virtual ~Body() = default;
  virtual size_t place(size_t row) const { return row; }  // of a row in vectors
  virtual void save_arrays(const std::filesystem::path& folder) const = 0;
  virtual Neighbours search(View<const float> queries, size_t k, Pool& pool,
                            const SearchOptions& options) const = 0;
  const IndexKind kind;
  const Metric metric;
  const search::Vectors vectors;
};

namespace search {

using BodyPointer = std::unique_ptr<Index::Body>;
BodyPointer build_exact(Vectors vectors, const IndexOptions& options);
BodyPointer open_exact(const std::filesystem::path& folder, Metric metric);
// norms [rows, 1]: the lengths of the rows, which are copied.
BodyPointer build_ivf(View<const float> rows, View<const double> norms, const IndexOptions& options,
                      Pool& pool);
BodyPointer open_ivf(const std::filesystem::path& folder, Metric metric);
BodyPointer build_hnsw(Vectors vectors, const IndexOptions& options, Pool& pool);
BodyPointer open_hnsw(const std::filesystem::path& folder, Metric metric);

// Error naming the file unless the condition holds.
void require_array(bool condition, const std::filesystem::path& file, const char* expected);
// Rows were finite when the index was built: what is not, was damaged since.
[[noreturn]] void fail_damaged(size_t row);

}  // namespace search
}  // namespace fungi
