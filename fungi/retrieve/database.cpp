// SPDX-License-Identifier: Apache-2.0
#include "fungi/retrieve/database.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "fungi/base/error.h"
#include "fungi/retrieve/feature_index.h"
#include "fungi/retrieve/rows_by_id.h"
#include "fungi/retrieve/search_store.h"
#include "fungi/search/knn.h"
#include "fungi/search/knn_rows.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;

class WholeStore final : public Database {
 public:
  WholeStore(std::shared_ptr<const Store> store, const DatabaseOptions& options, Pool& pool)
      : store_(std::move(store)),
        reduction_(Reduction::fit(*store_, options.features, 0, pool)),
        metric_(options.metric.value_or(Metric::euclidean)) {
    const size_t width = reduction_.output_width();
    if (rows() > options.memory / (width * sizeof(float) + KnnRows::bytes_of_row(width))) return;
    held_ = Matrix<float>(rows(), width);
    reduction_.each_part(*store_, pool, [&](size_t first, View<const float> part) {
      for (size_t i = 0; i < part.rows; ++i)
        std::copy_n(part.row(i), width, held_.row(first + i));
    });
    if (!held_.empty()) prepared_.emplace(held_, metric_, pool);
  }
  const Reduction& reduction() const override { return reduction_; }
  Metric metric() const override { return metric_; }
  size_t rows() const override { return store_->rows(); }
  std::string id(size_t row) const override { return store_->ids()[checked(row)]; }
  int64_t label(size_t row) const override { return store_->labels()[checked(row)]; }
  std::string class_name(size_t row) const override { return store_->class_name(checked(row)); }
  Matrix<float> vector(size_t row) const override {
    checked(row);
    if (!held_.empty()) return copy_of(held_.view().slice(row, 1));
    Matrix<float> values(1, reduction_.input_width());
    store_->read(reduction_.blocks(), true, row, values);
    return values;
  }
  std::optional<size_t> find(std::string_view id) const override {
    return by_id_.find(id, rows(),
                       [&](size_t row) { return std::string_view(store_->ids()[row]); });
  }
  void check(const SearchOptions& options) const override {
    if (options.effort || options.probes)
      fail("every row of a store is compared: `effort` and `probes` have nothing to set",
           store_->folder().string(), "leave them out, or search an index");
  }
  Reopened reopen(Pool& pool, ReopenOptions options) const override {
    return Reopened(extraction_record(*store_), pool, std::move(options));
  }

 private:
  size_t checked(size_t row) const {
    if (row >= rows())
      fail(fmt::format("asked for row {} of {}", row, rows()), store_->folder().string());
    return row;
  }
  Neighbours nearest(View<const float> queries, size_t k, Pool& pool,
                     const SearchOptions&) const override {
    return prepared_ ? prepared_->search(queries, k, pool)
                     : search_store(*store_, reduction_, queries, k, metric_, pool);
  }

  std::shared_ptr<const Store> store_;
  Reduction reduction_;
  Metric metric_;
  Matrix<float> held_;  // all rows, where they fit
  std::optional<KnnRows> prepared_;
  RowsById by_id_;
};

class Indexed final : public Database {
 public:
  Indexed(const fs::path& path, const DatabaseOptions& options, Pool& pool)
      : path_(path), index_(FeatureIndex::open(path)) {
    if (!options.features.empty() && options.features != reduction().features())
      fail(fmt::format("the index was built of {}, not of {}", reduction().features(),
                       options.features),
           path_.string(), "leave `features` out, or build another index");
    if (options.metric && *options.metric != metric())
      fail(fmt::format("the index was built for {}, not for {}", to_string(metric()),
                       to_string(*options.metric)),
           path_.string(), "leave `metric` out, or build another index");
    const Index& all = index_.index();
    if (all.kind() != IndexKind::exact || all.rows() == 0 ||
        all.rows() > options.memory / KnnRows::bytes_of_row(all.width()))
      return;
    const View<const float> first = all.row(0);  // an exact index keeps its rows in order
    prepared_.emplace(View(first.data, all.rows(), first.cols, first.stride), metric(), pool);
  }
  const Reduction& reduction() const override { return index_.reduction(); }
  Metric metric() const override { return index_.index().metric(); }
  size_t rows() const override { return index_.index().rows(); }
  std::string id(size_t row) const override { return index_.id(row); }
  int64_t label(size_t row) const override { return index_.label(row); }
  std::string class_name(size_t row) const override { return index_.class_name(row); }
  Matrix<float> vector(size_t row) const override { return copy_of(index_.index().row(row)); }
  std::optional<size_t> find(std::string_view id) const override { return index_.find(id); }
  void check(const SearchOptions& options) const override {
    const IndexKind kind = index_.index().kind();
    for (const auto& [option, value, of] : {std::tuple("effort", options.effort, IndexKind::hnsw),
                                            std::tuple("probes", options.probes, IndexKind::ivf)})
      if (value && kind != of)
        fail(
            fmt::format("`{}` is a setting of {} indices, found one of kind {}", option,
                        to_string(of), to_string(kind)),
            path_.string(),
            fmt::format("leave `{}` out, or build an index with `kind={}`", option, to_string(of)));
  }
  Reopened reopen(Pool& pool, ReopenOptions options) const override {
    return Reopened(index_.record(), pool, std::move(options));
  }

 private:
  Neighbours nearest(View<const float> queries, size_t k, Pool& pool,
                     const SearchOptions& options) const override {
    return prepared_ ? prepared_->search(queries, k, pool)
                     : index_.index().search(queries, k, pool, options);
  }

  fs::path path_;
  FeatureIndex index_;
  std::optional<KnnRows> prepared_;
};

void require_rows(const Database& database, const fs::path& place) {
  if (database.rows() == 0)
    fail("expected rows to search in, found none", place.string(), "extract some samples first");
}

void put_first(size_t row, View<const float> query, Metric metric, size_t q, Neighbours& found,
               Pool& pool) {
  uint32_t* index = found.index.row(q);
  double* value = found.value.row(q);
  const size_t k = found.index.cols();
  size_t at = size_t(std::find(index, index + k, uint32_t(row)) - index);
  if (at == k) {  // it takes the place of the last
    at = k - 1;
    index[at] = uint32_t(row);
    value[at] = knn(query, query, 1, pool, {.metric = metric}).value(0, 0);
  }
  std::rotate(index, index + at, index + at + 1);
  std::rotate(value, value + at, value + at + 1);
}

}  // namespace

KnowsId Database::knows_id() const {
  return [this](std::string_view id) { return find(id).has_value(); };
}

Neighbours Database::search(View<const float> queries, size_t k, Pool& pool,
                            const SearchOptions& options) const {
  check(options);
  return nearest(queries, k, pool, options);
}

Neighbours Database::search_rows(std::span<const size_t> rows, size_t k, Pool& pool,
                                 const SearchOptions& options) const {
  Matrix<float> queries(rows.size(), reduction().output_width());
  for (size_t q = 0; q < rows.size(); ++q)
    std::copy_n(vector(rows[q]).data(), queries.cols(), queries.row(q));
  Neighbours found = search(queries, k, pool, options);
  for (size_t q = 0; q < rows.size(); ++q)
    put_first(rows[q], queries.view().slice(q, 1), metric(), q, found, pool);
  return found;
}

std::unique_ptr<Database> open_database(const fs::path& path, const DatabaseOptions& options,
                                        Pool& pool) {
  std::unique_ptr<Database> database;
  if (is_index(path))
    database = std::make_unique<Indexed>(path, options, pool);
  else
    return open_database(std::make_shared<const Store>(Store::open(path)), options, pool);
  require_rows(*database, path);
  return database;
}

std::unique_ptr<Database> open_database(std::shared_ptr<const Store> store,
                                        const DatabaseOptions& options, Pool& pool) {
  const fs::path folder = store->folder();
  auto database = std::make_unique<WholeStore>(std::move(store), options, pool);
  require_rows(*database, folder);
  return database;
}

}  // namespace fungi
