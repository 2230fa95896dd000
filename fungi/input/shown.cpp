// SPDX-License-Identifier: Apache-2.0
#include "fungi/input/shown.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "fungi/input/filter_bank.h"
#include "fungi/input/sound.h"

namespace fungi {
namespace {

constexpr double kShownRate = 16000, kShownSeconds = 30;

// From dark to light, and back again for those who see no colours.
std::array<uint8_t, 3> colour(float loudness) {
  constexpr std::array<std::array<float, 3>, 4> kStops{
      {{12, 10, 40}, {90, 30, 120}, {225, 100, 60}, {252, 240, 170}}};
  const float at = std::clamp(loudness, 0.0f, 1.0f) * float(kStops.size() - 1);
  const size_t below = std::min(size_t(at), kStops.size() - 2);
  std::array<uint8_t, 3> out;
  for (size_t c = 0; c < 3; ++c)
    out[c] = uint8_t(std::lround(std::lerp(kStops[below][c], kStops[below + 1][c],
                                           at - float(below))));
  return out;
}

std::span<const float> beginning(const Sound& sound) {
  const double most = kShownSeconds * sound.rate;
  return std::span(sound.samples).first(
      std::min(sound.samples.size(), size_t(std::max(most, 1.0))));
}

Image spectrogram(const Sound& sound, size_t side) {
  std::vector<float> samples = resample(beginning(sound), sound.rate, kShownRate);
  SoundFrontEnd f{.mels = 64, .bins = 64, .normalise = false};
  samples.resize(std::max(samples.size(), f.window));
  f.frames = (samples.size() - f.window) / f.hop + 1;
  Matrix<float> rows(f.frames, f.bins);
  FilterBank(f).rows(samples, rows);
  const float* all = rows.data();
  const float most = *std::max_element(all, all + f.frames * f.bins);
  constexpr float kRange = 12;  // in ln: what is softer is dark
  Image out{side, side, std::vector<uint8_t>(side * side * 3)};
  for (size_t y = 0; y < side; ++y)
    for (size_t x = 0; x < side; ++x) {
      const size_t t = x * f.frames / side, m = (side - 1 - y) * f.bins / side;
      const auto rgb = colour(1 + (rows(t, m) - most) / kRange);
      std::copy(rgb.begin(), rgb.end(), out.rgb.begin() + ptrdiff_t((y * side + x) * 3));
    }
  return out;
}

}  // namespace

Image picture_of(const Sample& sample, size_t side) {
  if (const auto* sound = std::get_if<Sound>(&sample)) return spectrogram(*sound, side);
  return image_of(sample);
}

std::vector<uint8_t> clip_of(const Sample& sample, size_t most_bytes) {
  constexpr size_t kHeader = 44;
  const auto* sound = std::get_if<Sound>(&sample);
  if (!sound || most_bytes <= kHeader) return {};
  double rate = sound->rate;
  std::vector<float> samples;
  if (rate > kShownRate)
    samples = resample(beginning(*sound), std::exchange(rate, kShownRate), kShownRate);
  else
    samples.assign(sound->samples.begin(), sound->samples.end());
  samples.resize(std::min(samples.size(), (most_bytes - kHeader) / 2));
  std::vector<uint8_t> out;
  const auto number = [&](uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) out.push_back(uint8_t(value >> (8 * i)));
  };
  const auto text = [&](std::string_view word) { out.insert(out.end(), word.begin(), word.end()); };
  const uint64_t data = 2 * samples.size(), whole = uint64_t(std::llround(rate));
  text("RIFF"), number(kHeader - 8 + data, 4), text("WAVEfmt "), number(16, 4);
  number(1, 2), number(1, 2), number(whole, 4), number(2 * whole, 4), number(2, 2), number(16, 2);
  text("data"), number(data, 4);
  for (const float x : samples)
    number(uint16_t(int16_t(std::lround(std::clamp(x, -1.0f, 1.0f) * 32767))), 2);
  return out;
}

}  // namespace fungi
