// SPDX-License-Identifier: Apache-2.0
// Every struct is taken apart by name where it is written and where it is read: a field that is
// added does not compile until both know it.
#include "fungi/feature/settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/error.h"
#include "fungi/base/json.h"
#include "fungi/base/json_fields.h"
#include "fungi/kernel/kernel.h"

namespace fungi {
namespace {

using nlohmann::json;

json to_json(const Preprocess& preprocess) {
  const auto& [resize, resize_size, filter, input_size, floor_crop, mean, std] = preprocess;
  return {{"resize", to_string(resize)},
          {"resize_size", resize_size},
          {"filter", to_string(filter)},
          {"input_size", input_size},
          {"floor_crop", floor_crop},
          {"mean", mean},
          {"std", std}};
}

void read(JsonFields fields, Preprocess& preprocess) {
  auto& [resize, resize_size, filter, input_size, floor_crop, mean, std] = preprocess;
  using enum Preprocess::Resize;
  const auto word = [](auto value) { return to_string(value); };
  fields.read_word("resize", resize, {none, short_side, squash}, word);
  fields.read("resize_size", resize_size);
  fields.read_word("filter", filter, {Filter::bilinear, Filter::bicubic}, word);
  fields.read("input_size", input_size);
  fields.read("floor_crop", floor_crop);
  fields.read("mean", mean);
  fields.read("std", std);
  fields.require_all_read();
}

json to_json(const ImageSettings& image) {
  const auto& [decode, preprocess] = image;
  const auto& [exif_orientation, allow_truncated, max_pixels] = decode;
  (void)max_pixels;
  return {{"exif_orientation", exif_orientation},
          {"allow_truncated", allow_truncated},
          {"preprocess", to_json(preprocess)}};
}

void read(JsonFields fields, ImageSettings& image) {
  auto& [decode, preprocess] = image;
  auto& [exif_orientation, allow_truncated, max_pixels] = decode;
  (void)max_pixels;
  fields.read("exif_orientation", exif_orientation);
  fields.read("allow_truncated", allow_truncated);
  read(fields.inside("preprocess"), preprocess);
  fields.require_all_read();
}

json to_json(const TextSettings& text) {
  const auto& [tokenizer, max_tokens, prefix] = text;
  return {{"tokenizer", tokenizer}, {"max_tokens", max_tokens}, {"prefix", prefix}};
}

void read(JsonFields fields, TextSettings& text) {
  auto& [tokenizer, max_tokens, prefix] = text;
  fields.read("tokenizer", tokenizer);
  fields.read("max_tokens", max_tokens);
  fields.read("prefix", prefix);
  fields.require_all_read();
}

json to_json(const SoundFrontEnd& front_end) {
  const auto& [kind, rate, window, hop, fft, mels, bins, low_hz, high_hz, frames, mean, std,
               normalise, centre] = front_end;
  return {{"kind", to_string(kind)},
          {"rate", rate},
          {"window", window},
          {"hop", hop},
          {"fft", fft},
          {"mels", mels},
          {"bins", bins},
          {"low_hz", low_hz},
          {"high_hz", high_hz},
          {"frames", frames},
          {"mean", mean},
          {"std", std},
          {"normalise", normalise},
          {"centre", centre}};
}

void read(JsonFields fields, SoundFrontEnd& front_end) {
  auto& [kind, rate, window, hop, fft, mels, bins, low_hz, high_hz, frames, mean, std, normalise,
         centre] = front_end;
  using enum SoundFrontEnd::Kind;
  fields.read_word("kind", kind, {kaldi, whisper, mfcc},
                   [](SoundFrontEnd::Kind value) { return to_string(value); });
  for (const auto& [name, number] :
       {std::pair("rate", &rate), std::pair("window", &window), std::pair("hop", &hop),
        std::pair("fft", &fft), std::pair("mels", &mels), std::pair("bins", &bins),
        std::pair("frames", &frames)})
    fields.read(name, *number);
  fields.read("low_hz", low_hz);
  fields.read("high_hz", high_hz);
  fields.read("mean", mean);
  fields.read("std", std);
  fields.read("normalise", normalise);
  fields.read("centre", centre);
  fields.require_all_read();
}

json to_json(const SoundSettings& sound) {
  const auto& [front_end, resampler, window, allow_truncated] = sound;
  return {{"front_end", to_json(front_end)},
          {"resampler", resampler},
          {"window", window},
          {"allow_truncated", allow_truncated}};
}

void read(JsonFields fields, SoundSettings& sound) {
  auto& [front_end, resampler, window, allow_truncated] = sound;
  read(fields.inside("front_end"), front_end);
  fields.read("resampler", resampler);
  fields.read("window", window);
  fields.read("allow_truncated", allow_truncated);
  fields.require_all_read();
}

json to_json(const OwnSettings& own) { return json(own.facts); }

void read(JsonFields fields, OwnSettings& own) {
  for (const std::string& name : fields.names()) fields.read(name, own.facts[name]);
}

const char* key_of(const ImageSettings&) { return "image"; }
const char* key_of(const TextSettings&) { return "text"; }
const char* key_of(const SoundSettings&) { return "sound"; }
const char* key_of(const OwnSettings&) { return "own"; }

// What stands under the key of one alternative; false: another one does.
template <class Kind>
bool read_kind(JsonFields& fields, InputSettings& input) {
  const char* key = key_of(Kind{});
  if (!fields.has(key)) return false;
  read(fields.inside(key), input.emplace<Kind>());
  return true;
}

// Its seed is named only where it is not that of the whole run: one difference, and one message.
json to_json(const ProjectionSettings& projection, uint64_t run_seed) {
  const auto& [kind, rows, seed, matrix_sha256] = projection;
  json out{{"kind", to_string(kind)}, {"rows", rows}};
  if (seed != run_seed) out["seed"] = seed;
  if (!matrix_sha256.empty()) out["sha256"] = matrix_sha256;
  return out;
}

void read(JsonFields fields, ProjectionSettings& projection, uint64_t run_seed) {
  auto& [kind, rows, seed, matrix_sha256] = projection;
  using enum ProjectionKind;
  fields.read_word("kind", kind, {sign, sign_reference, gaussian, sparse, factored, matrix, none},
                   [](ProjectionKind value) { return to_string(value); });
  fields.read("rows", rows);
  seed = run_seed;
  if (fields.has("seed")) fields.read("seed", seed);
  if (fields.has("sha256")) fields.read("sha256", matrix_sha256);
  fields.require_all_read();
}

json to_json(const GradientSettings& gradient, uint64_t run_seed) {
  const auto& [layer, norm1_as_input, shape, projection] = gradient;
  const auto& [outputs, inputs, bias] = shape;
  return {{"layer", layer},     {"norm1_as_input", norm1_as_input},
          {"outputs", outputs}, {"inputs", inputs},
          {"bias", bias},       {"projection", to_json(projection, run_seed)}};
}

void read(JsonFields fields, GradientSettings& gradient, uint64_t run_seed) {
  auto& [layer, norm1_as_input, shape, projection] = gradient;
  auto& [outputs, inputs, bias] = shape;
  fields.read("layer", layer);
  fields.read("norm1_as_input", norm1_as_input);
  fields.read("outputs", outputs);
  fields.read("inputs", inputs);
  fields.read("bias", bias);
  if (outputs == 0) fields.refuse("outputs", "a number from 1 on");
  if (inputs == 0) fields.refuse("inputs", "a number from 1 on");
  read(fields.inside("projection"), projection, run_seed);
  fields.require_all_read();
}

json to_json(const ObjectiveSettings& objective) {
  json out = json::object();
  for (const auto& [name, value] : objective.parameters)
    std::visit([&, key = name](const auto& v) { out[key] = v; }, value);
  return out;
}

void read(JsonFields fields, ObjectiveSettings& objective) {
  for (const std::string& name : fields.names()) {
    auto& parameter = objective.parameters[name];
    if (fields.value(name).is_string())
      fields.read(name, parameter.emplace<std::string>());
    else
      fields.read(name, parameter.emplace<double>());
  }
}

// Names of objectives and of layers in the order of the blocks: objects have none.
struct PipelineNames {
  std::vector<std::string> objectives, layers;
};
PipelineNames names_in(const std::string& pipeline) {
  PipelineNames names;
  const auto add_once = [](std::vector<std::string>& list, std::string_view name) {
    if (std::find(list.begin(), list.end(), name) == list.end()) list.emplace_back(name);
  };
  const std::vector<std::string> blocks = split_features(pipeline);
  for (size_t i = 1; i < blocks.size(); ++i) {
    const auto [objective, layer] = split_layer(blocks[i]);
    add_once(names.objectives, objective);
    if (!layer.empty()) add_once(names.layers, layer);
  }
  return names;
}

// What levels the columns of activations in int8: the weights of the norms before them.
constexpr const char* kSmoothing = "norms";

Settings read_fields(const StoreSpec& spec, const std::string& place) {
  const json value = parse_json(spec.settings);
  JsonFields fields(value, "settings", place);
  Settings settings;
  auto& [preset, precision, seed, objectives, gradient, layers, stated, input] = settings;
  const PipelineNames names = names_in(spec.pipeline);
  fields.read_word("preset", preset, kAllPresets,
                   [](Preset v) { return to_string(v); });
  precision = parse_precision(spec.precision, place);
  if (precision == Precision::int8) {
    std::string smoothing;
    fields.read("smoothing", smoothing);
    if (smoothing != kSmoothing)
      fail(fmt::format("expected smoothing '{}', found '{}'", kSmoothing, smoothing), place);
  }
  fields.read("seed", seed);
  JsonFields each = fields.inside("objectives");
  for (const std::string& name : names.objectives)
    read(each.inside(name), objectives.emplace_back(ObjectiveSettings{name, {}}));
  each.require_all_read();
  if (!names.layers.empty()) {
    JsonFields of_layers = fields.inside("layers");
    for (const std::string& name : names.layers) {
      read(of_layers.inside(name), layers.emplace_back(), seed);
      if (layers.back().layer != name) of_layers.refuse(name, "the layer of that name");
    }
    of_layers.require_all_read();
  } else if (!objectives.empty()) {
    read(fields.inside("gradient"), gradient.emplace(), seed);
  }
  JsonFields facts = fields.inside("stated");
  for (const std::string& name : facts.names()) facts.read(name, stated[name]);
  if (!read_kind<OwnSettings>(fields, input) && !read_kind<TextSettings>(fields, input) &&
      !read_kind<SoundSettings>(fields, input))
    read(fields.inside(key_of(ImageSettings{})), input.emplace<ImageSettings>());
  fields.require_all_read();
  return settings;
}

}  // namespace

ProjectionSettings settings_of(const Projection& projection) {
  return {projection.kind(), projection.rows(), projection.seed(), projection.matrix_sha256()};
}

void write_settings(const Settings& settings, StoreSpec& spec) {
  const auto& [preset, precision, seed, objectives, gradient, layers, stated, input] = settings;
  spec.pipeline = "embedding";
  spec.precision = to_string(precision);
  json out{{"preset", to_string(preset)},
           {"seed", seed},
           {"objectives", json::object()},
           {"stated", json(stated)}};
  for (const ObjectiveSettings& objective : objectives) {
    if (layers.empty()) spec.pipeline += "+" + objective.name;
    for (const GradientSettings& layer : layers)
      spec.pipeline += "+" + layer_block(objective.name, layer.layer);
    out["objectives"][objective.name] = to_json(objective);
  }
  if (gradient) out["gradient"] = to_json(*gradient, seed);
  for (const GradientSettings& layer : layers) out["layers"][layer.layer] = to_json(layer, seed);
  if (precision == Precision::int8) out["smoothing"] = kSmoothing;
  std::visit([&](const auto& kind) { out[key_of(kind)] = to_json(kind); }, input);
  try {
    spec.settings = out.dump();
  } catch (const json::exception& e) {
    fail(fmt::format("the settings cannot be written as JSON: {}", e.what()), "settings",
         "use UTF-8 in parameters of objectives and in stated facts");
  }
}

Settings read_settings(const StoreSpec& spec, const std::string& place) {
  try {
    return read_fields(spec, place);
  } catch (const Error& e) {
    fail(fmt::format("the settings do not say how the rows were made: {}", e.message()), place,
         "only stores that `extract` wrote, or with the settings of Extractor::spec(), can be "
         "continued; extract again");
  }
}

bool has_settings(const StoreSpec& spec) {
  const json value = parse_json(spec.settings);
  return value.is_object() && value.contains("preset");
}

std::string dataset_name(const StoreSpec& spec) {
  if (has_settings(spec))
    if (const auto gradient = read_settings(spec, "settings").gradient)
      for (const auto& [end, name] :
           {std::pair{".attn.qkv", "attn_qkv"}, {".mlp.fc1", "mlp_fc1"}, {".mlp.fc2", "mlp_fc2"}})
        if (gradient->layer.ends_with(end)) return name;
  return "attn_proj";
}

Settings settings_of_blocks(Settings settings, const std::vector<std::string>& blocks,
                            bool projected) {
  const auto holds = [&](const ObjectiveSettings& objective) {
    return std::any_of(blocks.begin(), blocks.end(), [&](const std::string& block) {
      return split_layer(block).first == objective.name || factors_of(block) == objective.name;
    });
  };
  std::erase_if(settings.objectives, [&](const auto& o) { return !holds(o); });
  std::erase_if(settings.layers, [&](const GradientSettings& gradient) {
    return std::none_of(blocks.begin(), blocks.end(), [&](const std::string& block) {
      return split_layer(block).second == gradient.layer;
    });
  });
  settings.preset = {};  // all that follows from it stands beside it
  settings.stated.clear();
  if (settings.objectives.empty()) settings.seed = {}, settings.gradient.reset();
  if (!projected && settings.gradient) settings.gradient->projection = {};
  if (!projected)
    for (GradientSettings& layer : settings.layers) layer.projection = {};
  // What happens to files that are cut off is no other treatment.
  if (auto* image = std::get_if<ImageSettings>(&settings.input))
    image->decode.allow_truncated = false;
  if (auto* sound = std::get_if<SoundSettings>(&settings.input)) sound->allow_truncated = false;
  return settings;
}

}  // namespace fungi
