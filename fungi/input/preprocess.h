// SPDX-License-Identifier: Apache-2.0
// A backbone's evaluation transform: resize, centre crop, scale to [0,1], normalise
// (SPEC 3.3, 3.4). Between the decoder and the backbone; the record says what to do, `apply` does
// it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fungi/base/largest_side.h"
#include "fungi/input/image.h"
#include "fungi/input/resize.h"

namespace fungi {

inline constexpr std::array<float, 3> kImageNetMean = {0.485f, 0.456f, 0.406f};
inline constexpr std::array<float, 3> kImageNetStd = {0.229f, 0.224f, 0.225f};

// The published package shows KL the picture squashed to 256 by the triangle filter: {.resize =
// squash, .resize_size = 256, .filter = bilinear}. DEVIATION: it does so with torch's 8-bit kernel
// (SPEC 3.2 C), which differs from Pillow's, used here, by at most one level.
struct Preprocess {
  enum class Resize {
    none,        // the pixels as they are
    short_side,  // shorter side to resize_size, longer side in proportion, its fraction cut off
    squash,      // both sides to resize_size, proportion not kept
  };
  Resize resize = Resize::short_side;
  size_t resize_size = 256;
  Filter filter = Filter::bicubic;
  size_t input_size = 224;  // side of the centre crop, and of every view: the model's input
  // Where a crop leaves an odd number of pixels, half of it is rounded down, as Hugging Face's
  // image processors do it; otherwise to even, as torchvision.
  bool floor_crop = false;
  std::array<float, 3> mean = kImageNetMean, std = kImageNetStd;
  bool operator==(const Preprocess&) const = default;
};

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
