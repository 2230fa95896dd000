// SPDX-License-Identifier: Apache-2.0
#include "python/settings.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "fungi/objective/factory.h"

namespace fungi::python {
namespace {

constexpr const char* kProjection = "projection";  // the name of a matrix among `given`

// "none" alone means the embedding and nothing else.
std::vector<std::string> objectives_of(const std::vector<std::string>& words) {
  std::vector<std::string> all;
  for (const std::string& word : words)
    for (std::string& one : split_objectives(word)) all.push_back(std::move(one));
  if (all == std::vector<std::string>{"none"}) return {};
  std::set<std::string> names;
  for (const std::string& text : all) {
    if (text == "none")
      raise("InputError", "'none' stands beside others", "objectives", "give it alone, or leave it out");
    if (const std::string name = text.substr(0, text.find(':')); !names.insert(name).second)
      raise("InputError", fmt::format("'{}' is given twice", name), "objectives",
            fmt::format("leave one out, or give it a name of its own, {}_b", name));
    make_objective_of_any_kind(text, {.embedding_width = 1, .token_width = 1});
  }
  return all;
}

Matrix<float> matrix_of(const std::string& name, nb::handle given) {
  const auto array = nb::cast<Array<float>>(given);
  const View<const float> values = view_of(array);
  for (size_t i = 0; i < values.rows; ++i)
    for (size_t j = 0; j < values.cols; ++j)
      if (!std::isfinite(values(i, j)))
        raise("InputError",
              fmt::format("'{}' holds {} at [{}, {}]: expected finite numbers", name, values(i, j),
                          i, j),
              "given", "mend the array: every feature would depend on it");
  return fungi::copy_of(values);
}

void apply_projection(const nb::dict& stated, ExtractorOptions& e) {
  if (stated.contains("projection"))
    e.projection = parse_projection(nb::cast<std::string>(stated["projection"]));
  if (stated.contains("projection_dim"))
    e.projection_rows = nb::cast<size_t>(stated["projection_dim"]);
  const bool own_rows =
      e.projection == ProjectionKind::matrix || e.projection == ProjectionKind::none;
  if (own_rows && stated.contains("projection_dim") && e.projection_rows)
    raise("InputError",
          fmt::format("projection=\"{}\" has its own number of rows, found {}",
                      to_string(e.projection), e.projection_rows),
          "projection_dim", "leave it out");
  if (stated.contains("given")) {
    for (const auto& [name, array] : nb::cast<nb::dict>(stated["given"])) {
      const std::string said = from_str(name);
      if (said == kProjection)
        e.projection_matrix = matrix_of(said, array);
      else
        e.given.push_back({said, matrix_of(said, array)});
    }
  }
  if (e.projection == ProjectionKind::matrix && e.projection_matrix.empty())
    raise("InputError", "projection=\"matrix\" needs the matrix", "given",
          "give an array named 'projection', or the file that holds it");
  if (e.projection != ProjectionKind::matrix && !e.projection_matrix.empty())
    raise("InputError",
          fmt::format("a projection is given, but `projection` says {}", to_string(e.projection)),
          "given", "use projection=\"matrix\", or leave the array out");
}

void require_gradients(const nb::dict& stated, const ExtractorOptions& e) {
  if (!e.objectives.empty()) return;
  for (const char* name : {"projection", "projection_dim", "layer", "keep_factors", "weight"})
    if (stated.contains(name))
      raise("InputError", "is about gradients, of which objectives=\"none\" has none", name,
            "leave it out");
}

}  // namespace

void apply(const nb::dict& stated, ExtractionSettings& settings) {
  ExtractorOptions& e = settings.extractor;
  BackboneOptions& b = settings.backbone;
  const auto text = [&](const char* name) { return nb::cast<std::string>(stated[name]); };
  const auto flag = [&](const char* name) { return nb::cast<bool>(stated[name]); };
  const auto has = [&](const char* name) { return stated.contains(name); };
  if (has("facts"))
    for (const auto& [key, value] : nb::cast<StatedFacts>(stated["facts"])) {
      require_stated_key(key);
      b.stated_facts[key] = value;
    }
  if (has("layer")) b.layer = text("layer");
  b.precision.reset();
  if (has("precision") && text("precision") != "auto")
    b.precision = parse_precision(text("precision"));
  if (has("objectives"))
    e.objectives = objectives_of(nb::cast<std::vector<std::string>>(stated["objectives"]));
  if (has("preset")) e.preset = parse_preset(text("preset"));
  if (has("weight")) e.gradient_weight = nb::cast<double>(stated["weight"]);
  if (has("seed")) e.seed = nb::cast<uint64_t>(stated["seed"]);
  if (has("storage")) settings.type = parse_store_type(text("storage"));
  if (has("exif")) e.decode.exif_orientation = flag("exif");
  if (has("allow_truncated")) e.decode.allow_truncated = flag("allow_truncated");
  if (has("prefix")) e.text.prefix = text("prefix");
  if (has("max_tokens")) e.text.max_tokens = nb::cast<size_t>(stated["max_tokens"]);
  if (has("window")) e.sound.window = nb::cast<double>(stated["window"]);
  if (has("tokenizer"))
    e.text.tokenizer = Tokenizer::open(nb::cast<std::filesystem::path>(stated["tokenizer"]));
  if (has("keep_factors") || e.objectives.empty())
    e.keep_factors = has("keep_factors") && flag("keep_factors");
  apply_projection(stated, e);
  require_gradients(stated, e);
  if (has("keep_factors") && e.keep_factors && settings.type == StoreType::float16)
    raise("InputError",
          "small gradients do not survive storage=\"float16\", and nothing could use the factors",
          "keep_factors", "leave one of the two out");
}

SampleKind parse_samples(const std::string& name) {
  for (const SampleKind kind : {SampleKind::image, SampleKind::text, SampleKind::sound})
    if (name == to_string(kind)) return kind;
  raise("InputError", fmt::format("expected image, text or sound, found '{}'", name), "samples", "");
}

DatasetOptions dataset_options(const nb::dict& stated) {
  DatasetOptions o;
  const auto read = [&](const char* name, std::string& into) {
    if (stated.contains(name)) into = from_str(stated[name]);
  };
  const auto seconds = [&](const char* name, double& into) {
    if (stated.contains(name)) into = nb::cast<double>(stated[name]);
  };
  std::string kind, samples;
  read("kind", kind);
  read("samples", samples);
  if (!kind.empty()) o.kind = parse_dataset_kind(kind);
  if (!samples.empty()) o.samples = parse_samples(samples);
  read("split", o.split);
  read("text_column", o.text_column);
  read("label_column", o.label_column);
  read("id_column", o.id_column);
  read("fold", o.fold);
  seconds("window", o.window);
  seconds("hop", o.hop);
  return o;
}

ExtractorOptions copy_of(const ExtractorOptions& o) {
  ExtractorOptions copy;
  copy.objectives = o.objectives;
  copy.preset = o.preset;
  copy.projection = o.projection;
  copy.projection_rows = o.projection_rows;
  copy.projection_matrix = o.projection_matrix.copy();
  copy.seed = o.seed;
  copy.projection_seed = o.projection_seed;
  copy.gradient_weight = o.gradient_weight;
  copy.keep_factors = o.keep_factors;
  copy.decode = o.decode;
  copy.text = o.text;
  copy.sound = o.sound;
  copy.waiting_bytes = o.waiting_bytes;
  for (const NamedMatrix& m : o.given) copy.given.push_back({m.name, m.values.copy()});
  return copy;
}

}  // namespace fungi::python
