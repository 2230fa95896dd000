// SPDX-License-Identifier: Apache-2.0
#include "fungi/segment/patch_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "fungi/base/error.h"

namespace fungi {

Matrix<float> patch_labels(const Mask& mask, size_t grid_h, size_t grid_w, size_t classes,
                           int ignore) {
  if (grid_h == 0 || grid_w == 0 || mask.height % grid_h || mask.width % grid_w)
    fail(fmt::format("expected a mask whose sides are multiples of {}x{} patches, found {}x{}",
                     grid_w, grid_h, mask.width, mask.height),
         "mask", "resize it to the model's input");
  const size_t patch_h = mask.height / grid_h, patch_w = mask.width / grid_w;
  Matrix<float> labels(grid_h * grid_w, classes);
  for (size_t y = 0; y < mask.height; ++y)
    for (size_t x = 0; x < mask.width; ++x) {
      const uint8_t value = mask.values[y * mask.width + x], number = value == ignore ? 0 : value;
      FUNGI_ASSERT(number < classes);
      ++labels(y / patch_h * grid_w + x / patch_w, number);
    }
  const float share = 1.0f / float(patch_h * patch_w);
  for (size_t p = 0; p < labels.rows(); ++p)
    for (size_t c = 0; c < classes; ++c) labels(p, c) *= share;
  return labels;
}

std::vector<float> patch_scores(View<const float> labels) {
  std::vector<float> frequency(labels.cols, 0), scores(labels.rows, 0);
  for (size_t p = 0; p < labels.rows; ++p)
    for (size_t c = 0; c < labels.cols; ++c) frequency[c] += labels(p, c) > 0;
  for (size_t p = 0; p < labels.rows; ++p)
    for (size_t c = 0; c < labels.cols; ++c)
      if (labels(p, c) > 0) scores[p] += frequency[c];
  return scores;
}

size_t patches_per_picture(size_t memory, size_t pictures, size_t epochs, size_t patches) {
  FUNGI_ASSERT(pictures > 0 && epochs > 0);
  return std::clamp<size_t>(memory / pictures / epochs, 1, patches);
}

std::vector<uint32_t> sample_patches(View<const float> labels, std::span<const float> uniform,
                                     size_t keep) {
  FUNGI_ASSERT(uniform.size() == labels.rows);
  std::vector<uint32_t> order(labels.rows);
  std::iota(order.begin(), order.end(), 0);
  if (keep >= order.size()) return order;
  std::vector<float> scores = patch_scores(labels);
  for (size_t p = 0; p < scores.size(); ++p) scores[p] *= uniform[p];
  std::partial_sort(order.begin(), order.begin() + ptrdiff_t(keep), order.end(),
                    [&](uint32_t a, uint32_t b) {
                      return scores[a] != scores[b] ? scores[a] < scores[b] : a < b;
                    });
  order.resize(keep);
  return order;
}

}  // namespace fungi
