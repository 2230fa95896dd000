// SPDX-License-Identifier: Apache-2.0
#include "fungi/base/sound_front_end.h"

namespace fungi {

const char* to_string(SoundFrontEnd::Kind kind) {
  switch (kind) {
    case SoundFrontEnd::Kind::kaldi:
      return "kaldi";
    case SoundFrontEnd::Kind::whisper:
      return "whisper";
    case SoundFrontEnd::Kind::mfcc:
      return "mfcc";
  }
  return "";
}

SoundFrontEnd ast_front_end() { return {.centre = true}; }

SoundFrontEnd whisper_front_end(size_t mels) {
  return {.kind = SoundFrontEnd::Kind::whisper,
          .fft = 400,
          .mels = mels,
          .bins = mels,
          .low_hz = 0,
          .frames = 3000,
          .normalise = false};
}

SoundFrontEnd kwt_front_end() {
  return {.kind = SoundFrontEnd::Kind::mfcc,
          .window = 480,
          .mels = 80,
          .bins = 40,
          .high_hz = 7600,
          .frames = 98,
          .normalise = false};
}

}  // namespace fungi
