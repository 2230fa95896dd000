// SPDX-License-Identifier: Apache-2.0
// One sample of a data set: what a model looks at. Only the rooms input and view, and
// feature/modality, ask what kind it is.
#pragma once

#include <any>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "fungi/base/view_plan.h"
#include "fungi/input/image.h"

namespace fungi {

struct Text {
  std::string utf8;
};

struct Sound {
  std::vector<float> samples;  // one channel, -1 to 1
  double rate = 0;             // samples per second
};

// std::any holds a kind of your own, for a Dataset and a ViewMaker of your own.
using Sample = std::variant<Image, Text, Sound, std::any>;

SampleKind kind_of(const Sample& sample);

// What it holds in memory, for those that hold many; of your own kind nothing is known: 0.
size_t bytes_of(const Sample& sample);

// Throws Error where there is a NUL, or what is no UTF-8.
void check(const Text& text, const std::string& place = "text");
// Throws Error where an image is none (image.h), a text, or a sound (sound.h): for samples that no
// decoder of ours made.
void check(const Sample& sample);

// The sample as its kind. Error where it is another.
const Image& image_of(const Sample& sample);
const Text& text_of(const Sample& sample);
const Sound& sound_of(const Sample& sample);

}  // namespace fungi
