// SPDX-License-Identifier: Apache-2.0
// manifest.json of a feature store: what the features are (StoreSpec), and which rows are there.
// Plain values; docs/formats.md shows the file.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fungi/store/part.h"

namespace fungi {

inline constexpr int kStoreVersion = 2;

// Names: a letter, then letters, digits, '_' and '-' (no '-' before a digit); not "rows", "failed".
struct StoreBlock {
  std::string name;
  size_t width = 0;
  size_t rows =
      1;  // of `width` floats, per sample: the patches of an image, the terms of a gradient
  // Of a block among others: its rows of length 1 are multiplied by it. That of a store stands in
  // its manifest; Store::select() may be asked for another.
  double weight = 1;
  size_t size() const { return rows * width; }  // floats per sample, one row after the other
  bool operator==(const StoreBlock&) const = default;
  bool same_floats(const StoreBlock& other) const {  // whatever their weights
    return name == other.name && width == other.width && rows == other.rows;
  }
};

enum class StoreType { float32, float16 };
const char* to_string(StoreType type);
StoreType parse_store_type(const std::string& name);

struct StoreSpec;
// Error, with `hint`, naming the first setting in which `found` (this run) differs from `expected`
// (what the store at `place` holds).
using RequireSame = void (*)(const StoreSpec& expected, const StoreSpec& found,
                             const std::string& place, const std::string& hint);
// Every value of settings and architecture counts.
void require_equal(const StoreSpec& expected, const StoreSpec& found, const std::string& place,
                   const std::string& hint);

// What the features are. Two runs with equal specs give equal features for the same sample.
struct StoreSpec {
  std::string pipeline;   // e.g. "embedding+kl+dino"
  std::string precision;  // "f32" or "bf16"
  // A JSON object with every parameter and seed (feature/settings.h).
  std::string settings = "{}";
  std::string model_sha256;
  std::vector<StoreBlock> blocks;
  StoreType type = StoreType::float32;

  std::string architecture = "{}";  // JSON object of facts about the model as it is run

  // Written down, never compared.
  std::string model_path;
  std::string notes = "{}";  // JSON object, anything else (data set, preset name, ...)
  std::string isa;           // the kernels of this run; empty: the machine's best

  // How this run, which knows what the JSON means, tells that a store holds the same features.
  RequireSame require_same = require_equal;
};

// A sample that is no row, as failed.jsonl has it.
struct FailedSample {
  std::string id, stage, reason, hint, key;
};

struct StoreShard {
  size_t index = 0;  // the number in its file names
  size_t rows = 0;
};

struct StoreState {
  std::string name;  // file state/<name>.npy
  size_t rows = 0, cols = 0;
  std::string checksum;  // FNV-1a 64 of the file's bytes, in hex
};

struct StoreOrigin {
  std::string version, isa;  // a build of fungi and the kernels it ran on
  bool operator==(const StoreOrigin&) const = default;
};

// A store that holds one part of a data set.
struct StorePartOf {
  StorePart part;
  std::string data;  // a sum over ids and labels of the whole: parts with another do not belong here
  bool operator==(const StorePartOf&) const = default;
};

struct StoreManifest {
  StoreSpec spec;
  std::vector<StoreOrigin> origins;  // of all runs that computed rows, first to last
  size_t shard_size = 0;             // consecutive samples of the data set that make one shard
  std::vector<std::string> classes;  // label i is classes[i]
  size_t followed_classes = 0;       // the first so many are numbered as in the store of --like
  std::vector<StoreState> state;     // sorted by name

  std::optional<StorePartOf> part;  // nothing: the whole

  bool planned = false;   // the data set is known; before that there is neither state nor a shard
  bool complete = false;  // every sample, of the part, is a row or a recorded failure
  size_t samples = 0;     // of the data set
  size_t failed = 0;
  std::vector<StoreShard> shards;  // ascending

  size_t rows() const;
};

// Kept factors of an objective's gradient are two blocks that are no features by themselves:
// "<objective>_factors_b" and "<objective>_factors_a".
std::string factor_block(std::string_view objective, char which);
// The objective whose factors a block holds; empty for any other block.
std::string_view factors_of(std::string_view block);

// The gradient of one of several layers is a block of its own, "kl@blocks.3.mlp.fc2".
std::string layer_block(std::string_view objective, std::string_view layer);
// The objective and the layer in the name of a block; the layer is empty where it has none.
std::pair<std::string_view, std::string_view> split_layer(std::string_view block);

// Features are blocks that can stand side by side: one row per sample, and no kept factors.
bool is_feature(const StoreBlock& block);
std::vector<std::string> feature_names(const StoreSpec& spec);

// Error where one has several rows per sample: a length of 1 is that of a row.
void require_side_by_side(const std::vector<StoreBlock>& blocks, const std::string& place);
// Floats per sample, of all of them.
size_t total_width(const std::vector<StoreBlock>& blocks);
std::vector<std::string> names_of(const std::vector<StoreBlock>& blocks);
// "embedding+0.5*kl", as Store::select() reads it.
// all_weights: those of 1, too, which a store that holds others would not read out of the name
// alone.
std::string features_of(const std::vector<StoreBlock>& blocks, bool all_weights = false);
// Null when there is none of that name.
const StoreBlock* find_block(const std::vector<StoreBlock>& blocks, std::string_view name);
// "embedding+kl" in its parts.
std::vector<std::string> split_features(std::string_view features);
// "0.5*kl", the weight, if there is one, and the block. Error where it is no number above 0.
std::pair<std::optional<double>, std::string> split_weight(std::string_view part,
                                                           const std::string& place);

std::string to_json(const StoreManifest& manifest);
StoreManifest parse_manifest(const std::string& text, const std::string& place);

// Checks names and sizes of the blocks and that the JSON fields hold objects; Error otherwise.
void require_valid(const StoreSpec& spec);
void require_state_name(const std::string& name);  // the same rules as for blocks
// For a gradient's block: the same, and neither "embedding" nor what kept factors are called.
void require_objective_name(const std::string& name);

}  // namespace fungi
