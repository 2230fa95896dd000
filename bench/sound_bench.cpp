// SPDX-License-Identifier: Apache-2.0
// Kaldi's filter banks of sound files on one thread; bench/compare_audio.py runs it beside its peer.
//   sound_bench FOLDER [repeats]
// prints JSON: seconds of the best repeat on the clock and on the processor, and what came out.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <limits>
#include <vector>

#include "fungi/base/error.h"
#include "fungi/input/filter_bank.h"
#include "fungi/input/sound.h"

namespace {

namespace fs = std::filesystem;

struct Clip {
  std::vector<float> samples;
  size_t frames;
};

std::vector<Clip> clips_of(const char* folder, const fungi::SoundFrontEnd& front_end) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".wav") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  if (files.empty()) fungi::fail("holds no WAV files", folder, "check the path");
  std::vector<Clip> clips;
  for (const fs::path& file : files) {
    const fungi::Sound sound = fungi::read_sound(file);
    Clip clip{fungi::resample(sound.samples, sound.rate, double(front_end.rate)), 0};
    clip.frames = (clip.samples.size() - front_end.window) / front_end.hop + 1;
    clips.push_back(std::move(clip));
  }
  return clips;
}

double processor_seconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

void run(const char* folder, int repeats) {
  using Clock = std::chrono::steady_clock;
  const fungi::SoundFrontEnd front_end = fungi::ast_front_end();
  const std::vector<Clip> clips = clips_of(folder, front_end);
  size_t frames = 0;
  std::vector<fungi::FilterBank> banks;
  std::vector<fungi::Matrix<float>> rows;
  for (const Clip& clip : clips) {
    fungi::SoundFrontEnd own = front_end;
    own.frames = clip.frames;
    banks.emplace_back(own);
    rows.emplace_back(clip.frames, front_end.bins);
    frames += clip.frames;
  }
  double best = std::numeric_limits<double>::infinity(), best_processor = best, sum = 0;
  for (int i = 0; i < repeats; ++i) {
    const auto start = Clock::now();
    const double processor = processor_seconds();
    for (size_t c = 0; c < clips.size(); ++c) banks[c].rows(clips[c].samples, rows[c]);
    best_processor = std::min(best_processor, processor_seconds() - processor);
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  for (const auto& bank : rows)
    for (size_t t = 0; t < bank.rows(); ++t)
      for (size_t b = 0; b < bank.cols(); ++b) sum += double(bank(t, b));
  fmt::print(
      "{{\"clips\": {}, \"frames\": {}, \"mean\": {}, \"seconds\": {}, \"processor\": {}}}\n",
      clips.size(), frames, sum / double(frames * front_end.bins), best, best_processor);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "sound_bench FOLDER [repeats]\n");
    return 2;
  }
  try {
    run(argv[1], argc > 2 ? std::atoi(argv[2]) : 3);
  } catch (const fungi::Error& error) {
    fmt::print(stderr, "sound_bench: {}\n", error.what());
    return 1;
  }
}
