// SPDX-License-Identifier: Apache-2.0
// What people look at and listen to of a sample, whatever its kind. Internal to the library; the
// report shows it.
#pragma once

#include <cstdint>
#include <vector>

#include "fungi/input/sample.h"

namespace fungi {

// The picture that it is, or of a sound its spectrogram, `side` pixels high and wide: time to the
// right, mel upwards, the loudest lightest. Error where a sample is neither.
Image picture_of(const Sample& sample, size_t side);

// Of a sound its first seconds as a WAV file of 16 bits, at most so many bytes long; of any other
// sample nothing.
std::vector<uint8_t> clip_of(const Sample& sample, size_t most_bytes);

}  // namespace fungi
