// SPDX-License-Identifier: Apache-2.0
// What the gradients add to a segmentation, on one page: scores, pictures with their masks side by
// side, classes. Self-contained HTML.
#pragma once

#include <filesystem>
#include <string>

#include "fungi/segment/protocol.h"

namespace fungi {

struct SegmentPageOptions {
  size_t pictures = 6;  // so many that gain most, and so many that lose most
};

// `result` is that of test_segmentation() with the same segmenter and pictures.
std::string make_segment_page(const Segmenter& segmenter, const MaskDataset& test,
                              const SegmentationResult& result, const SegmentPageOptions& options,
                              Pool& pool);

}  // namespace fungi
