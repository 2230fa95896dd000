// SPDX-License-Identifier: Apache-2.0
// Pictures as a dense model looks at them (SPEC 3.7): squashed to the input size as a whole, or for
// training with colours jittered and a part cut out, which the caller then does to the mask.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "fungi/input/preprocess.h"
#include "fungi/view/crop.h"

namespace fungi {

// What training draws for a picture; a factor that was not drawn is 1, a shift 0.
struct Jitter {
  float brightness = 1, contrast = 1, saturation = 1, hue = 0;
};

// In this order, in 8 bits, as Pillow's ImageEnhance and its HSV do it.
void apply(const Jitter& jitter, Image& image);

// Not thread-safe: it keeps scratch memory, hold one per thread.
class PictureViews {
 public:
  PictureViews(size_t height, size_t width, const std::array<float, 3>& mean,
               const std::array<float, 3>& std);

  size_t numbers() const { return 3 * height_ * width_; }

  // Squashed by Pillow's bilinear filter, then normalised. [3, height, width]
  void whole(const Image& image, std::span<float> out);

  struct Train {
    Jitter jitter;
    Crop crop;  // of the picture and of a mask of its size: the part that was resized
  };
  // One draw of the augmentation; the same for the same picture size and seed.
  static Train draw(size_t image_width, size_t image_height, uint32_t seed);
  // Jittered, normalised, cut out and resized as a float tensor with antialias. [3, height, width]
  void train(const Image& image, const Train& draw, std::span<float> out);

 private:
  void check_room(std::span<const float> out) const;

  size_t height_, width_;
  PixelTable table_;
  PillowResizer resizer_;
  Image image_;
  std::vector<float> plane_, turned_;
};

// The pixel of an axis of `from` that stands at place i of an axis of `to` (SPEC 3.2 E), for masks.
constexpr size_t nearest(size_t i, size_t from, size_t to) { return i * from / to; }

}  // namespace fungi
