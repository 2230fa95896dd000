// SPDX-License-Identifier: Apache-2.0
// A few samples of a data set, for a rehearsal.
#pragma once

#include <filesystem>
#include <memory>

#include "fungi/input/dataset.h"
#include "fungi/input/mask_dataset.h"

namespace fungi::app {

// `count` samples, evenly spread: lists are mostly in the order of their classes.
std::unique_ptr<Dataset> slice(std::unique_ptr<Dataset> all, const std::filesystem::path& place,
                               size_t count);
std::unique_ptr<MaskDataset> slice(std::unique_ptr<MaskDataset> all,
                                   const std::filesystem::path& place, size_t count);

}  // namespace fungi::app
