// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/sound_modality.h"

#include <fmt/format.h>

#include <cmath>

#include "fungi/base/error.h"
#include "fungi/input/sound.h"

namespace fungi {

InputSettings SoundModality::settings(const DecodeOptions& decode) const {
  return SoundSettings{reading_.front_end, resampler(), reading_.window, decode.allow_truncated};
}

SoundReading sound_reading(const Architecture& a, const SoundOptions& options) {
  const SoundFrontEnd& f = a.sound.front_end;
  if (f.frames != a.input_w || f.bins != a.input_h)
    fail(fmt::format("the model looks at {} frames of {} numbers, its front end makes {} of {}",
                     a.input_w, a.input_h, f.frames, f.bins),
         a.family, "state another number of frames, or correct preprocessor_config.json");
  if (!(options.window >= 0) || !std::isfinite(options.window))
    fail(fmt::format("expected seconds from 0 on, found {}", options.window), "`window`");
  return {f, options.window};
}

}  // namespace fungi
