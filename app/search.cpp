// SPDX-License-Identifier: Apache-2.0
// fungi search STORE|INDEX --image FILE: the nearest rows of images, sounds or texts, extracted as the rows
// were, or of rows by their id.
#include <fmt/format.h>

#include <optional>
#include <unordered_map>

#include "app/features.h"
#include "app/text_columns.h"
#include "app/words.h"
#include "fungi/checkpoint/checkpoint.h"
#include "fungi/hub/pull.h"
#include "fungi/retrieve/database.h"
#include "fungi/store/text.h"

namespace fungi::app {
namespace {

struct Arguments {
  std::string target, features, metric, model, given, data, split;
  TextColumnsArguments columns;
  std::vector<std::string> images, sounds, texts, rows;
  SearchOptions search;
  size_t k = 8;
  ThreadsOption threads;
  bool json = false;
};

// What is asked for: a picture, a sound or a text, whose vectors are computed in this order, or a row of the
// database.
struct Query {
  std::string name;
  const char* kind = "image";
  std::optional<size_t> row;  // in the database
  std::string error;          // it cannot be answered
  size_t answer = 0;          // its place among those that are computed, or among the rows
};

std::vector<Query> queries_of(const Arguments& a, const Database& database) {
  std::vector<Query> list;
  for (const std::string& image : a.images) list.push_back({.name = image});
  for (const std::string& sound : a.sounds) list.push_back({.name = sound, .kind = "audio"});
  for (const std::string& text : a.texts) list.push_back({.name = text, .kind = "text"});
  for (const std::string& id : a.rows) {
    list.push_back({.name = id, .kind = "row", .row = database.find(id)});
    if (!list.back().row)
      list.back().error = fmt::format(
          "there is no row with this id in {}; ids are in rows-*.jsonl of the store", a.target);
  }
  return list;
}

// The vectors of all pictures, sounds and texts; one that cannot be used gets its error, and costs no
// other.
Matrix<float> query_vectors(const Database& database, const Arguments& a,
                            std::vector<Query>& queries, Notes& notes, Pool& pool) {
  ReopenOptions options;
  options.model = pulled_model(a.model);
  if (!a.given.empty()) {
    options.projection_matrix = Checkpoint::open(a.given).read(kProjectionTensor);
    require_finite(options.projection_matrix, kProjectionTensor, a.given);
  }
  Reopened reopened = database.reopen(pool, std::move(options));
  notes.add(reopened.backbone().notes());
  const Reduction& reduction = database.reduction();
  std::vector<std::filesystem::path> files(a.images.begin(), a.images.end());
  files.insert(files.end(), a.sounds.begin(), a.sounds.end());
  Matrix<float> all(files.size() + a.texts.size(), reduction.input_width());
  const auto take = [&](const Matrix<float>& rows, size_t first,
                        const std::vector<StoreFailure>& failures) {
    std::copy_n(rows.data(), rows.rows() * rows.cols(), all.row(first));
    for (const StoreFailure& f : failures)
      queries[first + f.position].error = fmt::format("{} ({})", worded(f.reason), worded(f.hint));
  };
  std::vector<StoreFailure> failures;
  if (!files.empty()) {
    take(reopened.rows(files, reduction.blocks(), database.knows_id(), &failures), 0, failures);
  }
  if (!a.texts.empty()) {
    failures.clear();
    std::vector<Text> texts;
    for (const std::string& text : a.texts) texts.push_back({text});
    take(reopened.rows(texts, reduction.blocks(), &failures), files.size(), failures);
  }
  return reduction.apply(std::move(all), pool);
}

struct Answers {
  Neighbours computed, of_rows;
};

// Answers the queries without an error, and says where.
Answers search(const Database& database, const Arguments& a, std::vector<Query>& queries,
               Notes& notes, Pool& pool) {
  Matrix<float> vectors;
  if (!a.images.empty() || !a.sounds.empty() || !a.texts.empty())
    vectors = query_vectors(database, a, queries, notes, pool);
  std::vector<size_t> computed, rows;
  for (size_t q = 0; q < queries.size(); ++q) {
    if (!queries[q].error.empty()) continue;
    std::vector<size_t>& list = queries[q].row ? rows : computed;
    queries[q].answer = list.size();
    list.push_back(queries[q].row.value_or(q));
  }
  const size_t k = std::min(a.k, database.rows());
  Answers out;
  if (!computed.empty())
    out.computed = database.search(gather(vectors, computed), k, pool, a.search);
  if (!rows.empty()) out.of_rows = database.search_rows(rows, k, pool, a.search);
  return out;
}

// The texts of rows by their ids, for people to read.
class ShownTexts {
 public:
  explicit ShownTexts(const Arguments& a) {
    if (a.data.empty()) return;
    DatasetOptions options{.samples = SampleKind::text, .split = a.split};
    a.columns.apply(options);
    data_ = open_dataset(a.data, options);
    for (size_t i = 0; i < data_->size(); ++i) place_.emplace(data_->id(i), i);
  }
  explicit operator bool() const { return data_ != nullptr; }
  std::string of(const std::string& id) const {
    const auto at = place_.find(id);
    if (at == place_.end()) return "";
    return text_of(data_->decode(at->second, data_->read(at->second))).utf8;
  }

 private:
  std::unique_ptr<Dataset> data_;
  std::unordered_map<std::string, size_t> place_;
};

int run(const Arguments& a) {
  const ShownTexts texts(a);
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
    store::Json answer{{query.kind, store::to_json_string(query.name)}};
    if (!query.error.empty()) {
      say("fungi: {}: {}\n", shown(query.name), query.error);
      answer["error"] = store::to_json_string(query.error);
      list.push_back(answer);
      continue;
    }
    ++answered;
    const Neighbours& found = query.row ? answers.of_rows : answers.computed;
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
      table.push_back({shown(database->id(row)),
                       database->label(row) >= 0 ? shown(database->class_name(row)) : "-",
                       fmt::format("{:.6f}", found.value(at, b))});
      if (texts) {
        const std::string text = texts.of(database->id(row));
        entry["text"] = store::to_json_string(text);
        table.back().push_back(shown(text));
      }
      neighbours.push_back(entry);
    }
    answer["neighbours"] = neighbours;
    list.push_back(answer);
    if (a.json) continue;
    if (queries.size() > 1) fmt::print("{}{}\n", q ? "\n" : "", shown(query.name));
    print_table(texts ? std::vector<std::string>{"id", "class", value_name, "text"}
                      : std::vector<std::string>{"id", "class", value_name},
                table);
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
  self = parent.add_subcommand("search",
                               "Find the rows nearest to images, sounds or texts, or to rows of the store");
  auto a = std::make_shared<Arguments>();
  self->add_option("target", a->target, "A store (every row is compared) or an index of one")
      ->required();
  auto* images = self->add_option("--image", a->images,
                                  "Image files, extracted with the settings of the store");
  auto* sounds = self->add_option("--audio", a->sounds,
                                  "Files of sounds, extracted with the settings of the store");
  auto* texts = self->add_option("--text", a->texts,
                                 "Texts, one in quotes each, extracted with the settings of the "
                                 "store");
  auto* rows = self->add_option("--row", a->rows, "Ids of rows");
  auto* data = self->add_option("--data", a->data,
                                "The data set of texts that was extracted: to show them");
  self->add_option("--split", a->split, "Split of it, where it was extracted with one")
      ->needs(data);
  a->columns.add_to(*self);
  self->add_option("-k", a->k, "Neighbours; all rows where there are fewer")
      ->capture_default_str()
      ->type_name(kCount);
  self->add_option("-m,--model", a->model,
                   "Where the model is now; default: where it was when the store was made");
  self->add_option(
      "--given", a->given,
      "Your own projection, for a store with --projection matrix: .npz or .safetensors");
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
  return [a, images, sounds, texts, rows] {
    const bool computed = !images->empty() || !sounds->empty() || !texts->empty();
    if (!computed && rows->empty()) {
      say("fungi: --image, --audio, --text or --row is required\nSee fungi search --help.\n");
      return int(kUsage);
    }
    if (!computed && (!a->model.empty() || !a->given.empty())) {
      say("fungi: --model and --given are about --image, --audio or --text, and neither is there\n"
          "See fungi search --help.\n");
      return int(kUsage);
    }
    return run(*a);
  };
}

}  // namespace fungi::app
