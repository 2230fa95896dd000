// SPDX-License-Identifier: Apache-2.0
// Sounds: every format as libsndfile's Python binding decodes it, parts, other rates, and files
// that are broken or lie.
#include "fungi/input/sound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <numbers>

#include "fungi/input/sound_file.h"
#include "tests/input/wav_writer.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"
#include "tests/support/golden.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;

const fs::path kFormats = fs::path(FUNGI_GOLDEN_DIR) / "sound" / "formats";

std::vector<fs::path> formats() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kFormats))
    if (entry.path().extension() != ".npy") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

class Sounds : public ::testing::Test {
 protected:
  void SetUp() override {
    if (sound_formats().empty()) GTEST_SKIP() << "built without libsndfile";
  }
};

// MP3 and Opus are decoded by libraries whose versions differ in the last bits.
double tolerance(const fs::path& file) {
  const std::string end = file.extension();
  return end == ".mp3" || end == ".opus" || end == ".ogg" ? 1e-4 : 1e-7;
}

TEST_F(Sounds, EveryFormatIsDecodedAsSoundfileDoes) {
  ASSERT_EQ(formats().size(), 15u);
  for (const fs::path& file : formats()) {
    const golden::Array expected = golden::load(file.string() + ".npy");
    const std::vector<uint8_t> bytes = read_file_bytes(file);
    for (const Sound& sound : {read_sound(file), decode_sound(bytes, file.string())}) {
      EXPECT_EQ(sound.rate, 16000) << file;
      ASSERT_EQ(sound.samples.size(), expected.values.size()) << file;
      double worst = 0;
      for (size_t i = 0; i < sound.samples.size(); ++i)
        worst = std::max(worst, std::abs(sound.samples[i] - expected.values[i]));
      EXPECT_LE(worst, tolerance(file)) << file;
    }
    const double seconds = double(expected.values.size()) / 16000;
    EXPECT_NEAR(sound_seconds(file), seconds, 1e-9) << file;
    EXPECT_NEAR(sound_seconds(bytes, "x"), seconds, 1e-9) << file;
  }
}

TEST_F(Sounds, APartIsThatOfTheWhole) {
  for (const char* name : {"pcm16.wav", "flac.flac", "aiff.aiff", "vorbis.ogg", "au.au"}) {
    const Sound whole = read_sound(kFormats / name);
    const Sound part = read_sound(kFormats / name, {.begin = 0.01, .seconds = 0.02});
    ASSERT_EQ(part.samples.size(), 320u) << name;
    for (size_t i = 0; i < 320; ++i)
      ASSERT_NEAR(part.samples[i], whole.samples[160 + i], 1e-6) << name;
    EXPECT_EQ(read_sound(kFormats / name, {.begin = 0.07, .seconds = 1}).samples.size(), 80u);
  }
  EXPECT_NE(test::error_of([&] { read_sound(kFormats / "pcm16.wav", {.begin = 9}); }), "");
  EXPECT_NE(test::error_of([&] { read_sound(kFormats / "pcm16.wav", {.begin = -1}); }), "");
}

TEST_F(Sounds, ChannelsBecomeTheirMean) {
  const std::vector<uint8_t> wav = test::wav({.channels = 3}, {3000, 6000, 0, -300, 0, 0});
  const Sound sound = decode_sound(wav, "x");
  ASSERT_EQ(sound.samples.size(), 2u);
  EXPECT_FLOAT_EQ(sound.samples[0], 3000.0f / 32768);
  EXPECT_FLOAT_EQ(sound.samples[1], -100.0f / 32768);
}

// Half of every format: none is taken for a whole sound. (An MP3 may lack four of its frames, and
// that of this test has no more.)
TEST_F(Sounds, WhatIsCutOffIsRefused) {
  for (const fs::path& file : formats()) {
    if (file.extension() == ".mp3") continue;
    std::vector<uint8_t> bytes = read_file_bytes(file);
    bytes.resize(bytes.size() * 6 / 10);
    const std::string error = test::error_of([&] { decode_sound(bytes, "clip"); });
    EXPECT_NE(error, "") << file;
    EXPECT_NE(error.find("clip"), std::string::npos) << error;
  }
}

TEST_F(Sounds, WhatIsCutOffIsKeptWhereThatIsWanted) {
  for (const char* name : {"pcm16.wav", "aiff.aiff", "au.au", "flac.flac"}) {
    std::vector<uint8_t> bytes = read_file_bytes(kFormats / name);
    bytes.resize(bytes.size() * 9 / 10);
    const Sound whole = read_sound(kFormats / name);
    Sound kept;
    const std::string error =
        test::error_of([&] { kept = decode_sound(bytes, "x", {.allow_truncated = true}); });
    if (std::string(name) == "flac.flac" && !error.empty()) continue;  // it may end in its block
    ASSERT_EQ(error, "") << name;
    ASSERT_LT(kept.samples.size(), whole.samples.size()) << name;
    EXPECT_GT(kept.samples.size(), 500u) << name;
    EXPECT_TRUE(std::equal(kept.samples.begin(), kept.samples.end(), whole.samples.begin()));
  }
}

TEST_F(Sounds, AHeaderThatLiesIsRefused) {
  const auto refused = [&](const test::Wav& header) {
    return test::error_of([&] { decode_sound(test::wav(header, {1, 2, 3, 4}), "clip"); });
  };
  EXPECT_EQ(refused({}), "");
  EXPECT_NE(refused({.data_bytes = 4000}).find("cut off"), std::string::npos);
  EXPECT_EQ(refused({.data_bytes = 0xFFFFFFFF}), "");  // written before its length was known
  EXPECT_NE(refused({.rate = 0}), "");
  EXPECT_NE(refused({.rate = 4'000'000'000}), "");
  EXPECT_NE(refused({.channels = 0}), "");
}

TEST_F(Sounds, EmptyAndUnreadableOnesAreRefused) {
  const auto refused = [&](std::vector<uint8_t> bytes) {
    return test::error_of([&] { decode_sound(bytes, "clip"); });
  };
  EXPECT_NE(refused({}).find("an empty file"), std::string::npos);
  EXPECT_NE(refused(test::wav({}, {})).find("no samples"), std::string::npos);
  const std::string picture = refused({0x89, 'P', 'N', 'G', 13, 10, 26, 10, 0, 0});
  EXPECT_NE(picture.find("a PNG picture"), std::string::npos) << picture;
  EXPECT_NE(picture.find("WAV, FLAC"), std::string::npos) << picture;
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\n";
  EXPECT_NE(refused({pointer.begin(), pointer.end()}).find("Git LFS"), std::string::npos);
  const test::TemporaryFolder folder;
  EXPECT_NE(test::error_of([&] { read_sound(folder / "none.wav"); }).find("none.wav"),
            std::string::npos);
}

TEST_F(Sounds, NumbersThatAreNoneAreRefused) {
  std::vector<uint8_t> bytes = read_file_bytes(kFormats / "float.wav");
  const float bad = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(bytes.data() + bytes.size() - 400, &bad, 4);
  const std::string error = test::error_of([&] { decode_sound(bytes, "clip"); });
  EXPECT_NE(error.find("is no finite number"), std::string::npos) << error;
  EXPECT_NE(test::error_of([&] { check(Sound{{0, bad}, 16000}); }), "");
  EXPECT_NE(test::error_of([&] { check(Sound{{}, 16000}); }), "");
  EXPECT_NE(test::error_of([&] { check(Sound{{0}, 0}); }), "");
}

// Twenty minutes in a file of silence; the memory of one second is enough.
TEST_F(Sounds, OnlyWhatIsAskedForIsDecoded) {
  const test::TemporaryFolder folder;
  {
    std::ofstream out(folder / "long.wav", std::ios::binary);
    const uint32_t bytes = 20 * 60 * 48000 * 4;
    const std::vector<uint8_t> header =
        test::wav({.rate = 48000, .channels = 2, .data_bytes = bytes}, {});
    out.write(reinterpret_cast<const char*>(header.data()), std::streamsize(header.size()));
    out.seekp(std::streamoff(header.size()) + bytes - 1);
    out.put(0);
  }
  EXPECT_DOUBLE_EQ(sound_seconds(folder / "long.wav"), 1200);
  const Sound part = read_sound(folder / "long.wav", {.begin = 1199, .seconds = 5});
  EXPECT_EQ(part.samples.size(), 48000u);
  EXPECT_LT(part.samples.capacity(), 200000u);
}

TEST(SoundRates, AreConvertedAsSoxrDoes) {
  const std::string folder = FUNGI_GOLDEN_DIR "/sound/rates/";
  for (const int rate : {8000, 22050, 44100, 48000}) {
    const golden::Array from = golden::load(folder + fmt::format("from{}.npy", rate)),
                        to = golden::load(folder + fmt::format("to{}.npy", rate));
    std::vector<float> found;
    try {
      found = resample(from.floats(), rate, 16000);
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
    ASSERT_NEAR(double(found.size()), double(to.values.size()), 1) << rate;
    for (size_t i = 0; i < std::min(found.size(), to.values.size()); ++i)
      ASSERT_NEAR(found[i], to.values[i], 2e-6) << rate << " " << i;
  }
  const std::vector<float> same{0.25f, -1, 3};
  EXPECT_EQ(resample(same, 16000, 16000), same);
  EXPECT_NE(test::error_of([&] { resample(same, 0, 16000); }), "");
}

// A tone stays the tone that it is.
TEST(SoundRates, KeepATone) {
  std::vector<float> tone(8000);
  for (size_t n = 0; n < tone.size(); ++n)
    tone[n] = float(0.5 * std::sin(2 * std::numbers::pi * 440 * double(n) / 8000));
  std::vector<float> found;
  try {
    found = resample(tone, 8000, 16000);
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  ASSERT_EQ(found.size(), 16000u);
  for (size_t n = 1000; n < 15000; ++n)
    ASSERT_NEAR(found[n], 0.5 * std::sin(2 * std::numbers::pi * 440 * double(n) / 16000), 2e-5);
}

}  // namespace
}  // namespace fungi
