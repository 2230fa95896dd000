// SPDX-License-Identifier: Apache-2.0
// Through libpng's simplified writer, which jumps nowhere.
#include "fungi/input/png_write.h"

#include <fmt/format.h>
#include <png.h>

#include <limits>

#include "fungi/base/error.h"

namespace fungi {
namespace {

std::vector<uint8_t> write(png_image& image, const uint8_t* pixels, const uint8_t* palette) {
  png_alloc_size_t size = 0;
  std::vector<uint8_t> bytes;
  const bool measured = png_image_write_get_memory_size(image, size, 0, pixels, 0, palette);
  if (measured) bytes.resize(size);
  if (!measured || !png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels, 0, palette))
    fail(fmt::format("libpng could not write {}x{} pixels: {}", image.width, image.height,
                     image.message),
         "PNG", "free some memory");
  bytes.resize(size);
  return bytes;
}

png_image header(size_t width, size_t height, png_uint_32 format) {
  constexpr size_t kMost = 0x7fffffff;
  if (width == 0 || height == 0 || width > kMost || height > kMost)
    fail(fmt::format("expected sides of 1 to {} pixels, found {}x{}", kMost, width, height), "PNG",
         "write a smaller picture");
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = png_uint_32(width);
  image.height = png_uint_32(height);
  image.format = format;
  return image;
}

}  // namespace

std::vector<uint8_t> encode_palette_png(size_t width, size_t height, const uint8_t* numbers,
                                        const uint8_t* palette, bool alpha) {
  png_image image =
      header(width, height, alpha ? PNG_FORMAT_RGBA_COLORMAP : PNG_FORMAT_RGB_COLORMAP);
  image.colormap_entries = 256;
  return write(image, numbers, palette);
}

std::vector<uint8_t> encode_png(const Image& picture) {
  check(picture);
  png_image image = header(picture.width, picture.height, PNG_FORMAT_RGB);
  return write(image, picture.rgb.data(), nullptr);
}

}  // namespace fungi
