// SPDX-License-Identifier: Apache-2.0
// Pictures small enough to be carried in a page. Internal to the library.
#pragma once

#include <cstdint>
#include <vector>

#include "fungi/input/image.h"

namespace fungi {

// The centre square, shrunk to `side` pixels where it is larger, as a WebP file.
std::vector<uint8_t> thumbnail(const Image& image, size_t side);

// The whole picture, shrunk so that its longer side has `side` pixels where it is larger.
std::vector<uint8_t> small_picture(const Image& image, size_t side);

}  // namespace fungi
