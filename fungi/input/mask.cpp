// SPDX-License-Identifier: Apache-2.0
#include "fungi/input/mask.h"

#include <fmt/format.h>

#include "fungi/base/atomic_file.h"
#include "fungi/base/error.h"
#include "fungi/input/codec.h"
#include "fungi/input/png_write.h"

namespace fungi {

Mask decode_mask(std::span<const uint8_t> bytes, std::string_view name) {
  if (bytes.empty())
    fail("expected a mask, found an empty file (0 bytes)", std::string(name),
         "remove the file or fetch it again");
  if (codec::starts_with(bytes, "\x89PNG\r\n\x1a\n")) return codec::decode_png_mask(bytes, name);
  decode_image(bytes, name);  // says what else is wrong with it
  fail("expected a mask as a PNG file, found a picture in another format", std::string(name),
       "masks are PNG with a palette or grey: other formats change the numbers or hold colours");
}

Mask read_mask(const std::filesystem::path& file) {
  return decode_mask(read_file_bytes(file), file.string());
}

std::array<uint8_t, 3> class_colour(uint8_t number) {
  std::array<uint8_t, 3> colour{};
  for (unsigned bit = 0; bit < 8; ++bit)
    colour[bit % 3] = uint8_t(colour[bit % 3] | ((number >> bit & 1u) << (7 - bit / 3)));
  return colour;
}

namespace {

void check(const Mask& mask) {
  size_t pixels = 0;
  if (mask.width == 0 || mask.height == 0 ||
      __builtin_mul_overflow(mask.width, mask.height, &pixels) || mask.values.size() != pixels)
    fail(fmt::format("expected width x height values, found {} for {}x{}", mask.values.size(),
                     mask.width, mask.height),
         "mask", "fill width, height and values of the Mask");
}

}  // namespace

std::vector<uint8_t> encode_mask(const Mask& mask) {
  check(mask);
  std::vector<uint8_t> palette;
  for (unsigned number = 0; number < 256; ++number)
    for (const uint8_t channel : class_colour(uint8_t(number))) palette.push_back(channel);
  return encode_palette_png(mask.width, mask.height, mask.values.data(), palette.data());
}

void write_mask(const std::filesystem::path& file, const Mask& mask) {
  const std::vector<uint8_t> bytes = encode_mask(mask);
  write_file_atomically(file, {std::as_bytes(std::span(bytes))});
}

Mask resize_mask(const Mask& mask, const Window& part, size_t width, size_t height) {
  check(mask);
  if (part.width == 0 || part.height == 0 || part.width > mask.width ||
      part.left > mask.width - part.width || part.height > mask.height ||
      part.top > mask.height - part.height)
    fail(fmt::format("the part {}x{} at ({}, {}) does not lie in the mask of {}x{}", part.width,
                     part.height, part.left, part.top, mask.width, mask.height),
         "mask", "");
  Mask out{width, height, std::vector<uint8_t>(width * height)};
  for (size_t y = 0; y < height; ++y) {
    const uint8_t* row =
        mask.values.data() + (part.top + y * part.height / height) * mask.width + part.left;
    for (size_t x = 0; x < width; ++x) out.values[y * width + x] = row[x * part.width / width];
  }
  return out;
}

Mask resize_mask(const Mask& mask, size_t width, size_t height) {
  return resize_mask(mask, {0, 0, mask.width, mask.height}, width, height);
}

}  // namespace fungi
