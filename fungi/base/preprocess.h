// SPDX-License-Identifier: Apache-2.0
// A model's evaluation transform as plain numbers: resize, centre crop, scale to [0,1], normalise
// (SPEC 3.3, 3.4). A checkpoint tells it (backbone/preprocess_facts.cpp), input/preprocess.h does
// it, a store's manifest keeps it.
#pragma once

#include <array>
#include <cstddef>

namespace fungi {

inline constexpr std::array<float, 3> kImageNetMean = {0.485f, 0.456f, 0.406f};
inline constexpr std::array<float, 3> kImageNetStd = {0.229f, 0.224f, 0.225f};

enum class Filter { bilinear, bicubic };  // triangle; Keys cubic with a = -1/2
const char* to_string(Filter filter);

// The published package shows KL the picture squashed to 256 by the triangle filter: {.resize =
// squash, .resize_size = 256, .filter = bilinear}. DEVIATION: it does so with torch's 8-bit kernel
// (SPEC 3.2 C), which differs from Pillow's, used here, by at most one level.
struct Preprocess {
  enum class Resize {
    none,        // the pixels as they are
    short_side,  // shorter side to resize_size, longer side in proportion, its fraction cut off
    squash,      // both sides to resize_size, proportion not kept
  };
  Resize resize = Resize::short_side;
  size_t resize_size = 256;
  Filter filter = Filter::bicubic;
  size_t input_size = 224;  // side of the centre crop, and of every view: the model's input
  // Where a crop leaves an odd number of pixels, half of it is rounded down, as Hugging Face's
  // image processors do it; otherwise to even, as torchvision.
  bool floor_crop = false;
  std::array<float, 3> mean = kImageNetMean, std = kImageNetStd;
  bool operator==(const Preprocess&) const = default;

  bool squashes() const { return resize == Resize::squash; }
  void set_squash(bool yes) { resize = yes ? Resize::squash : Resize::short_side; }
  void set_bilinear(bool yes) { filter = yes ? Filter::bilinear : Filter::bicubic; }
};
const char* to_string(Preprocess::Resize resize);

}  // namespace fungi
