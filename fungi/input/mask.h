// SPDX-License-Identifier: Apache-2.0
// Masks: the number of a class for each pixel of a picture, read from palette or grey PNG files as
// the numbers that are stored, whatever colours they stand for; and written with Pascal VOC's
// colours.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "fungi/input/resize.h"

namespace fungi {

struct Mask {
  size_t width = 0, height = 0;
  std::vector<uint8_t> values;  // height * width, row-major
};

// Throws Error on what is not a whole PNG of a palette or of grey, naming what it is.
Mask decode_mask(std::span<const uint8_t> bytes, std::string_view name);
Mask read_mask(const std::filesystem::path& file);

// The colour of a class: bit 3j + c of its number is bit 7 - j of channel c.
std::array<uint8_t, 3> class_colour(uint8_t number);

// An 8-bit palette PNG with these colours. Error unless both sides are positive and there is a
// value for each pixel.
std::vector<uint8_t> encode_mask(const Mask& mask);
// The same as a file, which is there and whole or not at all.
void write_mask(const std::filesystem::path& file, const Mask& mask);

// The mask at another size: each pixel has the value of the nearest one (SPEC 3.2 E) of a part of
// the mask, whose place is given in its pixels.
Mask resize_mask(const Mask& mask, const Window& part, size_t width, size_t height);
Mask resize_mask(const Mask& mask, size_t width, size_t height);

}  // namespace fungi
