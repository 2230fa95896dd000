// SPDX-License-Identifier: Apache-2.0
// fungi search STORE|INDEX --image FILE: the nearest rows of images, extracted as the rows were, or
// of rows by their id.
#include <fmt/format.h>

#include <optional>
#include <tuple>

#include "app/features.h"
#include "app/words.h"
#include "fungi/checkpoint/checkpoint.h"
#include "fungi/retrieve/feature_index.h"
#include "fungi/search/knn.h"
#include "fungi/store/text.h"

namespace fungi::app {
namespace {

struct Arguments {
  std::string target, features, metric, model, given;
  std::vector<std::string> images, rows;
  SearchOptions search;
  size_t k = 8;
  ThreadsOption threads;
  bool json = false;
};

// What is searched: the rows of a store, or an index of them.
class Database {
 public:
  virtual ~Database() = default;
  virtual const Reduction& reduction() const = 0;
  virtual Metric metric() const = 0;
  virtual size_t rows() const = 0;
  virtual Reopened reopen(ReopenOptions options) const = 0;
  virtual KnowsId knows_id() const = 0;
  virtual std::optional<size_t> row(const std::string& id) const = 0;
  virtual Matrix<float> vector(size_t row) const = 0;
  virtual Neighbours search(View<const float> queries, size_t k,
                            const SearchOptions& options) const = 0;
  virtual std::string id(size_t row) const = 0;
  virtual std::string class_name(size_t row) const = 0;
  virtual int64_t label(size_t row) const = 0;
};

class WholeStore final : public Database {
 public:
  WholeStore(const Arguments& a, Pool& pool)
      : pool_(pool),
        store_(Store::open(a.target)),
        reduction_(Reduction::fit(store_, a.features, 0, pool)),
        metric_(parse_metric(a.metric.empty() ? "euclidean" : a.metric)) {
    if (a.search.effort || a.search.probes)
      fail("every row of a store is compared: there is nothing to set", "--effort, --probes",
           "use them with an index");
  }
  const Reduction& reduction() const override { return reduction_; }
  Metric metric() const override { return metric_; }
  size_t rows() const override { return store_.rows(); }
  Reopened reopen(ReopenOptions options) const override {
    return Reopened(extraction_record(store_), pool_, std::move(options));
  }
  KnowsId knows_id() const override { return knows_ids_of(store_); }
  std::optional<size_t> row(const std::string& id) const override {
    const auto at = std::find(store_.ids().begin(), store_.ids().end(), id);
    if (at == store_.ids().end()) return std::nullopt;
    return size_t(at - store_.ids().begin());
  }
  Matrix<float> vector(size_t row) const override {
    Matrix<float> values(1, reduction_.input_width());
    store_.read(reduction_.blocks(), true, row, values);
    return values;
  }
  Neighbours search(View<const float> queries, size_t k, const SearchOptions&) const override {
    return search_store(store_, reduction_, queries, k, metric_, pool_);
  }
  std::string id(size_t row) const override { return store_.ids()[row]; }
  std::string class_name(size_t row) const override { return store_.class_name(row); }
  int64_t label(size_t row) const override { return store_.labels()[row]; }

 private:
  Pool& pool_;
  Store store_;
  Reduction reduction_;
  Metric metric_;
};

class Indexed final : public Database {
 public:
  Indexed(const Arguments& a, Pool& pool) : pool_(pool), index_(FeatureIndex::open(a.target)) {
    if (!a.features.empty() && a.features != reduction().features())
      fail(fmt::format("the index was built of {}, not of {}", reduction().features(), a.features),
           a.target, "leave --features out, or build another index");
    if (!a.metric.empty() && parse_metric(a.metric) != metric())
      fail(fmt::format("the index was built for {}, not for {}", to_string(metric()), a.metric),
           a.target, "leave --metric out, or build another index");
    const IndexKind kind = index_.index().kind();
    for (const auto& [option, value, of] :
         {std::tuple("--effort", a.search.effort, IndexKind::hnsw),
          std::tuple("--probes", a.search.probes, IndexKind::ivf)})
      if (value && kind != of)
        fail(fmt::format("{} is a setting of {} indices, found one of kind {}", option,
                         to_string(of), to_string(kind)),
             a.target,
             fmt::format("leave {} out, or build an index with --kind {}", option, to_string(of)));
  }
  const Reduction& reduction() const override { return index_.reduction(); }
  Metric metric() const override { return index_.index().metric(); }
  size_t rows() const override { return index_.index().rows(); }
  Reopened reopen(ReopenOptions options) const override {
    return Reopened(index_.record(), pool_, std::move(options));
  }
  KnowsId knows_id() const override {
    return [this](std::string_view id) { return index_.find(id).has_value(); };
  }
  std::optional<size_t> row(const std::string& id) const override { return index_.find(id); }
  Matrix<float> vector(size_t row) const override {
    Matrix<float> copy(1, index_.index().width());
    std::copy_n(index_.index().row(row).data, copy.cols(), copy.data());
    return copy;
  }
  Neighbours search(View<const float> queries, size_t k,
                    const SearchOptions& options) const override {
    return index_.index().search(queries, k, pool_, options);
  }
  std::string id(size_t row) const override { return index_.id(row); }
  std::string class_name(size_t row) const override { return index_.class_name(row); }
  int64_t label(size_t row) const override { return index_.label(row); }

 private:
  Pool& pool_;
  FeatureIndex index_;
};

// What is asked for: a picture, or a row of the database.
struct Query {
  std::string name;
  bool image = true;
  std::optional<size_t> row;  // in the database
  std::string error;          // it cannot be answered
};

std::vector<Query> queries_of(const Arguments& a, const Database& database) {
  std::vector<Query> list;
  for (const std::string& image : a.images) list.push_back({.name = image});
  for (const std::string& id : a.rows) {
    list.push_back({.name = id, .image = false, .row = database.row(id)});
    if (!list.back().row)
      list.back().error = fmt::format(
          "there is no row with this id in {}; ids are in rows-*.jsonl of the store", a.target);
  }
  return list;
}

// A vector for each query; one that has none gets its error, and costs no other.
Matrix<float> query_vectors(const Database& database, const Arguments& a,
                            std::vector<Query>& queries, Pool& pool) {
  const size_t width = database.reduction().output_width();
  Matrix<float> vectors(queries.size(), width);
  for (size_t i = 0; i < queries.size(); ++i)
    if (queries[i].row) std::copy_n(database.vector(*queries[i].row).data(), width, vectors.row(i));
  if (a.images.empty()) return vectors;
  ReopenOptions options;
  options.model = a.model;
  if (!a.given.empty()) {
    options.projection_matrix = Checkpoint::open(a.given).read(kProjectionTensor);
    require_finite(options.projection_matrix, kProjectionTensor, a.given);
  }
  Reopened reopened = database.reopen(std::move(options));
  const std::vector<std::filesystem::path> files(a.images.begin(), a.images.end());
  std::vector<StoreFailure> failures;
  const Matrix<float> found = database.reduction().apply(
      reopened.rows(files, database.reduction().blocks(), database.knows_id(), &failures), pool);
  std::copy_n(found.data(), found.rows() * width, vectors.data());
  for (const StoreFailure& f : failures)
    queries[f.position].error = fmt::format("{} ({})", worded(f.reason), worded(f.hint));
  return vectors;
}

// The row that was asked for comes first, whatever was found: rows of identical pictures are
// equally near and come by number, a longer row has a larger inner product, and an index may miss
// the row itself, as a graph does whose links do not lead to hundreds of copies.
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

int run(const Arguments& a) {
  Pool pool(a.threads.count());
  std::unique_ptr<Database> database;
  if (is_index(a.target))
    database = std::make_unique<Indexed>(a, pool);
  else
    database = std::make_unique<WholeStore>(a, pool);
  if (database->rows() == 0)
    fail("expected rows to search in, found none", a.target, "extract some images first");
  std::vector<Query> queries = queries_of(a, *database);
  const Matrix<float> all = query_vectors(*database, a, queries, pool);
  std::vector<size_t> answered;
  for (size_t q = 0; q < queries.size(); ++q)
    if (queries[q].error.empty()) answered.push_back(q);
  const Matrix<float> vectors = gather(all, answered);
  Neighbours found;
  if (!answered.empty())
    found = database->search(vectors, std::min(a.k, database->rows()), a.search);
  const char* value_name = database->metric() == Metric::euclidean ? "distance" : "similarity";

  store::Json list = store::Json::array();  // ids may hold bytes that are no UTF-8
  size_t next = 0;                          // of the answers
  for (size_t q = 0; q < queries.size(); ++q) {
    const Query& query = queries[q];
    store::Json answer{{query.image ? "image" : "row", store::to_json_string(query.name)}};
    if (!query.error.empty()) {
      say("fungi: {}: {}\n", shown(query.name), query.error);
      answer["error"] = store::to_json_string(query.error);
      list.push_back(answer);
      continue;
    }
    const size_t at = next++;
    if (query.row)
      put_first(*query.row, vectors.view().slice(at, 1), database->metric(), at, found, pool);
    store::Json neighbours = store::Json::array();
    std::vector<std::vector<std::string>> table;
    for (size_t b = 0; b < found.index.cols(); ++b) {
      const size_t row = found.index(at, b);
      store::Json entry{{"id", store::to_json_string(database->id(row))},
                        {"row", row},
                        {value_name, found.value(at, b)}};
      if (database->label(row) >= 0)
        entry["label"] = database->label(row),
        entry["class"] = store::to_json_string(database->class_name(row));
      neighbours.push_back(entry);
      table.push_back({shown(database->id(row)),
                       database->label(row) >= 0 ? shown(database->class_name(row)) : "-",
                       fmt::format("{:.6f}", found.value(at, b))});
    }
    answer["neighbours"] = neighbours;
    list.push_back(answer);
    if (a.json) continue;
    if (queries.size() > 1) fmt::print("{}{}\n", q ? "\n" : "", shown(query.name));
    print_table({"id", "class", value_name}, table);
  }
  if (a.json) {
    const store::Json out{{"searched", store::to_json_string(a.target)},
                          {"features", database->reduction().features()},
                          {"metric", to_string(database->metric())},
                          {"queries", list}};
    fmt::print("{}\n", store::dump(out, 2));
  }
  if (answered.empty()) return kError;
  return answered.size() < queries.size() ? kPartial : kOk;
}

}  // namespace

Verb add_search(CLI::App& parent, CLI::App*& self) {
  self =
      parent.add_subcommand("search", "Find the rows nearest to images, or to rows of the store");
  auto a = std::make_shared<Arguments>();
  self->add_option("target", a->target, "A store (every row is compared) or an index of one")
      ->required();
  auto* images = self->add_option("--image", a->images,
                                  "Image files, extracted with the settings of the store");
  auto* rows = self->add_option("--row", a->rows, "Ids of rows");
  self->add_option("-k", a->k, "Neighbours; all rows where there are fewer")
      ->capture_default_str()
      ->type_name(kCount);
  self->add_option("-m,--model", a->model,
                   "Where the model is now; default: where it was when the store was made")
      ->needs(images);
  self->add_option(
          "--given", a->given,
          "Your own projection, for a store with --projection matrix: .npz or .safetensors")
      ->needs(images);
  self->add_option("--features", a->features,
                   "Blocks joined with +, e.g. embedding+kl; default: all, or those of the index");
  self->add_option("--metric", a->metric,
                   "euclidean, inner_product or cosine; default: euclidean, or that of the index")
      ->check(metric_name());
  self->add_option("--effort", a->search.effort,
                   "hnsw: candidates kept; 0 = 4 times k, at least 64")
      ->capture_default_str();
  self->add_option("--probes", a->search.probes,
                   "ivf: lists looked into; 0 = a sixteenth, at least 8")
      ->capture_default_str();
  a->threads.add_to(*self);
  self->add_flag("--json", a->json, "Print JSON");
  return [a, images, rows] {
    if (images->empty() && rows->empty()) {
      say("fungi: --image or --row is required\nSee fungi search --help.\n");
      return int(kUsage);
    }
    return run(*a);
  };
}

}  // namespace fungi::app
