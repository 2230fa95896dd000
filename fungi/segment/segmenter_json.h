// SPDX-License-Identifier: Apache-2.0
// What a segmenter keeps of itself beside its banks: segment.json. Internal to this room.
#pragma once

#include <nlohmann/json.hpp>

#include "fungi/segment/segmenter.h"

namespace fungi::segment {

inline constexpr const char* kSegmentFile = "segment.json";

using Json = nlohmann::ordered_json;

// What decides about the rows of a bank; gradients: of those beside the tokens.
Json bank_settings(const PatchFeatures& features, const MaskDataset& train,
                   const std::vector<size_t>& pictures, size_t epochs, size_t keep, bool gradients);

struct Description {
  std::filesystem::path model;
  std::string sha256;
  BackboneOptions backbone;
  PatchFeatureOptions features;
  bool own_state = false;  // heads or a projection that no file keeps
  SegmentOptions options;
  std::vector<std::string> class_names;
  size_t classes = 0;
};
Json to_json(const PatchFeatures& features, const SegmentOptions& options,
             const MaskDataset& train);
Description read_description(const std::filesystem::path& folder);  // Error where there is none
Json options_json(const SegmentOptions& options);

}  // namespace fungi::segment
