// SPDX-License-Identifier: Apache-2.0
#include "fungi/view/colours.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace fungi {
namespace {

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

// How Pillow makes a Gaussian of three boxes: each reaches `whole` pixels to both sides, and the
// pixels behind those count with a weight of their own (Gwosdek and others, 2011). Weights have 24
// binary places.
struct Box {
  size_t whole;
  uint32_t weight, end_weight;
};
constexpr int kBoxes = 3;

Box box_of(float deviation) {
  // In the floats and doubles of Pillow's C.
  const float variance = deviation * deviation / float(kBoxes);
  const float length = float(std::sqrt(12.0 * double(variance) + 1.0));
  const float whole = float(std::floor((double(length) - 1.0) / 2.0));
  float rest = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance);
  rest /= 6 * (variance - (whole + 1) * (whole + 1));
  const float radius = whole + rest;
  const auto reach = size_t(radius);
  const auto weight = uint32_t(float(1 << 24) / (radius * 2 + 1));
  return {reach, weight, uint32_t(((1 << 24) - (2 * reach + 1) * weight) / 2)};
}

// One pass over `count` pixels that lie `step` bytes apart; beyond the ends stands the last pixel.
void box_pass(const Box& box, uint8_t* first, size_t step, size_t count,
              std::vector<uint8_t>& line) {
  line.resize(count);
  for (size_t i = 0; i < count; ++i) line[i] = first[i * step];
  const auto reach = ptrdiff_t(box.whole), last = ptrdiff_t(count) - 1;
  const auto at = [&](ptrdiff_t i) {
    return uint32_t(line[size_t(std::clamp<ptrdiff_t>(i, 0, last))]);
  };
  uint32_t sum = 0;
  for (ptrdiff_t i = -reach - 1; i < reach; ++i) sum += at(i);
  for (ptrdiff_t i = 0; i <= last; ++i) {
    sum += at(i + reach) - at(i - reach - 1);
    const uint32_t ends = at(i - reach - 1) + at(i + reach + 1);
    first[size_t(i) * step] =
        uint8_t((sum * box.weight + ends * box.end_weight + (1u << 23)) >> 24);
  }
}

}  // namespace

void scale_brightness(Image& image, float factor) {
  blend(image, factor, [](const uint8_t*) { return 0.0f; });
}

void scale_contrast(Image& image, float factor) {
  const float mean = mean_luma(image);
  blend(image, factor, [mean](const uint8_t*) { return mean; });
}

void scale_saturation(Image& image, float factor) { blend(image, factor, luma); }

void shift_hue(Image& image, float amount) {
  const uint8_t shift = uint8_t(int(double(amount) * 255.0));  // modulo 256
  for (size_t i = 0; i < image.rgb.size(); i += 3) {
    Hsv hsv = to_hsv(image.rgb.data() + i);
    hsv.h = uint8_t(hsv.h + shift);
    to_rgb(hsv, image.rgb.data() + i);
  }
}

void make_grey(Image& image) {
  for (size_t i = 0; i < image.rgb.size(); i += 3)
    std::fill_n(image.rgb.data() + i, 3, uint8_t(luma(image.rgb.data() + i)));
}

void solarise(Image& image) {
  for (uint8_t& value : image.rgb)
    if (value >= 128) value = uint8_t(255 - value);
}

void flip(Image& image) {
  const size_t width = image.width;
  for (size_t y = 0; y < image.height; ++y) {
    uint8_t* row = image.rgb.data() + 3 * y * width;
    for (size_t x = 0; x < width / 2; ++x)
      std::swap_ranges(row + 3 * x, row + 3 * x + 3, row + 3 * (width - 1 - x));
  }
}

void blur(Image& image, float deviation) {
  const Box box = box_of(deviation);
  const size_t width = image.width, height = image.height;
  std::vector<uint8_t> line;
  for (int pass = 0; pass < kBoxes; ++pass)
    for (size_t y = 0; y < height; ++y)
      for (size_t c = 0; c < 3; ++c)
        box_pass(box, image.rgb.data() + 3 * y * width + c, 3, width, line);
  for (int pass = 0; pass < kBoxes; ++pass)
    for (size_t x = 0; x < width; ++x)
      for (size_t c = 0; c < 3; ++c)
        box_pass(box, image.rgb.data() + 3 * x + c, 3 * width, height, line);
}

}  // namespace fungi
