// SPDX-License-Identifier: Apache-2.0
// How well pictures with masks are segmented: every kind of features beside the others, pixel by
// pixel (SPEC 5.10), over all pictures and for each. It goes on after a kill.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fungi/evaluate/segmentation.h"
#include "fungi/segment/segmenter.h"

namespace fungi {

struct SegmentationTest {
  // Pixels are compared at the size of the model's input, as the paper does it, or at that of the
  // picture.
  bool at_picture_size = false;
  bool write_masks = true;  // predictions/KIND/ID.png, at the size of the picture
};

struct SegmentationResult {
  std::vector<std::string> kinds;
  std::vector<Confusion> confusions;          // of each kind
  std::vector<SegmentationScore> scores;      // of each kind
  std::vector<double> recall;                 // of each kind's search, against the exact one
  std::vector<std::string> ids;               // pictures that were measured
  std::vector<std::vector<double>> pictures;  // [picture][kind]: mean over its classes
  std::vector<BankFailure> failed;
  std::vector<std::string> class_names;  // of every class
  bool complete = false;                 // false: stopped
};

// Results go into the folder: scores.jsonl, a line per picture, and masks. Lines of an earlier run
// with the same settings stay. Error where no picture can be used.
SegmentationResult test_segmentation(const Segmenter& segmenter, const MaskDataset& test,
                                     const std::filesystem::path& folder,
                                     const SegmentationTest& options, Pool& pool,
                                     const SegmentHooks& hooks = {});

// Where a picture's mask is written.
std::filesystem::path prediction_file(const std::filesystem::path& folder, const std::string& kind,
                                      const std::string& id);

}  // namespace fungi
