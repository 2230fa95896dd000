// SPDX-License-Identifier: Apache-2.0
#include "fungi/view/augmentation.h"

#include <algorithm>

#include "fungi/view/colours.h"

namespace fungi {
namespace {

constexpr float kFlip = 0.5f, kJitter = 0.8f, kGrey = 0.2f, kSolarise = 0.2f;  // chances
constexpr float kBrightness = 0.4f, kContrast = 0.4f, kSaturation = 0.2f, kHue = 0.1f;
constexpr float kLeastBlur = 0.1f, kMostBlur = 2.0f;

float blur_chance(CropRole role) {
  switch (role) {
    case CropRole::first_global:
      return 1;
    case CropRole::other_global:
      return 0.1f;
    case CropRole::local:
      return 0.5f;
  }
  return 0;
}

}  // namespace

Augmentation draw_augmentation(CropRole role, TorchRandom& random) {
  Augmentation a;
  a.flip = random.uniform() < kFlip;
  a.jitter = random.uniform() <= kJitter;
  if (a.jitter) {
    const std::vector<uint32_t> order = random.permutation(4);
    std::copy_n(order.begin(), 4, a.order.begin());
    const auto around = [&](float middle, float far) {
      return random.uniform(middle - far, middle + far);
    };
    a.brightness = around(1, kBrightness);
    a.contrast = around(1, kContrast);
    a.saturation = around(1, kSaturation);
    a.hue = around(0, kHue);
  }
  a.grey = random.uniform() < kGrey;
  if (random.uniform() <= blur_chance(role)) a.blur = random.uniform(kLeastBlur, kMostBlur);
  if (role == CropRole::other_global) a.solarise = random.uniform() < kSolarise;
  return a;
}

void apply(const Augmentation& a, Image& image) {
  if (a.flip) flip(image);
  if (a.jitter)
    for (const uint32_t step : a.order) {
      if (step == 0) scale_brightness(image, a.brightness);
      if (step == 1) scale_contrast(image, a.contrast);
      if (step == 2) scale_saturation(image, a.saturation);
      if (step == 3) shift_hue(image, a.hue);
    }
  if (a.grey) make_grey(image);
  if (a.blur > 0) blur(image, a.blur);
  if (a.solarise) solarise(image);
}

}  // namespace fungi
