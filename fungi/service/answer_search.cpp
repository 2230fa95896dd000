// SPDX-License-Identifier: Apache-2.0
// Neighbours and features of what a request brings.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "fungi/base/base64.h"
#include "fungi/feature/reopen.h"
#include "fungi/service/refused.h"
#include "fungi/service/state.h"

namespace fungi::service {
namespace {

using Kind = Question::Kind;

Kind kind_of(SampleKind samples) {
  switch (samples) {
    case SampleKind::image:
      return Kind::image;
    case SampleKind::text:
      return Kind::text;
    case SampleKind::sound:
      return Kind::sound;
    default:
      throw Refused(422, "this store holds samples of its own kind, which no request can bring",
                    "ask by row");
  }
}

const char* name_of(Kind kind) {
  constexpr const char* kNames[] = {"row", "image", "text", "sound"};
  return kNames[size_t(kind)];
}

Kind takes(const Opened& opened) {
  if (!opened.samples())
    throw Refused(422, "another program made this store: queries cannot be computed", "ask by row");
  return kind_of(*opened.samples());
}

void require_kind(const Opened& opened, Kind kind, const std::string& param) {
  if (const Kind wanted = takes(opened); kind != wanted)
    throw Refused(422,
                  fmt::format("the rows of this store were made of {}s, found {} {}",
                              name_of(wanted), kind == Kind::image ? "an" : "a", name_of(kind)),
                  "ask another store", 0, param);
}

// The name that random crops are drawn by, as `search` on the command line does it.
std::string drawn_by(const Opened& opened, const Question& q) {
  if (q.kind == Kind::text) return q.bytes;
  if (q.id.empty()) return "query";
  return query_id(q.id, opened.rows().knows_id());
}

std::shared_ptr<const Database> database_of(const Service::State::Snapshot& opened,
                                            const std::string& features, Pool& pool) {
  try {
    return opened->database(features, pool);
  } catch (const Refused&) {
    throw;
  } catch (const Error& e) {
    throw Refused(400, e.message(), e.hint(), 0, "features");
  }
}

Matrix<float> columns(const Matrix<float>& rows, const std::vector<StoreBlock>& from,
                      const std::vector<StoreBlock>& to) {
  Matrix<float> out(rows.rows(), total_width(to));
  for (size_t i = 0; i < rows.rows(); ++i) {
    float* at = out.row(i);
    for (const StoreBlock& b : to) {
      size_t column = 0;
      for (auto f = from.begin(); !(*f == b); ++f) column += f->width;
      at = std::copy_n(rows.row(i) + column, b.width, at);
    }
  }
  return out;
}

// The class that most of them have; of equal ones the first.
Json predicted(const Opened& opened, const Neighbours& found, size_t asked) {
  std::map<int64_t, size_t> votes;
  for (size_t i = 0; i < found.index.cols(); ++i)
    if (const size_t row = found.index(0, i); row != asked)
      if (const int64_t label = opened.rows().label(row); label >= 0) ++votes[label];
  if (votes.empty()) return nullptr;
  const auto most = std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) {
    return a.second < b.second;
  });
  return opened.class_name(most->first);
}

Json neighbours_json(const Opened& opened, const Samples* samples, Metric metric,
                     const Neighbours& found) {
  Json list = Json::array();
  for (size_t i = 0; i < found.index.cols(); ++i) {
    list.push_back(row_json(opened.rows(), samples, found.index(0, i)));
    list.back()[metric == Metric::euclidean ? "distance" : "similarity"] = found.value(0, i);
  }
  return list;
}

}  // namespace

WebAnswer answer_search(Service::State& state, const WebRequest& request) {
  ParsedSearch parsed = parse_search(request);
  SearchRequest& s = parsed.search;
  Question& q = s.question;
  Holding& held = state.holding(s.store);
  const auto opened = held.now();
  if (parsed.row_id) {
    const auto row = opened->rows().find(*parsed.row_id);
    if (!row) throw Refused(404, "there is no row with this id", "/v1/rows lists them", 0, "id");
    q.row = *row;
  }
  if (q.kind == Kind::row && q.row >= opened->rows().rows())
    throw Refused(404, fmt::format("there is no row {}, of {}", q.row, opened->rows().rows()),
                  "rows are counted from 0", 0, "row");
  std::vector<size_t> classes;
  for (const std::string& name : s.classes) {
    const auto label = opened->find_class(name);
    if (!label)
      throw Refused(404, fmt::format("there is no class '{}' in this store", name),
                    "/v1/classes lists those there are", 0, "classes");
    classes.push_back(*label);
  }
  std::sort(classes.begin(), classes.end());
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  std::vector<std::shared_ptr<const Database>> databases;
  std::vector<StoreBlock> blocks;
  for (const std::string& features : s.features) {
    databases.push_back(database_of(opened, features, state.searching));
    try {
      databases.back()->check(s.search);
    } catch (const Error& e) {
      throw Refused(400, e.message(), e.hint(), 0, s.search.effort ? "effort" : "probes");
    }
    for (const StoreBlock& b : databases.back()->reduction().blocks())
      if (std::find(blocks.begin(), blocks.end(), b) == blocks.end()) blocks.push_back(b);
  }
  Matrix<float> rows;
  if (q.kind != Kind::row) {
    if (parsed.any_file) q.kind = takes(*opened);
    require_kind(*opened, q.kind, parsed.any_file ? "file" : name_of(q.kind));
    q.id = drawn_by(*opened, q);
    const Kind kind = q.kind;
    std::vector<Question> one;
    one.push_back(std::move(q));
    rows = state.compute(opened, std::move(one), blocks, request.gone);
    q.kind = kind;
  }
  Json searches = Json::array();
  for (const auto& database : databases) {
    Service::State::Target target{};
    if (q.kind == Kind::row)
      target.row = q.row;
    else
      target.vector = database->reduction().apply(
          columns(rows, blocks, database->reduction().blocks()), state.searching);
    const size_t asked = q.kind == Kind::row ? q.row : SIZE_MAX;
    const Neighbours found = state.search(opened, database, std::move(target), s.k, classes,
                                          s.search, request.gone);
    searches.push_back(
        {{"features", database->reduction().features()},
         {"columns", database->reduction().output_width()},
         {"metric", to_string(database->metric())},
         {"predicted", predicted(*opened, found, asked)},
         {"neighbours", neighbours_json(*opened, held.samples(), database->metric(), found)}});
  }
  return {.body = dump({{"store", held.name()},
                        {"version", opened->version()},
                        {"rows", opened->rows().rows()},
                        {"kind", name_of(q.kind)},
                        {"searches", searches}})};
}

WebAnswer answer_embeddings(Service::State& state, const WebRequest& request) {
  EmbeddingRequest e = parse_embedding_request(request);
  Holding& held = state.holding(e.model);
  const auto opened = held.now();
  const auto database = database_of(opened, e.features, state.searching);
  const Reduction& reduction = database->reduction();
  if (e.dimensions && !reduction.pca())
    throw Refused(400, "this store has no PCA that could shorten its vectors",
                  "serve an index that was made with one, or leave dimensions out", 0,
                  "dimensions");
  if (e.dimensions > reduction.output_width())
    throw Refused(400,
                  fmt::format("expected at most {} dimensions, found {}", reduction.output_width(),
                              e.dimensions),
                  "ask for fewer", 0, "dimensions");
  const Kind kind = takes(*opened);
  std::vector<Question> list;
  for (std::string& input : e.input) {
    Question q{.kind = kind};
    if (kind == Kind::text) {
      q.bytes = std::move(input);
    } else {
      if (input.substr(0, 5) != "data:")
        throw Refused(422,
                      fmt::format("this store takes {}s, found a text", name_of(kind)),
                      "send data URLs, such as data:image/png;base64,...", 0, "input");
      q.bytes = read_base64(input, "input");
    }
    q.id = drawn_by(*opened, q);
    list.push_back(std::move(q));
  }
  const Matrix<float> vectors = reduction.apply(
      state.compute(opened, std::move(list), reduction.blocks(), request.gone), state.searching);
  const size_t width = e.dimensions ? e.dimensions : vectors.cols();
  Json data = Json::array();
  for (size_t i = 0; i < vectors.rows(); ++i) {
    const float* row = vectors.row(i);
    Json item{{"object", "embedding"}, {"index", i}};
    if (e.base64)
      item["embedding"] = to_base64({reinterpret_cast<const uint8_t*>(row), width * sizeof(float)});
    else
      item["embedding"] = std::vector<float>(row, row + width);
    data.push_back(std::move(item));
  }
  return {.body = dump({{"object", "list"},
                        {"data", data},
                        {"model", held.name()},
                        {"usage", {{"prompt_tokens", 0}, {"total_tokens", 0}}}})};
}

}  // namespace fungi::service
