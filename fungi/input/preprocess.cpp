// SPDX-License-Identifier: Apache-2.0
// Sizes and offsets of the evaluation transform, and the step from bytes to normalised planes
// (SPEC 3.3).
#include "fungi/input/preprocess.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "fungi/base/error.h"

namespace fungi {
namespace {

// Where `size` output samples meet `from` input samples on one axis.
struct Overlap {
  size_t in, out, count;
};

Overlap centre(size_t from, size_t size, bool floor_crop) {
  if (from < size) return {0, (size - from) / 2, from};
  const size_t excess = from - size, half = excess / 2;
  return {half + (!floor_crop && excess % 2 && half % 2), 0, size};
}

}  // namespace

void check(const Preprocess& preprocess) {
  const auto check_side = [](size_t side, const char* place, const char* hint) {
    if (side == 0 || side > kLargestSide)
      fail(fmt::format("expected a size from 1 to {}, found {}", kLargestSide, side), place, hint);
  };
  check_side(preprocess.input_size, "Preprocess::input_size", "");
  if (preprocess.resize != Preprocess::Resize::none)
    check_side(preprocess.resize_size, "Preprocess::resize_size",
               "set Preprocess::resize to none to leave the size alone");
  for (float m : preprocess.mean)
    if (!std::isfinite(m))
      fail(fmt::format("expected finite means, found {}", m), "Preprocess::mean");
  for (float s : preprocess.std)
    if (!(s > 0 && std::isfinite(s)))
      fail(fmt::format("expected positive deviations, found {}", s), "Preprocess::std");
}

PixelTable::PixelTable(const std::array<float, 3>& mean, const std::array<float, 3>& std) {
  for (size_t c = 0; c < 3; ++c)
    for (size_t v = 0; v < 256; ++v) values_[c][v] = (float(v) / 255.0f - mean[c]) / std[c];
}

void PixelTable::write_planes(const Pixels& pixels, float* out) const {
  const size_t plane = pixels.width * pixels.height;
  const float *red = channel(0), *green = channel(1), *blue = channel(2);
  for (size_t y = 0; y < pixels.height; ++y) {
    const uint8_t* rgb = pixels.rgb + y * pixels.stride;
    float* row = out + y * pixels.width;
    for (size_t x = 0; x < pixels.width; ++x) {
      row[x] = red[rgb[3 * x]];
      row[plane + x] = green[rgb[3 * x + 1]];
      row[2 * plane + x] = blue[rgb[3 * x + 2]];
    }
  }
}

Preprocessor::Preprocessor(const Preprocess& preprocess)
    : preprocess_(preprocess), table_(preprocess.mean, preprocess.std) {
  check(preprocess);
}

const Image& Preprocessor::pixels(const Image& image) {
  check(image);
  const Preprocess& p = preprocess_;
  size_t width = image.width, height = image.height;
  if (p.resize == Preprocess::Resize::squash) {
    width = height = p.resize_size;
  } else if (p.resize == Preprocess::Resize::short_side) {
    const size_t shorter = std::min(width, height);
    width = p.resize_size * width / shorter;
    height = p.resize_size * height / shorter;
  }
  // Only what the crop keeps is resized.
  const size_t size = p.input_size;
  const Overlap x = centre(width, size, p.floor_crop), y = centre(height, size, p.floor_crop);
  resizer_.resize(image, width, height, p.filter, {x.in, y.in, x.count, y.count}, centre_);
  if (x.count == size && y.count == size) return centre_;
  padded_ = {size, size, std::vector<uint8_t>(size * size * 3)};
  for (size_t row = 0; row < y.count; ++row)
    std::memcpy(padded_.rgb.data() + 3 * ((y.out + row) * size + x.out),
                centre_.rgb.data() + 3 * row * x.count, 3 * x.count);
  return padded_;
}

void Preprocessor::apply(const Image& image, std::span<float> out) {
  const size_t expected = 3 * preprocess_.input_size * preprocess_.input_size;
  if (out.size() != expected)
    fail(fmt::format("expected room for {} numbers, found {}", expected, out.size()),
         "Preprocessor::apply", "give 3 * input_size * input_size");
  table_.write_planes(pixels(image), out.data());
}

}  // namespace fungi
