// SPDX-License-Identifier: Apache-2.0
#include "fungi/input/sound.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "fungi/base/error.h"
#include "fungi/input/sound_file.h"

namespace fungi {
namespace {

using codec::SoundFile;

constexpr size_t kFramesAtOnce = 1 << 14;
constexpr double kSlowest = 100, kFastest = 1e6;  // rates

// Of part of the file: as many frames as were asked for, or are there.
Sound decode(SoundFile file, const std::string& name, const SoundPart& part) {
  if (!(part.begin >= 0) || !(part.seconds >= 0) || !std::isfinite(part.begin + part.seconds))
    fail(fmt::format("expected a part of a sound, found {} seconds from {} on", part.seconds,
                     part.begin),
         "SoundPart");
  const double rate = file.rate();
  const size_t channels = file.channels();
  if (!(rate >= kSlowest && rate <= kFastest) || channels == 0)
    fail(fmt::format("expected {} to {} samples per second, found {} of {} channels", kSlowest,
                     kFastest, rate, channels),
         name, "its header is wrong: convert it anew");
  if (file.is_cut_off() && !part.allow_truncated)
    fail("the file ends before its sound does: it was cut off", name,
         "fetch it again, or keep what it holds with `allow_truncated`");
  const uint64_t begin = uint64_t(std::llround(part.begin * rate)), said = file.frames();
  if (begin > 0) file.seek(begin);
  const uint64_t asked = part.seconds > 0 ? uint64_t(std::llround(part.seconds * rate)) : 0;
  Sound sound{{}, rate};
  constexpr uint64_t kReserved = 1 << 20;  // a header may say anything
  const uint64_t rest = said > begin ? said - begin : 0;
  sound.samples.reserve(size_t(std::min({asked ? asked : rest, rest, kReserved})));
  std::vector<float> frames(kFramesAtOnce * channels);
  try {
    for (size_t got = 1; got > 0 && (!asked || sound.samples.size() < asked);) {
      const uint64_t left = asked ? asked - sound.samples.size() : kFramesAtOnce;
      got = file.read(frames.data(), size_t(std::min<uint64_t>(left, kFramesAtOnce)));
      if (sound.samples.size() + got > kMostSamples)
        fail(fmt::format("the sound has more than {} samples", kMostSamples), name,
             "cut it into parts: `window`");
      // DEVIATION: the experiments take the first channel, and feed any rate as it is, which makes
      // another filter bank (SPEC 10.0).
      for (size_t i = 0; i < got; ++i) {
        float sum = 0;
        for (size_t c = 0; c < channels; ++c) sum += frames[i * channels + c];
        sound.samples.push_back(sum / float(channels));
      }
    }
  } catch (const Error&) {
    if (!part.allow_truncated || sound.samples.empty()) throw;
  }
  const uint64_t found = begin + sound.samples.size();
  if (found + file.slack() < said && (!asked || sound.samples.size() < asked) && !part.allow_truncated)
    fail(fmt::format("the header speaks of {} samples, the file holds {}: it was cut off", said,
                     found),
         name, "fetch it again, or keep what it holds with `allow_truncated`");
  check(sound, name);
  return sound;
}

// As whole numbers, of which the compiler takes many at a time.
bool all_finite(std::span<const float> samples) {
  constexpr uint32_t kExponent = 0x7F800000;
  uint32_t bad = 0;
  for (const float x : samples) bad |= (std::bit_cast<uint32_t>(x) & kExponent) == kExponent;
  return !bad;
}

double seconds_of(const SoundFile& file) {
  return file.rate() > 0 ? double(file.frames()) / file.rate() : 0;
}

}  // namespace

std::vector<std::string> sound_formats() {
  if (!codec::kHaveSoundFiles) return {};
  return {"WAV", "FLAC", "OGG", "Opus", "MP3", "AIFF", "AU", "CAF", "W64"};
}

Sound decode_sound(std::span<const uint8_t> bytes, std::string_view name, const SoundPart& part) {
  return decode(SoundFile::open(bytes, name), std::string(name), part);
}

Sound read_sound(const std::filesystem::path& file, const SoundPart& part) {
  return decode(SoundFile::open(file), file.string(), part);
}

double sound_seconds(std::span<const uint8_t> bytes, std::string_view name) {
  return seconds_of(SoundFile::open(bytes, name));
}
double sound_seconds(const std::filesystem::path& file) {
  return seconds_of(SoundFile::open(file));
}

void check(const Sound& sound, const std::string& place) {
  if (!(sound.rate >= kSlowest && sound.rate <= kFastest))
    fail(fmt::format("expected {} to {} samples per second, found {}", kSlowest, kFastest,
                     sound.rate),
         place);
  if (sound.samples.empty()) fail("the sound holds no samples", place, "leave it out");
  if (all_finite(sound.samples)) return;
  const auto bad = std::find_if_not(sound.samples.begin(), sound.samples.end(),
                                    [](float x) { return std::isfinite(x); });
  fail(fmt::format("sample {} is no finite number", bad - sound.samples.begin()), place,
       "convert the file anew, to 16-bit samples, say");
}

}  // namespace fungi
