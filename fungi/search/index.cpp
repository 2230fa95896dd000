// SPDX-License-Identifier: Apache-2.0
// The face of every index, its folder, and the exact kind.
#include "fungi/search/index.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "fungi/base/atomic_file.h"
#include "fungi/base/error.h"
#include "fungi/base/json.h"
#include "fungi/checkpoint/file_bytes.h"
#include "fungi/search/index_body.h"
#include "fungi/search/knn.h"

namespace fungi {
namespace {

using Path = std::filesystem::path;

constexpr int kVersion = 1;
constexpr const char *kFormat = "fungi-index", *kDescription = "index.json";

struct ExactBody final : Index::Body {
  ExactBody(Metric metric_, search::Vectors rows)
      : Body(IndexKind::exact, metric_, std::move(rows)) {}
  void save_arrays(const Path&) const override {}
  Neighbours search(View<const float> queries, size_t k, Pool& pool,
                    const SearchOptions&) const override {
    return knn(vectors.view(), queries, k, pool, {.metric = metric, .norms = vectors.norms()});
  }
};

}  // namespace

const char* to_string(IndexKind kind) {
  switch (kind) {
    case IndexKind::exact:
      return "exact";
    case IndexKind::ivf:
      return "ivf";
    default:
      return "hnsw";
  }
}

IndexKind parse_index_kind(std::string_view name) {
  for (IndexKind kind : {IndexKind::exact, IndexKind::ivf, IndexKind::hnsw})
    if (name == to_string(kind)) return kind;
  fail(fmt::format("unknown kind of index '{}'", name), "index", "use exact, ivf or hnsw");
}

namespace search {

BodyPointer build_exact(Vectors vectors, const IndexOptions& options) {
  return std::make_unique<ExactBody>(options.metric, std::move(vectors));
}

BodyPointer open_exact(const Path& folder, Metric metric) {
  return std::make_unique<ExactBody>(metric, Vectors::open(folder));
}

Vectors Vectors::open(const Path& folder) {
  Rows rows(NpyFile::open(folder / "vectors.npy"));
  const Path file = folder / "norms.npy";
  if (!std::filesystem::exists(file))
    return Vectors(std::move(rows), Numbers<double>(View<const double>()));
  Numbers<double> norms(NpyFile::open(file));
  const View<const double> n = norms.view();
  require_array(n.rows == rows.view().rows && n.cols == 1, file, "one length per vector");
  for (size_t i = 0; i < n.rows; ++i)
    require_array(n(i, 0) >= 0 && std::isfinite(n(i, 0)), file, "lengths, finite and not negative");
  return Vectors(std::move(rows), std::move(norms));
}

void Vectors::save(const Path& folder) const {
  if (view().stride == view().cols) {
    write_npy(folder / "vectors.npy", npy_array(view()));
  } else {
    write_npy(folder / "vectors.npy", npy_array(copy_of(view())));
  }
  if (norms().rows) write_npy(folder / "norms.npy", column(norms_));
}

void require_array(bool condition, const Path& file, const char* expected) {
  if (!condition)
    fail(fmt::format("expected {}", expected), file.string(), "build the index again");
}

void fail_damaged(size_t row) {
  fail(fmt::format("expected finite numbers, found NaN or infinity in row {}", row),
       "vectors.npy of the index", "build the index again");
}

}  // namespace search

Index::Index(std::unique_ptr<Body> body) : body_(std::move(body)) {}
Index::Index(Index&&) noexcept = default;
Index& Index::operator=(Index&&) noexcept = default;
Index::~Index() = default;
IndexKind Index::kind() const { return body_->kind; }
Metric Index::metric() const { return body_->metric; }
size_t Index::rows() const { return body_->vectors.view().rows; }
size_t Index::width() const { return body_->vectors.view().cols; }

View<const float> Index::row(size_t row) const {
  const size_t place = row < rows() ? body_->place(row) : rows();
  if (place >= rows()) fail(fmt::format("asked for row {} of {}", row, rows()), "index", "");
  return body_->vectors.view().slice(place, 1);
}

namespace {

search::BodyPointer build_body(search::Rows rows, const IndexOptions& options, Pool& pool) {
  search::check_search(rows.view(), rows.view(), 1, rows.view().rows);
  Matrix<double> norms = search::finite_norms(rows.view(), "rows", pool);
  if (options.kind == IndexKind::ivf) return search::build_ivf(rows.view(), norms, options, pool);
  search::Vectors vectors(std::move(rows), search::Numbers<double>(std::move(norms)));
  if (options.kind == IndexKind::exact) return search::build_exact(std::move(vectors), options);
  return search::build_hnsw(std::move(vectors), options, pool);
}

}  // namespace

Index Index::build(Matrix<float>&& rows, const IndexOptions& options, Pool& pool) {
  return Index(build_body(search::Rows(std::move(rows)), options, pool));
}

Index Index::build(View<const float> rows, const IndexOptions& options, Pool& pool) {
  if (options.kind == IndexKind::hnsw) return build(copy_of(rows), options, pool);
  return Index(build_body(search::Rows(rows), options, pool));
}

void Index::save(const Path& folder) const {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail(fmt::format("cannot be made: {}", error.message()), folder.string(), "");
  // The description goes last: a folder with it is complete. An older one must not describe newer
  // arrays.
  std::filesystem::remove(folder / kDescription, error);
  if (error)
    fail(fmt::format("cannot be replaced: {}", error.message()), (folder / kDescription).string(),
         "");
  body_->vectors.save(folder);
  body_->save_arrays(folder);
  const nlohmann::ordered_json description{{"format", kFormat},
                                           {"version", kVersion},
                                           {"kind", to_string(kind())},
                                           {"metric", to_string(metric())},
                                           {"rows", rows()},
                                           {"width", width()}};
  write_file_atomically(folder / kDescription, std::string_view(description.dump(2) + "\n"));
}

bool search::describes_index(const Path& file) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(file, unknown)) return false;
  const nlohmann::json json = parse_json(FileBytes::map(file)->text());
  return json.is_object() && json.value("format", nlohmann::json()) == kFormat;
}

Index Index::open(const Path& folder) {
  const Path description = folder / kDescription;
  const std::string place = description.string();
  const auto file = FileBytes::map(description);
  const nlohmann::json json = parse_json(file->text());
  const auto is = [&](const char* key, auto check) {
    return json.contains(key) && check(json[key]);
  };
  const auto text = [](const auto& v) { return v.is_string(); };
  const auto count = [](const auto& v) { return v.is_number_unsigned(); };
  if (json.is_discarded() || !json.is_object() || !is("format", text) ||
      json["format"] != kFormat || !is("kind", text) || !is("metric", text) || !is("rows", count) ||
      !is("width", count))
    fail("expected the description of an index", place, "build the index again");
  if (!is("version", count) || json["version"] != kVersion)
    fail(fmt::format("expected version {} of the index format", kVersion), place,
         "build the index again");
  const IndexKind kind = parse_index_kind(json["kind"].get<std::string>());
  const Metric metric = parse_metric(json["metric"].get<std::string>());
  Index index(kind == IndexKind::exact ? search::open_exact(folder, metric)
              : kind == IndexKind::ivf ? search::open_ivf(folder, metric)
                                       : search::open_hnsw(folder, metric));
  if (index.rows() != json["rows"].get<size_t>() || index.width() != json["width"].get<size_t>())
    fail(fmt::format("expected {} rows of width {} as described, found {} of {}",
                     json["rows"].dump(), json["width"].dump(), index.rows(), index.width()),
         (folder / "vectors.npy").string(), "build the index again");
  return index;
}

Neighbours Index::search(View<const float> queries, size_t k, Pool& pool,
                         const SearchOptions& options) const {
  search::check_search(body_->vectors.view(), queries, k, rows());
  return body_->search(queries, k, pool, options);
}

double recall(const Neighbours& found, const Neighbours& exact) {
  const size_t k = exact.index.cols();
  if (found.index.rows() != exact.index.rows() || found.index.cols() != k)
    fail(fmt::format("expected {} x {} neighbours like the exact ones, found {} x {}",
                     exact.index.rows(), k, found.index.rows(), found.index.cols()),
         "recall", "search both for the same queries and k");
  if (exact.index.rows() == 0) return 1;
  size_t hits = 0;
  for (size_t i = 0; i < exact.index.rows(); ++i) {
    const std::unordered_set<uint32_t> wanted(exact.index.row(i), exact.index.row(i) + k);
    for (size_t b = 0; b < k; ++b)
      hits += wanted.contains(found.index(i, b)) || found.value(i, b) == exact.value(i, k - 1);
  }
  return double(hits) / double(exact.index.rows() * k);
}

double recall_of_rows(const Index& index, View<const float> rows,
                      const std::vector<size_t>& queries, size_t k, Pool& pool,
                      const SearchOptions& options) {
  if (rows.rows != index.rows())
    fail(fmt::format("expected the {} rows of the index, found {}", index.rows(), rows.rows),
         "rows", "give those it was built from");
  const Matrix<float> asked = gather(rows, queries);
  // One neighbour more than wanted, then the row itself goes; where copies of it came first, the
  // last one goes.
  const auto others = [&](const Neighbours& all) {
    Neighbours out{Matrix<uint32_t>(queries.size(), k), Matrix<double>(queries.size(), k)};
    for (size_t q = 0; q < queries.size(); ++q)
      for (size_t b = 0, to = 0; b <= k && to < k; ++b)
        if (all.index(q, b) != queries[q]) {
          out.value(q, to) = all.value(q, b);
          out.index(q, to++) = all.index(q, b);
        }
    return out;
  };
  return recall(others(index.search(asked, k + 1, pool, options)),
                others(knn(rows, asked, k + 1, pool, {.metric = index.metric()})));
}

}  // namespace fungi
