// SPDX-License-Identifier: Apache-2.0
#include "fungi/input/filter_bank.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

#include "fungi/base/error.h"
#include "fungi/input/fourier.h"

namespace fungi {
namespace {

using Kind = SoundFrontEnd::Kind;

constexpr float kPreEmphasis = 0.97f;
constexpr float kLeastEnergy = std::numeric_limits<float>::epsilon();  // Kaldi's
constexpr float kLeastPower = 1e-10f;                                  // Whisper's
constexpr float kLeastMagnitude = 1e-12f;                              // KWT's
constexpr float kRange = 8;                                            // Whisper's, in log10

// One triangle: the first frequency with a weight, and the weights from there on.
struct Triangle {
  size_t first = 0;
  std::vector<float> weights;
};

double kaldi_mel(double hz) { return 1127 * std::log1p(hz / 700); }

// Slaney's: linear to 1000 Hz, logarithmic behind.
constexpr double kLinear = 200.0 / 3, kKnee = 1000;
const double kStep = std::log(6.4) / 27;
double slaney_mel(double hz) {
  return hz < kKnee ? hz / kLinear : kKnee / kLinear + std::log(hz / kKnee) / kStep;
}
double slaney_hz(double mel) {
  const double knee = kKnee / kLinear;
  return mel < knee ? mel * kLinear : kKnee * std::exp(kStep * (mel - knee));
}

// Kaldi's triangles are straight in mel, Slaney's in Hz and of the same area each. The last
// coefficient, at half the rate, has no weight in Kaldi; there a triangle ends in any case.
std::vector<Triangle> triangles(const SoundFrontEnd& f) {
  const bool slaney = f.kind == Kind::whisper;
  const auto mel = slaney ? slaney_mel : kaldi_mel;
  const double low = mel(f.low_hz), step = (mel(f.high_hz) - low) / double(f.mels + 1);
  std::vector<Triangle> out(f.mels);
  for (size_t m = 0; m < f.mels; ++m) {
    const auto edge = [&](size_t k) {
      const double at = low + double(k) * step;
      return slaney ? slaney_hz(at) : at;
    };
    const double left = edge(m), centre = edge(m + 1), right = edge(m + 2);
    Triangle& triangle = out[m];
    for (size_t k = 0; k <= f.fft / 2; ++k) {
      const double hz = double(k) * double(f.rate) / double(f.fft), x = slaney ? hz : mel(hz);
      const double weight = std::min((x - left) / (centre - left), (right - x) / (right - centre));
      if (weight <= 0) continue;
      if (triangle.weights.empty()) triangle.first = k;
      triangle.weights.push_back(float(slaney ? weight * 2 / (right - left) : weight));
    }
  }
  return out;
}

std::vector<float> hann(size_t size, bool periodic) {
  std::vector<float> window(size);
  const double period = double(periodic ? size : size - 1);
  for (size_t n = 0; n < size; ++n)
    window[n] = float(0.5 - 0.5 * std::cos(2 * std::numbers::pi * double(n) / period));
  return window;
}

// Several sums side by side, which the processor adds at a time.
float total(std::span<const float> numbers) {
  constexpr size_t kLanes = 16;
  float lanes[kLanes] = {}, sum = 0;
  size_t n = 0;
  for (; n + kLanes <= numbers.size(); n += kLanes)
    for (size_t i = 0; i < kLanes; ++i) lanes[i] += numbers[n + i];
  for (; n < numbers.size(); ++n) sum += numbers[n];
  for (const float lane : lanes) sum += lane;
  return sum;
}

// DCT of type II times sqrt(2 / mels), [bins, mels].
Matrix<float> cosines(const SoundFrontEnd& f) {
  Matrix<float> out(f.bins, f.mels);
  for (size_t i = 0; i < f.bins; ++i)
    for (size_t j = 0; j < f.mels; ++j)
      out(i, j) = float(std::sqrt(2.0 / double(f.mels)) *
                        std::cos(std::numbers::pi * double(i) * (double(j) + 0.5) /
                                 double(f.mels)));
  return out;
}

void check(const SoundFrontEnd& f) {
  const char* hint = "correct preprocessor_config.json, or leave the front end to the family";
  const auto expect = [&](bool good, const char* what) {
    if (!good) fail(fmt::format("the front end of the model is none: {}", what), "sound", hint);
  };
  constexpr size_t kMost = 1 << 20;
  expect(f.rate >= 100 && f.rate <= kMost, "its rate is not from 100 to a million");
  expect(f.window >= 2 && f.window <= f.fft, "a window is longer than its transform");
  expect(f.hop >= 1 && f.hop <= kMost, "it has no step between frames");
  expect(f.fft % 2 == 0 && f.fft <= kMost, "its transform has no even size");
  expect(f.mels >= 1 && f.mels <= f.fft, "it has no triangles, or more than frequencies");
  expect(f.bins >= 1 && (f.kind == Kind::mfcc ? f.bins <= f.mels : f.bins == f.mels),
         "rows and triangles differ in number");
  expect(f.low_hz >= 0 && f.high_hz > f.low_hz && f.high_hz <= double(f.rate) / 2,
         "its frequencies are not between 0 and half the rate");
  expect(f.frames >= 1 && f.frames <= kMost, "it has no frames");
  expect(f.kind != Kind::kaldi || !f.normalise ||
             (std::isfinite(f.mean) && std::isfinite(f.std) && f.std > 0),
         "its mean and std are no numbers to normalise with");
}

}  // namespace

struct FilterBank::State {
  SoundFrontEnd f;
  std::vector<Triangle> mel;
  std::vector<float> window;
  Matrix<float> dct;
  RealFourier fourier;
  std::vector<float> plain, frame, spectrum, energies, silence;  // silence: its row

  explicit State(const SoundFrontEnd& facts)
      : f((check(facts), facts)),
        mel(triangles(f)),
        window(hann(f.window, f.kind != Kind::kaldi)),
        dct(f.kind == Kind::mfcc ? cosines(f) : Matrix<float>()),
        fourier(f.fft),
        plain(f.window),
        frame(f.fft),
        spectrum(f.fft / 2 + 1),
        energies(f.mels),
        silence(f.bins) {
    write(silence.data());
  }

  // Sample `at` of the clip minus its mean; mirrored at the ends of the `span` samples that a clip
  // of Whisper's is filled up to.
  static float mirrored(std::span<const float> samples, ptrdiff_t at, size_t span) {
    if (at < 0) at = -at;
    if (size_t(at) >= span) at = 2 * (ptrdiff_t(span) - 1) - at;
    return at >= 0 && size_t(at) < samples.size() ? samples[size_t(at)] : 0;
  }

  // The samples of frame t, windowed; false: all of them are silence.
  bool cut(std::span<const float> samples, float mean, size_t t) {
    std::fill(frame.begin() + ptrdiff_t(f.window), frame.end(), 0.0f);
    const size_t w = f.window;
    if (f.kind == Kind::kaldi) {
      const float* x = samples.data() + t * f.hop;
      for (size_t n = 0; n < w; ++n) plain[n] = x[n] - mean;
      const float dc = total(plain) / float(w);
      for (float& p : plain) p -= dc;
      frame[0] = (plain[0] - kPreEmphasis * plain[0]) * window[0];
      for (size_t n = 1; n < w; ++n) frame[n] = (plain[n] - kPreEmphasis * plain[n - 1]) * window[n];
      return true;
    }
    const ptrdiff_t first =
        ptrdiff_t(t * f.hop) - (f.kind == Kind::whisper ? ptrdiff_t(w / 2) : 0);
    if (first >= 0 && size_t(first) + w <= samples.size()) {
      std::copy_n(samples.data() + first, w, frame.data());
    } else {
      if (first >= ptrdiff_t(samples.size()) && size_t(first) + w <= f.span()) return false;
      for (size_t n = 0; n < w; ++n) frame[n] = mirrored(samples, first + ptrdiff_t(n), f.span());
    }
    for (size_t n = 0; n < w; ++n) frame[n] *= window[n];
    return true;
  }

  void measure() {
    const std::complex<float>* c = fourier(frame.data());
    for (size_t k = 0; k < spectrum.size(); ++k)
      spectrum[k] = c[k].real() * c[k].real() + c[k].imag() * c[k].imag();
    if (f.kind == Kind::mfcc)
      for (float& x : spectrum) x = std::sqrt(x);
    for (size_t m = 0; m < mel.size(); ++m) {
      const float *x = spectrum.data() + mel[m].first, *w = mel[m].weights.data();
      float sum = 0;
      for (size_t k = 0; k < mel[m].weights.size(); ++k) sum += w[k] * x[k];
      energies[m] = sum;
    }
  }

  void write(float* row) {
    switch (f.kind) {
      case Kind::kaldi:
        for (size_t m = 0; m < f.mels; ++m) row[m] = std::log(std::max(energies[m], kLeastEnergy));
        return;
      case Kind::whisper:
        for (size_t m = 0; m < f.mels; ++m) row[m] = std::log10(std::max(energies[m], kLeastPower));
        return;
      case Kind::mfcc:
        for (float& e : energies) e = std::log(std::max(e, kLeastMagnitude));
        for (size_t i = 0; i < f.bins; ++i)
          row[i] = std::inner_product(energies.begin(), energies.end(), dct.row(i), 0.0f);
    }
  }
};

FilterBank::FilterBank(const SoundFrontEnd& f) : state_(std::make_unique<State>(f)) {}
FilterBank::FilterBank(FilterBank&&) noexcept = default;
FilterBank::~FilterBank() = default;

const SoundFrontEnd& FilterBank::front_end() const { return state_->f; }

size_t FilterBank::rows(std::span<const float> samples, View<float> out) {
  State& s = *state_;
  const SoundFrontEnd& f = s.f;
  const bool kaldi = f.kind == Kind::kaldi;
  if (out.rows != f.frames || out.cols != f.bins)
    fail(fmt::format("expected room for {} x {} numbers, found {} x {}", f.frames, f.bins, out.rows,
                     out.cols),
         "FilterBank::rows");
  if (samples.empty() || (kaldi && samples.size() < f.window))
    fail(fmt::format("the clip has {} samples at {} per second, less than one window of {}",
                     samples.size(), f.rate, f.window),
         "sound", "leave it out, or fill it up with silence");
  double sum = 0;
  if (kaldi && f.centre) sum = std::accumulate(samples.begin(), samples.end(), 0.0);
  const float mean = float(sum / double(samples.size()));
  if (!kaldi) samples = samples.first(std::min(samples.size(), f.span()));
  const size_t within = samples.size() < f.window ? 0 : (samples.size() - f.window) / f.hop + 1,
               touched = (samples.size() + f.hop - 1) / f.hop,
               held = std::min(kaldi ? within : touched, f.frames);
  for (size_t t = 0; t < (kaldi ? held : f.frames); ++t) {
    if (s.cut(samples, mean, t))
      s.measure(), s.write(out.row(t));
    else
      std::copy(s.silence.begin(), s.silence.end(), out.row(t));
  }
  for (size_t t = held; kaldi && t < f.frames; ++t) std::fill_n(out.row(t), f.bins, 0.0f);
  if (f.kind == Kind::whisper) {
    float most = out.row(0)[0];
    for (size_t t = 0; t < f.frames; ++t)
      most = std::max(most, *std::max_element(out.row(t), out.row(t) + f.bins));
    for (size_t t = 0; t < f.frames; ++t)
      for (size_t m = 0; m < f.bins; ++m) out.row(t)[m] = std::max(out.row(t)[m], most - kRange);
  }
  return held;
}

float FilterBank::unit() const {
  const SoundFrontEnd& f = state_->f;
  if (f.kind == Kind::whisper) return 4;
  return f.kind == Kind::kaldi && f.normalise ? 2 * f.std : 1;
}

void FilterBank::normalise(View<float> rows) const {
  const SoundFrontEnd& f = state_->f;
  const float offset = f.kind == Kind::whisper ? -4.0f : f.normalise ? f.mean : 0, by = unit();
  if (f.kind == Kind::mfcc || (f.kind == Kind::kaldi && !f.normalise)) return;
  for (size_t t = 0; t < rows.rows; ++t)
    for (size_t m = 0; m < rows.cols; ++m) rows.row(t)[m] = (rows.row(t)[m] - offset) / by;
}

}  // namespace fungi
