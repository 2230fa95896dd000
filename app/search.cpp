// SPDX-License-Identifier: Apache-2.0
// fungi search STORE|INDEX --image FILE: the nearest rows of images, extracted as the rows were, or
// of rows by their id.
#include <fmt/format.h>

#include <optional>

#include "app/features.h"
#include "app/words.h"
#include "fungi/checkpoint/checkpoint.h"
#include "fungi/retrieve/database.h"
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

// What is asked for: a picture, or a row of the database.
struct Query {
  std::string name;
  bool image = true;
  std::optional<size_t> row;  // in the database
  std::string error;          // it cannot be answered
  size_t answer = 0;          // its place among those of its kind
};

std::vector<Query> queries_of(const Arguments& a, const Database& database) {
  std::vector<Query> list;
  for (const std::string& image : a.images) list.push_back({.name = image});
  for (const std::string& id : a.rows) {
    list.push_back({.name = id, .image = false, .row = database.find(id)});
    if (!list.back().row)
      list.back().error = fmt::format(
          "there is no row with this id in {}; ids are in rows-*.jsonl of the store", a.target);
  }
  return list;
}

// The vectors of all pictures; one that cannot be used gets its error, and costs no other.
Matrix<float> picture_vectors(const Database& database, const Arguments& a,
                              std::vector<Query>& queries, Notes& notes, Pool& pool) {
  ReopenOptions options;
  options.model = a.model;
  if (!a.given.empty()) {
    options.projection_matrix = Checkpoint::open(a.given).read(kProjectionTensor);
    require_finite(options.projection_matrix, kProjectionTensor, a.given);
  }
  Reopened reopened = database.reopen(pool, std::move(options));
  notes.add(reopened.backbone().notes());
  const std::vector<std::filesystem::path> files(a.images.begin(), a.images.end());
  std::vector<StoreFailure> failures;
  Matrix<float> vectors = database.reduction().apply(
      reopened.rows(files, database.reduction().blocks(), database.knows_id(), &failures), pool);
  for (const StoreFailure& f : failures)
    queries[f.position].error = fmt::format("{} ({})", worded(f.reason), worded(f.hint));
  return vectors;
}

struct Answers {
  Neighbours of_images, of_rows;
};

// Answers the queries without an error, and says where.
Answers search(const Database& database, const Arguments& a, std::vector<Query>& queries,
               Notes& notes, Pool& pool) {
  Matrix<float> vectors;
  if (!a.images.empty()) vectors = picture_vectors(database, a, queries, notes, pool);
  std::vector<size_t> images, rows;
  for (size_t q = 0; q < queries.size(); ++q) {
    if (!queries[q].error.empty()) continue;
    std::vector<size_t>& list = queries[q].image ? images : rows;
    queries[q].answer = list.size();
    list.push_back(queries[q].row.value_or(q));
  }
  const size_t k = std::min(a.k, database.rows());
  Answers out;
  if (!images.empty()) out.of_images = database.search(gather(vectors, images), k, pool, a.search);
  if (!rows.empty()) out.of_rows = database.search_rows(rows, k, pool, a.search);
  return out;
}

int run(const Arguments& a) {
  Pool pool(a.threads.count());
  DatabaseOptions options{.features = a.features};
  if (!a.metric.empty()) options.metric = parse_metric(a.metric);
  const std::unique_ptr<Database> database = open_database(a.target, options, pool);
  database->check(a.search);  // before a model is loaded
  std::vector<Query> queries = queries_of(a, *database);
  Notes notes{.shown = !a.json};
  const Answers answers = search(*database, a, queries, notes, pool);
  const char* value_name = database->metric() == Metric::euclidean ? "distance" : "similarity";

  store::Json list = store::Json::array();  // ids may hold bytes that are no UTF-8
  size_t answered = 0;
  for (size_t q = 0; q < queries.size(); ++q) {
    const Query& query = queries[q];
    store::Json answer{{query.image ? "image" : "row", store::to_json_string(query.name)}};
    if (!query.error.empty()) {
      say("fungi: {}: {}\n", shown(query.name), query.error);
      answer["error"] = store::to_json_string(query.error);
      list.push_back(answer);
      continue;
    }
    ++answered;
    const Neighbours& found = query.image ? answers.of_images : answers.of_rows;
    const size_t at = query.answer;
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
                          {"queries", list},
                          {"notes", notes.list}};
    fmt::print("{}\n", store::dump(out, 2));
  }
  if (answered == 0) return kError;
  return answered < queries.size() ? kPartial : kOk;
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
