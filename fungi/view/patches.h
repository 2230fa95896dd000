// SPDX-License-Identifier: Apache-2.0
// Overlapping patches of one picture, each enlarged to the full input size, or to less: Patchify
// (SPEC 2.3.1).
// DEVIATION: a stride of 1/6 of the patch is rounded down, as both code bases do it, so 4 of 224
// pixels at the right and lower edges are in no patch. The library always makes the picture 224
// pixels large; no preset repeats that, the size is the model's. Internal to this room.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fungi/input/image.h"
#include "fungi/input/preprocess.h"
#include "fungi/input/resize.h"

namespace fungi {

// Where the patches lie: `per_axis` offsets 0, stride, 2*stride, ... on both axes, row-major.
struct PatchGrid {
  size_t side = 0, stride = 0, per_axis = 0;
  size_t count() const { return per_axis * per_axis; }
};

// Throws Error when patch_count is no square, does not divide `size`, or leaves a stride of zero.
PatchGrid patch_grid(size_t size, size_t patch_count, size_t stride_scale);

// All patches of a column share their enlargement across, so that is done once per column when an
// image is opened; a patch then costs one pass down. 7 columns at size 224 keep 4 MB.
class PatchViews {
 public:
  // Cut out of a square of `size` pixels, enlarged to `out_size`.
  PatchViews(size_t size, const PatchGrid& grid, size_t out_size, const PixelTable& table);
  void open(const Image& image);
  void write(size_t index, std::span<float> out) const;  // [3, out_size, out_size]

 private:
  size_t size_, out_size_;
  PatchGrid grid_;
  PixelTable table_;
  AxisWeights<float> weights_;  // side -> out_size
  PillowResizer resizer_;
  Image square_;
  std::vector<float> turned_;   // [x, channel, y]: the normalised picture, turned
  std::vector<float> wide_;     // [x out, channel, y]: one column, enlarged across, still turned
  std::vector<float> columns_;  // [column, channel, y, x out]
};

}  // namespace fungi
