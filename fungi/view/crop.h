// SPDX-License-Identifier: Apache-2.0
// torchvision's RandomResizedCrop parameters (SPEC 3.6), drawn from torch's generator.
#pragma once

#include <cstddef>

#include "fungi/base/random.h"

namespace fungi {

struct Crop {
  size_t top = 0, left = 0, height = 0, width = 0;
};

// One crop of a `width` x `height` image whose area is a share in [area_low, area_high) and whose
// proportion lies in [3/4, 4/3); the centre fallback after ten vain attempts.
Crop random_resized_crop(size_t width, size_t height, float area_low, float area_high,
                         TorchRandom& random);

}  // namespace fungi
