// SPDX-License-Identifier: Apache-2.0
#include "fungi/view/sound_views.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fungi/base/error.h"
#include "fungi/base/random.h"
#include "fungi/input/sound.h"

namespace fungi {
namespace {

constexpr double kMargin = 0.5;  // seconds behind what the model looks at

struct Counter {
  size_t operator()(const WholeView&) const { return 1; }
  size_t operator()(const SoundShifts& plan) const {
    const auto [global, local] = std::pair(plan.global_views, plan.local_views);
    if (global > kMostViews || local > kMostViews - global || global + local == 0)
      fail(fmt::format("expected 1 to {} views of a sample, found {} + {}", kMostViews, global,
                       local),
           "SoundShifts::global_views");
    if (!(plan.noise >= 0) || !std::isfinite(plan.noise) || plan.shift > kMostViews)
      fail(fmt::format("expected noise from 0 on and a shift of at most {} rows, found {} and {}",
                       kMostViews, plan.noise, plan.shift),
           "SoundShifts::noise");
    return global + local;
  }
  template <class Plan>
  size_t operator()(const Plan&) const {
    fail("these views are of another kind of sample than sounds", "ViewPlan",
         "plan the whole sound, or shifts of it");
  }
};

}  // namespace

size_t sound_view_count(const ViewPlan& plan) { return std::visit(Counter{}, plan); }

double sound_view_seconds(const SoundReading& reading) {
  const SoundFrontEnd& f = reading.front_end;
  const double longest = double(f.longest()) / double(f.rate) + kMargin;
  return reading.window > 0 ? std::min(reading.window, longest) : longest;
}

void shift_sound(View<const float> rows, const SoundShift& draw, size_t rolled, View<float> out) {
  const ptrdiff_t ring = ptrdiff_t(rolled);
  for (size_t t = 0; t < rows.rows; ++t) {
    size_t to = t;
    if (t < rolled) to = size_t(((ptrdiff_t(t) + draw.roll) % ring + ring) % ring);
    const float *x = rows.row(t), *noise = draw.noise.data() + t * rows.cols;
    for (size_t m = 0; m < rows.cols; ++m) out.row(to)[m] = x[m] + noise[m] * draw.scale;
  }
}

SoundViews::SoundViews(const ViewPlan& plan, const SoundReading& reading)
    : plan_(plan),
      reading_(reading),
      bank_(reading.front_end),
      rows_(reading.front_end.frames, reading.front_end.bins),
      count_(sound_view_count(plan)) {
  if (!(reading.window >= 0) || !std::isfinite(reading.window))
    fail(fmt::format("expected seconds, found {}", reading.window), "`window`");
}

void SoundViews::open(const Sample& sample, uint32_t seed) {
  const Sound& sound = sound_of(sample);
  check(sound);
  const SoundFrontEnd& f = reading_.front_end;
  seed_ = seed;
  held_ = 0;  // where the sound is refused
  resampled_ = sound.rate != double(f.rate);
  std::span<const float> samples = sound.samples;
  const double most = std::max(1.0, std::round(sound_view_seconds(reading_) * sound.rate));
  if (most < double(samples.size())) samples = samples.first(size_t(most));
  std::vector<float> converted;
  if (resampled_) samples = converted = resample(samples, sound.rate, double(f.rate));
  cut_ = samples.size() > f.longest();
  held_ = bank_.rows(samples.first(std::min(samples.size(), f.longest())), rows_);
}

void SoundViews::write(size_t view, InputBuffer& out) {
  if (view >= count_ || held_ == 0)
    fail(fmt::format("expected a view from 0 to {} of an open sound, found {}",
                     held_ ? count_ - 1 : 0, view),
         "SoundViews::write", "call open() first");
  const SoundFrontEnd& f = reading_.front_end;
  const std::span<float> room = out.add_pixels(rows_.rows() * rows_.cols(), uint32_t(held_));
  const View<float> to(room.data(), rows_.rows(), rows_.cols());
  if (const auto* plan = std::get_if<SoundShifts>(&plan_)) {
    const RandomStream random(seed_, "sound shift", view);
    noise_.resize(room.size());
    for (size_t i = 0; i < noise_.size(); ++i) noise_[i] = float(random.uniform(i));
    const uint64_t choices = 2 * plan->shift + (plan->rule == SoundShifts::Rule::symmetric);
    SoundShift draw{noise_, float(plan->noise * random.uniform(noise_.size()))};
    if (choices > 0)
      draw.roll = ptrdiff_t(random.bits(noise_.size() + 1) % choices) - ptrdiff_t(plan->shift);
    // Where the model tells padding from sound, that stays where it is.
    const bool all = f.kind != SoundFrontEnd::Kind::whisper;
    shift_sound(rows_, draw, all ? rows_.rows() : held_, to);
  } else {
    std::copy_n(rows_.data(), room.size(), room.data());
  }
  bank_.normalise(to);
}

}  // namespace fungi
