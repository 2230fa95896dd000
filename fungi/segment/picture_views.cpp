// SPDX-License-Identifier: Apache-2.0
#include "fungi/segment/picture_views.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/view/colours.h"

namespace fungi {
namespace {

// Areas above 1 never fit: a crop keeps at least half of the picture, or nearly all of it.
constexpr float kAreaLow = 0.5f, kAreaHigh = 2.0f;
constexpr float kColours = 0.1f, kHue = 0.1f;  // how far factors leave 1, and a shift 0
constexpr float kChance = 0.5f;                // of each to be drawn

// [rows, cols] of a plane of floats → [cols, rows]
void turn(const float* in, size_t rows, size_t cols, float* out) {
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < cols; ++j) out[j * rows + i] = in[i * cols + j];
}

// Along the first axis of [weights.from, cols] → [weights.to, cols].
void resize_axis(const AxisWeights<float>& weights, const float* in, size_t cols, float* out) {
  for (size_t i = 0; i < weights.to; ++i)
    blend_rows(in + weights.first[i] * cols, cols, weights.weight.data() + i * weights.taps,
               weights.taps, cols, out + i * cols);
}

}  // namespace

void apply(const Jitter& jitter, Image& image) {
  if (jitter.brightness != 1) scale_brightness(image, jitter.brightness);
  if (jitter.contrast != 1) scale_contrast(image, jitter.contrast);
  if (jitter.saturation != 1) scale_saturation(image, jitter.saturation);
  if (jitter.hue != 0) shift_hue(image, jitter.hue);
}

PictureViews::PictureViews(size_t height, size_t width, const std::array<float, 3>& mean,
                           const std::array<float, 3>& std)
    : height_(height), width_(width), table_(mean, std) {
  if (height == 0 || width == 0) fail("a picture needs a height and a width", "PictureViews");
}

void PictureViews::check_room(std::span<const float> out) const {
  if (out.size() != numbers())
    fail(fmt::format("expected room for {} numbers, found {}", numbers(), out.size()),
         "PictureViews");
}

void PictureViews::whole(const Image& image, std::span<float> out) {
  check_room(out);
  check(image);
  resizer_.resize(image, width_, height_, Filter::bilinear, image_);
  table_.write_planes(image_, out.data());
}

PictureViews::Train PictureViews::draw(size_t image_width, size_t image_height, uint32_t seed) {
  TorchRandom random(seed);
  const auto drawn = [&](float middle, float far) {
    const bool now = random.uniform() <= kChance;
    const float value = random.uniform(middle - far, middle + far);  // drawn in any case
    return now ? value : middle;
  };
  Train train;
  train.jitter.brightness = drawn(1, kColours);
  train.jitter.contrast = drawn(1, kColours);
  train.jitter.saturation = drawn(1, kColours);
  train.jitter.hue = drawn(0, kHue);
  train.crop = random_resized_crop(image_width, image_height, kAreaLow, kAreaHigh, random);
  return train;
}

void PictureViews::train(const Image& image, const Train& draw, std::span<float> out) {
  check_room(out);
  check(image);
  check_proportion(image.width, image.height);
  const Crop& crop = draw.crop;
  if (crop.width == 0 || crop.height == 0 || crop.left > image.width || crop.top > image.height ||
      crop.width > image.width - crop.left || crop.height > image.height - crop.top)
    fail(fmt::format("a part of {}x{} at {},{} does not lie in a picture of {}x{}", crop.width,
                     crop.height, crop.left, crop.top, image.width, image.height),
         "PictureViews::train", "draw() it with the size of the picture");
  image_ = image;
  apply(draw.jitter, image_);
  const auto across = float_weights(crop.width, width_, Filter::bilinear),
             down = float_weights(crop.height, height_, Filter::bilinear);
  plane_.resize(std::max(crop.width, width_) * crop.height);
  turned_.resize(plane_.size());
  for (size_t c = 0; c < 3; ++c) {
    const float* value = table_.channel(c);
    for (size_t y = 0; y < crop.height; ++y) {
      const uint8_t* row = image_.rgb.data() + 3 * ((crop.top + y) * image_.width + crop.left) + c;
      for (size_t x = 0; x < crop.width; ++x) plane_[x * crop.height + y] = value[row[3 * x]];
    }
    resize_axis(across, plane_.data(), crop.height, turned_.data());
    turn(turned_.data(), width_, crop.height, plane_.data());
    resize_axis(down, plane_.data(), width_, out.data() + c * height_ * width_);
  }
}

}  // namespace fungi
