// SPDX-License-Identifier: Apache-2.0
// What can be searched, by one face: the rows of a store, every one of which is compared, or an
// index of some. Const, safe to share between threads.
//
//   const auto database = open_database("train.index", {}, pool);
//   Reopened extractor = database->reopen(pool);
//   const Matrix<float> queries = database->reduction().apply(
//       extractor.rows({"query.jpg"}, database->reduction().blocks(), database->knows_id()), pool);
//   const Neighbours found = database->search(queries, 8, pool);
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "fungi/feature/reduction.h"
#include "fungi/feature/reopen.h"
#include "fungi/search/index.h"

namespace fungi {

struct DatabaseOptions {
  std::string features;          // "embedding+kl"; empty: every block but kept factors, or those
                                 // that the index was built of
  std::optional<Metric> metric;  // nothing: Euclidean, or that of the index
  // Of a store: bytes that its rows, and codes a quarter as large, may take to stay in memory; of
  // more, and by default, every search reads them anew. Of an exact index: the codes alone.
  size_t memory = 0;
};

class Database {
 public:
  virtual ~Database() = default;

  // How rows, and queries, become vectors.
  virtual const Reduction& reduction() const = 0;
  virtual Metric metric() const = 0;
  virtual size_t rows() const = 0;  // at least one

  // Of a row; Error where there is no such row.
  virtual std::string id(size_t row) const = 0;
  virtual int64_t label(size_t row) const = 0;           // -1: none
  virtual std::string class_name(size_t row) const = 0;  // empty when the row has no label
  virtual Matrix<float> vector(size_t row) const = 0;    // [1, reduction().output_width()]

  virtual std::optional<size_t> find(std::string_view id) const = 0;
  KnowsId knows_id() const;  // for Reopened::rows(); the database must outlive it

  // Error where a setting is given that says nothing about this kind of database.
  virtual void check(const SearchOptions& options) const = 0;
  // The k nearest rows of each query. Errors as those of knn() and check().
  Neighbours search(View<const float> queries, size_t k, Pool& pool,
                    const SearchOptions& options = {}) const;
  // Those of rows of the database, where the row that was asked for comes first, whatever was
  // found: rows of identical samples are equally near and come by number, a longer row has a larger
  // inner product, and an index may miss the row itself, as a graph does whose links do not lead to
  // hundreds of copies.
  Neighbours search_rows(std::span<const size_t> rows, size_t k, Pool& pool,
                         const SearchOptions& options = {}) const;

  // The extractor that made the rows, for queries.
  virtual Reopened reopen(Pool& pool, ReopenOptions options = {}) const = 0;

 private:
  virtual Neighbours nearest(View<const float> queries, size_t k, Pool& pool,
                             const SearchOptions& options) const = 0;
};

// A store, or the folder of an index. Errors: neither is there, no rows, features or a metric that
// an index was not built for.
std::unique_ptr<Database> open_database(const std::filesystem::path& path,
                                        const DatabaseOptions& options, Pool& pool);

// The same of a store that is open, as several databases may share it.
std::unique_ptr<Database> open_database(std::shared_ptr<const Store> store,
                                        const DatabaseOptions& options, Pool& pool);

}  // namespace fungi
