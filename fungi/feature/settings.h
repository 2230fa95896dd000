// SPDX-License-Identifier: Apache-2.0
// Everything that decides about features, but for the model: two extractions with equal settings
// and the same weights give equal rows. Their JSON form, in the manifest of a store, is written and
// read in settings.cpp alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "fungi/backbone/architecture.h"
#include "fungi/input/image.h"
#include "fungi/input/preprocess.h"
#include "fungi/objective/presets.h"
#include "fungi/projection/projection.h"
#include "fungi/store/manifest.h"

namespace fungi {

// What is done to pictures before the backbone sees them; views follow from it and the objectives.
struct ImageSettings {
  DecodeOptions decode;   // but for max_pixels, which decides about no row
  Preprocess preprocess;  // of the whole picture
  bool operator==(const ImageSettings&) const = default;
};

// What is done to texts before the backbone sees them.
struct TextSettings {
  std::string tokenizer;  // its fingerprint
  size_t max_tokens = 0;  // of a view
  std::string prefix;
  bool operator==(const TextSettings&) const = default;
};

// What is done to sounds before the backbone sees them.
struct SoundSettings {
  SoundFrontEnd front_end;
  std::string resampler;  // of those at another rate
  double window = 0;      // seconds that are looked at; 0: as many as the model looks at
  bool allow_truncated = false;
  bool operator==(const SoundSettings&) const = default;
};

// Of a modality of the user's own: what it says of itself, its name among it.
struct OwnSettings {
  std::map<std::string, std::string> facts;
  bool operator==(const OwnSettings&) const = default;
};

// One alternative per kind of sample, each under a key of its own in the JSON.
using InputSettings = std::variant<ImageSettings, TextSettings, SoundSettings, OwnSettings>;

struct ObjectiveSettings {
  std::string name;
  std::map<std::string, std::variant<double, std::string>> parameters;
  bool operator==(const ObjectiveSettings&) const = default;
};

struct ProjectionSettings {
  ProjectionKind kind = ProjectionKind::sign;
  size_t rows = 0;
  uint64_t seed = 42;
  std::string matrix_sha256;  // of the user's own, which no store keeps; else empty
  bool operator==(const ProjectionSettings&) const = default;
};
ProjectionSettings settings_of(const Projection& projection);

// Whose gradient is taken, and what becomes of it.
struct GradientSettings {
  std::string layer = "blocks.0.attn.proj";
  bool norm1_as_input = false;  // BackboneOptions::mha_input_as_activation
  LayerShape shape;
  ProjectionSettings projection;
  bool operator==(const GradientSettings&) const = default;
};

struct Settings {
  Preset preset = Preset::native;
  Precision precision = Precision::f32;
  uint64_t seed = 42;
  std::vector<ObjectiveSettings> objectives;  // in the order of the blocks
  std::optional<GradientSettings> gradient;   // none for the embedding alone
  std::vector<GradientSettings> layers;       // instead, where every layer has blocks of its own
  StatedFacts stated;
  InputSettings input;
  bool operator==(const Settings&) const = default;
};

// Fills in what a manifest says of them: pipeline, precision, and the JSON of the rest. Error where
// what comes from outside (parameters of an own objective, stated facts) is no UTF-8.
void write_settings(const Settings& settings, StoreSpec& spec);

// The same back. Error naming the field and `place` where it is missing, wrong, or none of these.
Settings read_settings(const StoreSpec& spec, const std::string& place);

// False for stores of other programs, whose settings may be any JSON object.
bool has_settings(const StoreSpec& spec);

// "mlp_fc2" for the layer "blocks.11.mlp.fc2", as the paper's scripts have it; "attn_proj" also for
// stores of other programs.
std::string dataset_name(const StoreSpec& spec);

// The settings as they decide about some blocks; whatever else they say has its default. projected:
// gradients count as they are stored, otherwise whole.
Settings settings_of_blocks(Settings settings, const std::vector<std::string>& blocks,
                            bool projected);

}  // namespace fungi
