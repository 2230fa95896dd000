// SPDX-License-Identifier: Apache-2.0
// Does a backbone's evaluation transform (base/preprocess.h says which): between the decoder and
// the backbone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fungi/base/largest_side.h"
#include "fungi/base/preprocess.h"
#include "fungi/input/image.h"
#include "fungi/input/resize.h"

namespace fungi {

// Throws Error when sizes are zero or beyond kLargestSide, a mean is not finite, or a deviation is
// not positive and finite.
void check(const Preprocess& preprocess);

// (v / 255 - mean) / std of every byte and channel, in float32 as torch computes it.
class PixelTable {
 public:
  PixelTable(const std::array<float, 3>& mean, const std::array<float, 3>& std);
  const float* channel(size_t c) const { return values_[c].data(); }
  // Interleaved bytes -> planes [3, height, width], compact.
  void write_planes(const Pixels& pixels, float* out) const;

 private:
  std::array<std::array<float, 256>, 3> values_;
};

// The evaluation transform: resize, then the centre input_size x input_size; where the picture is
// smaller it is padded with zeros first, the odd pixel right and below. Throws as check_proportion.
// Keeps scratch memory: hold one per thread.
class Preprocessor {
 public:
  explicit Preprocessor(const Preprocess& preprocess);
  // Writes [3, input_size, input_size]. Error when `out` has another size, and as check(image).
  void apply(const Image& image, std::span<float> out);
  // The 8-bit picture that apply() normalises.
  const Image& pixels(const Image& image);

 private:
  Preprocess preprocess_;
  PixelTable table_;
  PillowResizer resizer_;
  Image centre_, padded_;
};

}  // namespace fungi
