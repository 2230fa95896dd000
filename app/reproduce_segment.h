// SPDX-License-Identifier: Apache-2.0
// What a table of segmentations asks of a model and of its pictures.
#pragma once

#include <set>

#include "app/reproduce_run.h"
#include "fungi/input/mask_dataset.h"
#include "fungi/segment/segmenter.h"

namespace fungi::app {

std::set<std::string> segment_settings(const PaperTable& table, const PaperBackbone& facts,
                                       const PaperData& data);
SegmentOptions segment_options(const std::string& setting, size_t pictures);
PatchFeatures open_patch_features(const PaperBackbone& facts, const std::filesystem::path& model,
                                  const RunOptions& options, Pool& pool);
std::unique_ptr<MaskDataset> open_masks(const FoundSplit& from, MaskDatasetOptions::Role role,
                                        const RunOptions& options);

}  // namespace fungi::app
