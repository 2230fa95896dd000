// SPDX-License-Identifier: Apache-2.0
#include "fungi/report/thumbnail.h"

#include <fmt/format.h>
#include <webp/encode.h>

#include <algorithm>

#include "fungi/base/error.h"
#include "fungi/input/resize.h"

namespace fungi {
namespace {

std::vector<uint8_t> encode(const Image& image) {
  constexpr float kQuality = 82;
  uint8_t* bytes = nullptr;
  const size_t size = WebPEncodeRGB(image.rgb.data(), int(image.width), int(image.height),
                                    int(3 * image.width), kQuality, &bytes);
  if (size == 0)
    fail(fmt::format("libwebp could not encode {}x{} pixels", image.width, image.height),
         "thumbnail", "free some memory");
  std::vector<uint8_t> file(bytes, bytes + size);
  WebPFree(bytes);
  return file;
}

}  // namespace

std::vector<uint8_t> thumbnail(const Image& image, size_t side) {
  const size_t square = std::min(image.width, image.height), to = std::min(side, square);
  const Pixels centre =
      Pixels(image).crop((image.width - square) / 2, (image.height - square) / 2, square, square);
  Image small;
  PillowResizer().resize(centre, to, to, Filter::bicubic, small);
  return encode(small);
}

std::vector<uint8_t> small_picture(const Image& image, size_t side) {
  const size_t longer = std::max(image.width, image.height), to = std::min(side, longer);
  const auto shrunk = [&](size_t length) { return std::max<size_t>(1, length * to / longer); };
  Image small;
  PillowResizer().resize(image, shrunk(image.width), shrunk(image.height), Filter::bicubic, small);
  return encode(small);
}

}  // namespace fungi
