// SPDX-License-Identifier: Apache-2.0
// Bytes of a file -> samples of one channel, as libsndfile decodes them: WAV, FLAC, OGG (Vorbis,
// Opus), MP3, AIFF, AU and their kin, at the file's own rate. Channels become one by their mean.
// What is long is decoded only as far as it is asked for. All functions are pure and safe to call
// from any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/input/sample.h"

namespace fungi {

// The part of a sound that is decoded.
struct SoundPart {
  double begin = 0;    // seconds from its beginning
  double seconds = 0;  // 0: to its end
  // Keep what a file that was cut off still holds; default: Error.
  bool allow_truncated = false;
};

// More is refused where a whole sound is asked for: a GiB.
inline constexpr size_t kMostSamples = size_t{1} << 28;

// The formats that this build decodes; empty where it was built without libsndfile.
std::vector<std::string> sound_formats();

// Throws Error on anything that is not a whole sound of a known format with at least one sample,
// all of them finite. `name` is used in errors only.
Sound decode_sound(std::span<const uint8_t> bytes, std::string_view name,
                   const SoundPart& part = {});
// The same from a file, of which no more is in memory than is decoded.
Sound read_sound(const std::filesystem::path& file, const SoundPart& part = {});

// How long it says it is, in seconds, from its header where it has one.
double sound_seconds(std::span<const uint8_t> bytes, std::string_view name);
double sound_seconds(const std::filesystem::path& file);

// Throws Error unless there are samples, all finite, and a rate: for sounds that no decoder of ours
// made.
void check(const Sound& sound, const std::string& place = "sound");

// Another rate (soxr, its high quality); the same samples where it is the same already. Error where
// a rate is none, or where this build lacks soxr.
std::vector<float> resample(std::span<const float> samples, double from, double to);
// What does it, for manifests: "soxr HQ".
std::string resampler();

}  // namespace fungi
