// SPDX-License-Identifier: Apache-2.0
// What DINO's training does to a crop besides cutting it out: flip, colours, grey, blur and
// solarisation, in its order and with its parameters. Internal to the library.
#pragma once

#include <array>
#include <cstdint>

#include "fungi/base/random.h"
#include "fungi/input/image.h"

namespace fungi {

struct Augmentation {
  bool flip = false;
  bool jitter = false;
  std::array<uint32_t, 4> order{0, 1, 2, 3};  // of brightness, contrast, saturation, hue
  float brightness = 1, contrast = 1, saturation = 1, hue = 0;
  bool grey = false;
  float blur = 0;  // its deviation in pixels; 0: none
  bool solarise = false;
};

// Which crop it is: blur and solarisation differ.
enum class CropRole { first_global, other_global, local };

// Numbers of torch's generator in the order in which torchvision asks for them; those that DINO
// takes from Python's generator come from this one, too.
Augmentation draw_augmentation(CropRole role, TorchRandom& random);

void apply(const Augmentation& augmentation, Image& image);

}  // namespace fungi
