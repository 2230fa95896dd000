// SPDX-License-Identifier: Apache-2.0
#include "fungi/view/crop.h"

#include <cmath>

namespace fungi {

Crop random_resized_crop(size_t width, size_t height, float area_low, float area_high,
                         TorchRandom& random) {
  constexpr double kSlim = 3.0 / 4.0, kWide = 4.0 / 3.0;
  // float32 logarithm and exponential; taken through double, so that every C library rounds them
  // alike.
  const float log_slim = float(std::log(double(float(kSlim))));
  const float log_wide = float(std::log(double(float(kWide))));
  const double area = double(width) * double(height);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * double(random.uniform(area_low, area_high));
    const double ratio = double(float(std::exp(double(random.uniform(log_slim, log_wide)))));
    const auto w = size_t(std::nearbyint(std::sqrt(target * ratio)));  // half to even
    const auto h = size_t(std::nearbyint(std::sqrt(target / ratio)));
    if (w == 0 || w > width || h == 0 || h > height) continue;
    const size_t top = random.integer(uint32_t(height - h + 1));
    const size_t left = random.integer(uint32_t(width - w + 1));
    return {top, left, h, w};
  }
  size_t w = width, h = height;
  const double shape = double(width) / double(height);
  if (shape < kSlim)
    h = size_t(std::nearbyint(double(width) / kSlim));
  else if (shape > kWide)
    w = size_t(std::nearbyint(double(height) * kWide));
  return {(height - h) / 2, (width - w) / 2, h, w};
}

}  // namespace fungi
