// SPDX-License-Identifier: Apache-2.0
// Samples -> rows of filter bank energies or cepstral coefficients, as a model's front end says
// (base/sound_front_end.h; SPEC 4.3, 10.3). Each row depends on its own samples alone, but for
// Whisper's, which are lifted to within 8 of the loudest. Internal to the library.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "fungi/base/matrix.h"
#include "fungi/base/sound_front_end.h"

namespace fungi {

// Holds tables and scratch memory: one per thread.
class FilterBank {
 public:
  // Error where the facts contradict each other, or this build has no Fourier transform.
  explicit FilterBank(const SoundFrontEnd& front_end);
  FilterBank(FilterBank&&) noexcept;
  ~FilterBank();

  const SoundFrontEnd& front_end() const;

  // The rows of a clip at the front end's rate, [frames, bins], before they are normalised; those
  // behind it are padding. Returns how many rows hold sound. Error where the clip is shorter than
  // one window of Kaldi's.
  size_t rows(std::span<const float> samples, View<float> out);
  // What the model is fed, in place: (x - mean) / (2 std) or Whisper's (x + 4) / 4.
  void normalise(View<float> rows) const;
  // By how much normalise() divides a difference of two rows.
  float unit() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fungi
