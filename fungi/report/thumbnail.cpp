// SPDX-License-Identifier: Apache-2.0
#include "fungi/report/thumbnail.h"

#include <fmt/format.h>
#include <webp/encode.h>

#include <algorithm>

#include "fungi/base/error.h"
#include "fungi/input/resize.h"

namespace fungi {

std::vector<uint8_t> thumbnail(const Image& image, size_t side) {
  constexpr float kQuality = 82;
  const size_t square = std::min(image.width, image.height), to = std::min(side, square);
  const Pixels centre =
      Pixels(image).crop((image.width - square) / 2, (image.height - square) / 2, square, square);
  Image small;
  PillowResizer().resize(centre, to, to, Filter::bicubic, small);
  uint8_t* bytes = nullptr;
  const size_t size =
      WebPEncodeRGB(small.rgb.data(), int(to), int(to), int(3 * to), kQuality, &bytes);
  if (size == 0)
    fail(fmt::format("libwebp could not encode {0} x {0} pixels", to), "thumbnail",
         "free some memory");
  std::vector<uint8_t> file(bytes, bytes + size);
  WebPFree(bytes);
  return file;
}

}  // namespace fungi
