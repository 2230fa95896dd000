// SPDX-License-Identifier: Apache-2.0
// Views of a sound: the rows of its filter bank, as they are or with noise and rolled along time
// (SPEC 5.7, 10.3), each normalised as the model wants it. Internal to the library;
// feature/sound_modality makes them.
#pragma once

#include <span>
#include <vector>

#include "fungi/input/filter_bank.h"
#include "fungi/view/view.h"

namespace fungi {

// How many views of a sound the plan gives. Error where it is none of sounds, or gives more than
// kMostViews.
size_t sound_view_count(const ViewPlan& plan);

// What a sound becomes for the model that looks at it.
struct SoundReading {
  SoundFrontEnd front_end;
  double window = 0;  // seconds that are looked at; 0: as many as the model looks at
};

// Seconds of a sound that decide about its views: what the model looks at, and a little more, which
// the resampler looks at and by which a clip is known to be longer.
double sound_view_seconds(const SoundReading& reading);

// One draw of SoundShifts.
struct SoundShift {
  std::span<const float> noise;  // U, as many numbers as the rows have
  float scale = 0;               // the noise is added times this: noise of the plan times u
  ptrdiff_t roll = 0;            // rows, to later ones
};
// The first `rolled` rows are rolled, and come round at their end; all get noise.
void shift_sound(View<const float> rows, const SoundShift& draw, size_t rolled, View<float> out);

class SoundViews final : public ViewMaker {
 public:
  SoundViews(const ViewPlan& plan, const SoundReading& reading);
  // Error where the sample is no sound, or shorter than one window of the model's.
  void open(const Sample& sample, uint32_t seed) override;
  void write(size_t view, InputBuffer& out) override;
  bool cut() const override { return cut_; }
  bool resampled() const override { return resampled_; }

 private:
  ViewPlan plan_;
  SoundReading reading_;
  FilterBank bank_;
  Matrix<float> rows_;       // of the open sound, before they are normalised
  std::vector<float> noise_;  // of a draw
  size_t count_, held_ = 0;  // views; rows that hold sound
  uint32_t seed_ = 0;
  bool cut_ = false, resampled_ = false;
};

}  // namespace fungi
