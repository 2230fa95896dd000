// SPDX-License-Identifier: Apache-2.0
// What augmentations do to the colours of a picture, in 8 bits, as Pillow's ImageEnhance, its HSV,
// ImageOps and ImageFilter do it. Internal to the library.
#pragma once

#include "fungi/input/image.h"

namespace fungi {

// From black, from the grey of the mean, from the picture's own grey: 1 leaves it, more goes beyond.
void scale_brightness(Image& image, float factor);
void scale_contrast(Image& image, float factor);
void scale_saturation(Image& image, float factor);
// Around the circle of hues, whose length is 1.
void shift_hue(Image& image, float shift);
void make_grey(Image& image);
// Bright values, from 128 on, are turned around.
void solarise(Image& image);
// Left and right change places.
void flip(Image& image);
// Three box filters along each axis, as Pillow approximates a Gaussian of this deviation (above 0).
void blur(Image& image, float deviation);

}  // namespace fungi
