// SPDX-License-Identifier: Apache-2.0
// What each kind of index provides behind Index. A folder holds index.json (kind, metric, sizes)
// and .npy arrays; rows in vectors.npy for every kind. Internal to the library.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "fungi/checkpoint/npy.h"
#include "fungi/search/index.h"

namespace fungi {

struct Index::Body {
  Body(IndexKind kind_, Metric metric_) : kind(kind_), metric(metric_) {}
  virtual ~Body() = default;
  virtual View<const float> vectors() const = 0;          // in the order of the file
  virtual size_t place(size_t row) const { return row; }  // of a row in vectors()
  virtual void save_arrays(const std::filesystem::path& folder) const = 0;
  virtual Neighbours search(View<const float> queries, size_t k, Pool& pool,
                            const SearchOptions& options) const = 0;
  const IndexKind kind;
  const Metric metric;
};

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

using BodyPointer = std::unique_ptr<Index::Body>;
BodyPointer build_exact(Rows rows, const IndexOptions& options);
BodyPointer open_exact(const std::filesystem::path& folder, Metric metric);
BodyPointer build_ivf(View<const float> rows, const IndexOptions& options, Pool& pool);
BodyPointer open_ivf(const std::filesystem::path& folder, Metric metric);
BodyPointer build_hnsw(View<const float> rows, const IndexOptions& options);
BodyPointer open_hnsw(const std::filesystem::path& folder, Metric metric);

// Error naming the file unless the condition holds.
void require_array(bool condition, const std::filesystem::path& file, const char* expected);
// Rows were finite when the index was built: what is not, was damaged since.
[[noreturn]] void fail_damaged(size_t row);

}  // namespace search
}  // namespace fungi
