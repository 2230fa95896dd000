// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as a sound of any format, whole and in part, strictly and with all
// tolerance.
#include <cmath>
#include <cstdlib>

#include "fungi/base/error.h"
#include "fungi/input/sound.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr double kSeconds = 0.5;  // time is for decoders, not for long silence
  for (const bool tolerant : {false, true})
    for (const double begin : {0.0, 0.01}) try {
        const fungi::Sound sound = fungi::decode_sound(
            {data, size}, "fuzz",
            {.begin = begin, .seconds = kSeconds, .allow_truncated = tolerant});
        if (sound.samples.empty() || double(sound.samples.size()) > kSeconds * sound.rate + 1)
          std::abort();
        for (const float x : sound.samples)
          if (!std::isfinite(x)) std::abort();
      } catch (const fungi::Error&) {
      }
  return 0;
}
