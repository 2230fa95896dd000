// SPDX-License-Identifier: Apache-2.0
// Answers that tell what there is: stores, rows, classes.
#include <fmt/format.h>

#include <charconv>

#include "fungi/feature/modality.h"
#include "fungi/service/refused.h"
#include "fungi/service/state.h"

namespace fungi::service {
namespace {

constexpr size_t kMostRows = 4'294'967'295;

}  // namespace

std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json row_json(const Database& rows, const Samples* samples, size_t row) {
  const int64_t label = rows.label(row);
  const std::string id = rows.id(row);
  Json out{{"row", row},
           {"id", id},
           {"label", label},
           {"class", label < 0 ? Json() : Json(rows.class_name(row))}};
  if (samples)
    if (auto text = samples->text(id)) out["text"] = std::move(*text);
  return out;
}

WebAnswer answer_stores(Service::State& state) {
  Json list = Json::array();
  for (const auto& held : state.holdings) {
    std::shared_ptr<const Opened> now;
    try {
      now = held->now();
    } catch (const Error&) {  // it has gone, as trouble() says
    }
    const std::string trouble = held->trouble();
    Json blocks = Json::array();
    if (now)
      for (const StoreBlock& b : now->rows().reduction().blocks())
        blocks.push_back({{"name", b.name}, {"columns", b.width}, {"weight", b.weight}});
    const StoreSpec spec = now ? now->manifest().spec : StoreSpec{};
    list.push_back(
        {{"name", held->name()},
         {"kind", now && now->is_index() ? "index" : "store"},
         {"rows", now ? now->rows().rows() : 0},
         {"classes", now ? now->rows_by_class().size() : 0},
         {"labelled", now ? now->rows().rows() - now->without_label() : 0},
         {"samples", !now || !now->samples()                 ? "unknown"
                     : *now->samples() == SampleKind::own ? "custom"
                                                             : to_string(*now->samples())},
         {"blocks", blocks},
         {"features", now ? now->rows().reduction().features() : ""},
         {"columns", now ? now->rows().reduction().output_width() : 0},
         {"metric", now ? to_string(now->rows().metric()) : "euclidean"},
         {"shows_samples", held->samples() != nullptr},
         {"takes_samples", now && now->extractor().ready()},
         {"weights", spec.model_sha256},
         {"model", std::filesystem::path(spec.model_path).filename().string()},
         {"version", now ? now->version() : 0},
         {"trouble", trouble.empty() ? Json() : Json(trouble)}});
  }
  return {.body = dump({{"stores", list}})};
}

WebAnswer answer_models(Service::State& state) {
  Json list = Json::array();
  for (const auto& held : state.holdings)
    list.push_back(
        {{"id", held->name()}, {"object", "model"}, {"created", 0}, {"owned_by", "fungi"}});
  return {.body = dump({{"object", "list"}, {"data", list}})};
}

WebAnswer answer_rows(Service::State& state, const WebRequest& request) {
  Holding& held = state.holding(word(request, "store").value_or(""));
  const auto now = held.now();
  const size_t offset = number(request, "offset", 0, 0, kMostRows);
  const size_t limit = number(request, "limit", 100, 1, 1000);
  Json list = Json::array();
  size_t total = 0;
  if (const auto id = word(request, "id")) {
    const auto row = now->rows().find(*id);
    total = row ? 1 : 0;
    if (row && offset == 0) list.push_back(row_json(now->rows(), held.samples(), *row));
  } else if (const auto name = word(request, "class")) {
    const auto label = now->find_class(*name);
    if (!label)
      throw Refused(404, fmt::format("there is no class '{}' in this store", *name),
                    "/v1/classes lists those there are", 0, "class");
    const auto& rows = now->rows_by_class()[*label];
    total = rows.size();
    for (size_t i = offset; i < total && i - offset < limit; ++i)
      list.push_back(row_json(now->rows(), held.samples(), rows[i]));
  } else {
    total = now->rows().rows();
    for (size_t i = offset; i < total && i - offset < limit; ++i)
      list.push_back(row_json(now->rows(), held.samples(), i));
  }
  return {.body = dump({{"store", held.name()}, {"total", total}, {"offset", offset}, {"rows", list}})};
}

WebAnswer answer_row(Service::State& state, const WebRequest& request, std::string_view rest) {
  const size_t slash = rest.find('/');
  const std::string_view digits = rest.substr(0, slash),
                         part = slash == std::string_view::npos ? "" : rest.substr(slash + 1);
  size_t row = 0;
  const auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), row);
  if (wrong != std::errc() || end != digits.data() + digits.size())
    refuse("expected the number of a row in the address, found something else", "row",
           "/v1/rows?id=... tells the number of an id");
  if (slash != std::string_view::npos && part != "thumbnail" && part != "sample")
    throw Refused(404, "there is nothing at this address", "/openapi.json tells what there is");
  Holding& held = state.holding(word(request, "store").value_or(""));
  const auto now = held.now();
  const size_t side = number(request, "side", 128, 16, 512);
  if (row >= now->rows().rows())
    throw Refused(404, fmt::format("there is no row {}, of {}", row, now->rows().rows()),
                  "rows are counted from 0", 0, "row");
  if (slash == std::string_view::npos)
    return {.body = dump(row_json(now->rows(), held.samples(), row))};
  if (!held.samples())
    throw Refused(404, "the samples of this store are not served",
                  "start the server with the data set of the store");
  return part == "sample" ? held.samples()->sample(now->rows().id(row))
                          : held.samples()->thumbnail(now->rows().id(row), side);
}

WebAnswer answer_classes(Service::State& state, const WebRequest& request) {
  Holding& held = state.holding(word(request, "store").value_or(""));
  const auto now = held.now();
  Json list = Json::array();
  for (size_t c = 0; c < now->rows_by_class().size(); ++c)
    list.push_back({{"label", c},
                    {"class", now->class_name(int64_t(c))},
                    {"rows", now->rows_by_class()[c].size()}});
  return {.body = dump({{"store", held.name()},
                        {"classes", list},
                        {"without_label", now->without_label()}})};
}

}  // namespace fungi::service
