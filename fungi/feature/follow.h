// SPDX-License-Identifier: Apache-2.0
// What an extraction takes over from another store: that of StoreOptions::like, whose settings hold
// for all that a caller leaves out, and the one that it continues.
#pragma once

#include <filesystem>
#include <optional>

#include "fungi/feature/extractor.h"
#include "fungi/store/writer.h"

namespace fungi {

// All that decides what rows are.
struct ExtractionSettings {
  std::filesystem::path model;
  BackboneOptions backbone = {};  // before backbone_for()
  ExtractorOptions extractor = {};
  StoreType type = StoreType::float32;
};

// Those of a store, for rows that can be compared with its own; of its backbone what backbone_for()
// and follow_precision() leave open. What has no meaning there keeps its default: the layer where
// there were no objectives, the rows of a projection that has its own. A projection matrix and
// heads of one's own must be given again. Errors: no such store, or one whose settings cannot be
// read.
ExtractionSettings followed_settings(const std::filesystem::path& like);

// Error unless this is the model of the store (by its sha256).
void require_followed_model(const std::filesystem::path& like, const std::filesystem::path& model);

// The manifest of a store whose extraction has begun; nothing where there is none.
std::optional<StoreManifest> begun_store(const std::filesystem::path& folder);

// Rows of one store have one precision: where none was stated, that of the store which is followed
// or else continued (null: none), since it may come from another machine.
void follow_precision(BackboneOptions& options, const StoreManifest* followed,
                      const StoreManifest* continued);

// Samples per shard: what was stated, or the size that the store has (another would rewrite every
// shard that is there), or what suits the extractor.
size_t shard_size_for(size_t stated, const StoreManifest* continued, const Extractor& extractor);

}  // namespace fungi
