// SPDX-License-Identifier: Apache-2.0
// Pictures and masks as PNG files in memory. Internal to the library.
#pragma once

#include <cstdint>
#include <vector>

#include "fungi/input/image.h"

namespace fungi {

// One byte per pixel, looked up in a palette of 256 colours, RGB or RGB and alpha each.
std::vector<uint8_t> encode_palette_png(size_t width, size_t height, const uint8_t* numbers,
                                        const uint8_t* palette, bool alpha = false);
std::vector<uint8_t> encode_png(const Image& image);

}  // namespace fungi
