// SPDX-License-Identifier: Apache-2.0
#include "fungi/segment/picture_views.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fungi {
namespace {

// Areas above 1 never fit: a crop keeps at least half of the picture, or nearly all of it.
constexpr float kAreaLow = 0.5f, kAreaHigh = 2.0f;
constexpr float kColours = 0.1f, kHue = 0.1f;  // how far factors leave 1, and a shift 0
constexpr float kChance = 0.5f;                // of each to be drawn

// Towards zero, as Pillow brings floats to 8 bits.
uint8_t byte_of(float value) {
  if (value <= 0) return 0;
  return value >= 255 ? 255 : uint8_t(value);
}

// Pillow's grey of a pixel.
float luma(const uint8_t* p) {
  return float((19595u * p[0] + 38470u * p[1] + 7471u * p[2] + 32768u) >> 16);
}

// Every channel goes from what `flat` says of its pixel towards itself, or beyond.
template <class Flat>
void blend(Image& image, float factor, Flat flat) {
  for (size_t i = 0; i < image.rgb.size(); i += 3) {
    uint8_t* p = image.rgb.data() + i;
    const float base = flat(p);
    for (size_t c = 0; c < 3; ++c) p[c] = byte_of(base + factor * (float(p[c]) - base));
  }
}

float mean_luma(const Image& image) {
  double sum = 0;
  for (size_t i = 0; i < image.rgb.size(); i += 3) sum += luma(image.rgb.data() + i);
  return float(std::floor(sum / double(image.rgb.size() / 3) + 0.5));
}

struct Hsv {
  uint8_t h = 0, s = 0, v = 0;
};

// To 8-bit hue, saturation and value and back, in Pillow's mixture of floats and doubles.
Hsv to_hsv(const uint8_t* p) {
  const uint8_t top = std::max({p[0], p[1], p[2]}), low = std::min({p[0], p[1], p[2]});
  if (top == low) return {0, 0, top};
  const float range = float(top - low);
  const auto below = [&](size_t c) { return float(top - p[c]) / range; };
  float hue;
  if (p[0] == top)
    hue = below(2) - below(1);
  else if (p[1] == top)
    hue = float(2.0 + double(below(0)) - double(below(2)));
  else
    hue = float(4.0 + double(below(1)) - double(below(0)));
  hue = float(std::fmod(double(hue) / 6.0 + 1.0, 1.0));
  const float saturation = range / float(top);
  return {uint8_t(double(hue) * 255.0), uint8_t(double(saturation) * 255.0), top};
}

void to_rgb(const Hsv& hsv, uint8_t* p) {
  const double sector = double(hsv.h) * 6.0 / 255.0, v = hsv.v;
  const int whole = int(sector);
  const double rest = float(sector - double(float(whole))), s = float(double(hsv.s) / 255.0);
  const auto level = [&](double share) { return uint8_t(std::round(v * (1.0 - share))); };
  const uint8_t least = level(s), falling = level(s * rest), rising = level(s * (1.0 - rest));
  // Which of them is red, green and blue in each sixth of the circle.
  const uint8_t of[6][3] = {{hsv.v, rising, least}, {falling, hsv.v, least},
                            {least, hsv.v, rising}, {least, falling, hsv.v},
                            {rising, least, hsv.v}, {hsv.v, least, falling}};
  std::copy_n(of[whole % 6], 3, p);
}

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
  if (jitter.brightness != 1) blend(image, jitter.brightness, [](const uint8_t*) { return 0.0f; });
  if (jitter.contrast != 1) {
    const float mean = mean_luma(image);
    blend(image, jitter.contrast, [mean](const uint8_t*) { return mean; });
  }
  if (jitter.saturation != 1) blend(image, jitter.saturation, luma);
  if (jitter.hue == 0) return;
  const uint8_t shift = uint8_t(int(double(jitter.hue) * 255.0));  // modulo 256
  for (size_t i = 0; i < image.rgb.size(); i += 3) {
    Hsv hsv = to_hsv(image.rgb.data() + i);
    hsv.h = uint8_t(hsv.h + shift);
    to_rgb(hsv, image.rgb.data() + i);
  }
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
