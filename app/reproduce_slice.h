// SPDX-License-Identifier: Apache-2.0
// A few samples of a data set, for a rehearsal.
#pragma once

#include <filesystem>
#include <memory>

#include "fungi/evaluate/ground_truth.h"
#include "fungi/input/dataset.h"
#include "fungi/input/mask_dataset.h"

namespace fungi::app {

// At most `count` samples, evenly spread over some of the classes.
std::unique_ptr<Dataset> slice(std::unique_ptr<Dataset> all, const std::filesystem::path& place,
                               size_t count);
std::unique_ptr<MaskDataset> slice(std::unique_ptr<MaskDataset> all,
                                   const std::filesystem::path& place, size_t count);
// Those of these names.
std::unique_ptr<Dataset> slice(std::unique_ptr<Dataset> all, const std::filesystem::path& place,
                               const std::vector<std::string>& names);

// The records of a revisited set, of some of its queries and at most `count` pictures to be found:
// each query's own first, then others, evenly spread.
RevisitedTruth slice_truth(const RevisitedTruth& truth, size_t count);
// As read_revisited() takes it.
std::string to_json(const RevisitedTruth& truth);

}  // namespace fungi::app
