// SPDX-License-Identifier: Apache-2.0
#include "fungi/segment/segmenter_json.h"

#include <fmt/format.h>

#include "fungi/base/error.h"
#include "fungi/base/json.h"
#include "fungi/base/json_fields.h"
#include "fungi/base/random.h"
#include "fungi/checkpoint/file_bytes.h"
#include "fungi/checkpoint/sha256.h"

namespace fungi::segment {
namespace {

constexpr const char* kFormat = "fungi-segmenter";
constexpr size_t kVersion = 1;

std::string sum_of(View<const float> matrix) {
  const Matrix<float> compact = copy_of(matrix);
  return sha256(std::as_bytes(std::span(compact.data(), compact.rows() * compact.cols())));
}

Json model_json(const PatchFeatures& features) {
  const BackboneOptions& o = features.backbone().options();
  return {{"sha256", features.backbone().sha256()},
          {"precision", to_string(*o.precision)},
          {"stated", o.stated_facts},
          {"mha_input_as_activation", o.mha_input_as_activation},
          {"clip_with_gelu", o.clip_with_gelu}};
}

// The gradients': what of them is drawn, and how they are projected.
Json gradient_json(const PatchFeatures& features) {
  const PatchFeatureOptions& o = features.options();
  Json parameters = Json::object(), own = Json::object();
  for (const Parameter& p : features.parameters())
    std::visit([&](const auto& value) { parameters[p.name] = value; }, p.value);
  for (const NamedMatrix& m : o.given) own[m.name] = sum_of(m.values);
  if (!o.projection_matrix.empty()) own["projection"] = sum_of(o.projection_matrix);
  return {{"objective", o.objective.substr(0, o.objective.find(':'))},
          {"parameters", parameters},
          {"layer", features.backbone().options().layer},
          {"projection", to_string(o.projection)},
          {"columns", features.width() - features.embedding_width()},
          {"projection_seed", o.projection_seed.value_or(o.seed)},
          {"own", own}};
}

}  // namespace

Json bank_settings(const PatchFeatures& features, const MaskDataset& train,
                   const std::vector<size_t>& pictures, size_t epochs, size_t keep,
                   bool gradients) {
  uint64_t ids = fnv1a64("");
  for (const size_t picture : pictures) ids = fnv1a64("\n", fnv1a64(train.id(picture), ids));
  Json out{{"model", model_json(features)},
           {"height", features.options().height},
           {"width", features.options().width},
           {"preset", to_string(features.options().preset)},
           {"seed", features.options().seed},
           {"pictures", pictures.size()},
           {"ids", fmt::format("{:016x}", ids)},
           {"epochs", epochs},
           {"patches", keep},
           {"ignore", train.ignore()}};
  if (gradients) out["gradient"] = gradient_json(features);
  return out;
}

Json options_json(const SegmentOptions& o) {
  return {{"memory", o.memory},           {"epochs", o.epochs},
          {"images", o.images},           {"k", o.k},
          {"temperature", o.temperature}, {"search", to_string(o.search.search)},
          {"lists", o.search.lists},      {"probes", o.search.probes},
          {"rerank", o.search.rerank}};
}

Json to_json(const PatchFeatures& features, const SegmentOptions& options,
             const MaskDataset& train) {
  const PatchFeatureOptions& o = features.options();
  Json model = model_json(features);
  model["path"] = std::filesystem::absolute(features.backbone().path()).string();
  model["layer"] = features.backbone().options().layer;
  return {{"format", kFormat},
          {"version", kVersion},
          {"model", model},
          {"height", o.height},
          {"width", o.width},
          {"objective", o.objective},
          {"preset", to_string(o.preset)},
          {"projection", to_string(o.projection)},
          {"projection_rows", o.projection_rows},
          {"seed", o.seed},
          {"projection_seed", o.projection_seed.value_or(o.seed)},
          {"own_state", !o.given.empty() || !o.projection_matrix.empty()},
          {"options", options_json(options)},
          {"classes", train.classes()},
          {"class_names", train.class_names()}};
}

Description read_description(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kSegmentFile;
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(file, unknown))
    fail("there is no memory of a segmentation, or it is not complete", folder.string(),
         "name the folder `bank` that `segment` has made, or repeat its command to go on");
  const std::string place = file.string();
  const nlohmann::json json = parse_json(FileBytes::map(file)->text());
  JsonFields fields(json, "", place);
  Description d;
  std::string word;
  size_t version = 0;
  fields.read("format", word);
  if (word != kFormat) fields.refuse("format", fmt::format("'{}'", kFormat));
  fields.read("version", version);
  if (version != kVersion)
    fail(fmt::format("expected version {}, found {}", kVersion, version), place,
         "make the memory again");
  JsonFields model = fields.inside("model");
  model.read("path", word);
  d.model = word;
  model.read("sha256", d.sha256);
  model.read("precision", word);
  d.backbone.precision = parse_precision(word, place);
  model.read("layer", d.backbone.layer);
  JsonFields stated = model.inside("stated");
  for (const std::string& name : stated.names()) stated.read(name, d.backbone.stated_facts[name]);
  fields.read("height", d.features.height);
  fields.read("width", d.features.width);
  fields.read("objective", d.features.objective);
  fields.read("preset", word);
  d.features.preset = parse_preset(word);
  fields.read("projection", word);
  d.features.projection = parse_projection(word);
  fields.read("projection_rows", d.features.projection_rows);
  fields.read("seed", d.features.seed);
  uint64_t seed = 0;
  fields.read("projection_seed", seed);
  d.features.projection_seed = seed;
  fields.read("own_state", d.own_state);
  JsonFields options = fields.inside("options");
  SegmentOptions& o = d.options;
  options.read("memory", o.memory);
  options.read("epochs", o.epochs);
  options.read("images", o.images);
  options.read("k", o.k);
  options.read("temperature", o.temperature);
  if (!(o.temperature > 0)) options.refuse("temperature", "a positive number");
  options.read("search", word);
  o.search.search = parse_bank_search(word);
  options.read("lists", o.search.lists);
  options.read("probes", o.search.probes);
  options.read("rerank", o.search.rerank);
  fields.read("classes", d.classes);
  const nlohmann::json& names = fields.value("class_names");
  if (!names.is_array() || (!names.empty() && names.size() != d.classes))
    fields.refuse("class_names", "a list of one name per class, or an empty one");
  for (const auto& name : names) {
    if (!name.is_string()) fields.refuse("class_names", "a list of names");
    d.class_names.push_back(name);
  }
  return d;
}

}  // namespace fungi::segment
