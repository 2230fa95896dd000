// SPDX-License-Identifier: Apache-2.0
// Sounds. Internal to this room; modality.h gives it.
#pragma once

#include "fungi/feature/modality.h"
#include "fungi/view/sound_views.h"

namespace fungi {

class SoundModality final : public Modality {
 public:
  explicit SoundModality(const SoundReading& reading) : reading_(reading) {}
  SampleKind kind() const override { return SampleKind::sound; }
  size_t views(const ViewPlan& plan) const override { return sound_view_count(plan); }
  std::unique_ptr<ViewMaker> maker(const ViewPlan& plan) const override {
    return std::make_unique<SoundViews>(plan, reading_);
  }
  InputSettings settings(const DecodeOptions& decode) const override;
  double seconds() const override { return sound_view_seconds(reading_); }

 private:
  SoundReading reading_;
};

// What the model and the options make of a sound. Errors: the front end and the sides of the
// model's input contradict each other.
SoundReading sound_reading(const Architecture& architecture, const SoundOptions& options);

}  // namespace fungi
