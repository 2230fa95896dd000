// SPDX-License-Identifier: Apache-2.0
// Fills a bank with the patches of training pictures. Internal to this room.
#pragma once

#include <string>
#include <vector>

#include "fungi/segment/segmenter.h"

namespace fungi::segment {

// What one thread needs to turn pictures into rows.
struct Worker {
  explicit Worker(const PatchFeatures& features);
  PatchScratch scratch;
  PictureViews views;
  Matrix<float> pixels;  // [1, pixel_count]
};
std::vector<Worker> crew(const PatchFeatures& features, Pool& pool);

// body(i, worker) for i < count, on all threads. What a picture's body throws as an Error, or as a
// lack of memory, is its failure; Exhausted ends the work.
std::vector<std::optional<BankFailure>> each_picture(
    size_t count, std::span<Worker> workers, Pool& pool,
    const std::function<std::string(size_t)>& id, const std::function<void(size_t, Worker&)>& body);

// The unit tokens that features begin with.
Matrix<float> tokens_of(View<const float> features, size_t embedding_width);

struct Memory {
  const PatchFeatures& features;
  const MaskDataset& train;
  std::vector<size_t> pictures;  // of `train`
  size_t epochs, keep;           // keep: patches of each picture
};
// One step per epoch and picture, into the bank of tokens, and into that of features unless it is
// null; an earlier run may have brought them differently far, and one of them to its end (null).
// False: stopped.
bool fill(BankWriter* tokens, BankWriter* features, const Memory& memory, const std::string& stage,
          Pool& pool, const SegmentHooks& hooks);

}  // namespace fungi::segment
