// SPDX-License-Identifier: Apache-2.0
// TIFF, BMP, GIF, AVIF and HEIC against Pillow's verdicts and bytes, whole and broken; hostile
// files; and the names of what is not read.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "fungi/base/error.h"
#include "tests/input/pattern.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;

std::vector<uint8_t> golden(const std::string& name) {
  return read_file_bytes(fs::path(FUNGI_GOLDEN_DIR) / "input/formats" / name);
}

bool is_read(const std::string& format) { return std::ranges::count(image_formats(), format) > 0; }

// Whether this build reads a golden file: two formats are options.
bool is_built(const std::string& file) {
  return (is_read("AVIF") || !file.ends_with(".avif")) &&
         (is_read("HEIC") || !file.ends_with(".heic"));
}

std::string error_of(const std::vector<uint8_t>& bytes, const DecodeOptions& options = {},
                     const std::string& name = "some/file") {
  try {
    decode_image(bytes, name, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.place(), name);
    return error.what();
  }
  return "";
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "expected '" << part << "' in '" << text << "'";
}

TEST(ImageFormats, EveryFileAsPillow) {
  const auto cases = testing::golden_json("input/formats.json");
  ASSERT_GT(cases.size(), 700u);
  for (const auto& expected : cases) {
    const std::string file = expected["file"];
    if (!is_built(file)) continue;
    SCOPED_TRACE(file + " " + expected["edits"].dump());
    const auto bytes = testing::edited(golden(file), expected["edits"]);
    const std::pair<const char*, DecodeOptions> ways[] = {{"strict", {}},
                                                          {"lenient", {.allow_truncated = true}},
                                                          {"exif", {.exif_orientation = true}}};
    for (const auto& [key, options] : ways)
      if (expected.contains(key))
        EXPECT_EQ(testing::verdict(bytes, file, options), expected[key]) << key;
  }
}

// Versions of libheif convert colours of half the resolution to shades that are one apart.
TEST(ImageFormats, HeicAsPillowWithinAShade) {
  if (!is_read("HEIC")) GTEST_SKIP() << "this build has no HEIC: install libheif-dev";
  size_t compared = 0;
  for (const auto& expected : testing::golden_json("input/formats.json")) {
    if (!expected.contains("near")) continue;
    const std::string file = expected["file"];
    const Image image = decode_image(golden(file), file);
    const auto near = testing::from_hex(expected["near"].get<std::string>());
    ASSERT_EQ(image.rgb.size(), near.size()) << file;
    for (size_t i = 0; i < near.size(); ++i) ASSERT_NEAR(image.rgb[i], near[i], 2) << file << i;
    ++compared;
  }
  EXPECT_EQ(compared, 4u);
}

// Whatever the bytes, there is an image or an Error: no crash, no other exception, nothing printed.
TEST(ImageFormats, FlippedBytesNeverCrashAndPrintNothing) {
  TorchRandom random(7);
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  for (const auto& entry : fs::directory_iterator(fs::path(FUNGI_GOLDEN_DIR) / "input/formats")) {
    const std::string file = entry.path().filename();
    if (!is_built(file)) continue;
    const auto whole = golden(file);
    for (int round = 0; round < 40; ++round) {
      auto bytes = whole;
      for (uint32_t i = 0; i <= random.integer(4); ++i)
        bytes[random.integer(uint32_t(bytes.size()))] = uint8_t(random.draw());
      try {
        const Image image = decode_image(
            bytes, file,
            {.exif_orientation = true, .allow_truncated = round % 2 == 1, .max_pixels = 1 << 20});
        EXPECT_EQ(image.rgb.size(), 3 * image.width * image.height);
      } catch (const Error&) {
      }
    }
  }
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

// libtiff's handlers belong to a file, not to the process: threads do not see each other's.
TEST(ImageFormats, ThreadsReadTiffsSideBySide) {
  const auto good = golden("lzw.tif"), strips = golden("lzw_rgba.tif");
  auto bad = golden("zstd.tif");
  for (size_t i = 10; i < 200; ++i) bad[i] = uint8_t(i);
  const auto expected = testing::verdict(good, "good", {});
  ASSERT_NE(expected, nullptr);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        wrong[size_t(t)] += testing::verdict(good, "good", {}) != expected;
        wrong[size_t(t)] += testing::verdict(bad, "bad", {}) != nullptr;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

void put(std::vector<uint8_t>& bytes, size_t at, uint32_t value, size_t size) {
  for (size_t i = 0; i < size; ++i) bytes[at + i] = uint8_t(value >> 8 * i);
}

// Where the value of a tag stands in the first directory of a little-endian file.
size_t value_at(const std::vector<uint8_t>& tiff, uint16_t tag) {
  const size_t directory = tiff[4] | size_t(tiff[5]) << 8;
  for (size_t at = directory + 2; at + 12 <= tiff.size(); at += 12)
    if ((tiff[at] | tiff[at + 1] << 8) == tag) return at + 8;
  ADD_FAILURE() << "no tag " << tag;
  return 0;
}

TEST(ImageFormats, RefusesBombsBeforeAllocating) {
  auto bmp = golden("rgb.bmp");
  put(bmp, 18, 30000, 4);
  put(bmp, 22, 30000, 4);
  expect_contains(error_of(bmp), "30000x30000");
  auto gif = golden("palette.gif");
  put(gif, 6, 30000, 2);
  put(gif, 8, 30000, 2);
  expect_contains(error_of(gif), "30000x30000");
  for (const char* file : {"strips.tif", "lzw.tif"}) {
    auto tiff = golden(file);
    for (const uint16_t tag : {256, 257}) {
      put(tiff, value_at(tiff, tag) - 6, 4, 2);  // a long
      put(tiff, value_at(tiff, tag), 30000, 4);
    }
    expect_contains(error_of(tiff), "30000x30000");
  }
  for (const char* file : {"rgb.bmp", "palette.gif", "strips.tif", "lzw.tif"}) {
    expect_contains(error_of(golden(file), {.max_pixels = 23 * 17 - 1}), "limit of 390");
    EXPECT_EQ(error_of(golden(file), {.max_pixels = 23 * 17}), "") << file;
  }
  for (const char* file : {"444.avif", "444.heic"})
    if (is_built(file)) {
      EXPECT_NE(error_of(golden(file), {.max_pixels = 40 * 26 - 1}), "") << file;
      EXPECT_EQ(error_of(golden(file), {.max_pixels = 40 * 26}), "") << file;
    }
}

// A hint that names an option which is set, or never helps, sends its reader in circles.
TEST(ImageFormats, AllowTruncatedIsNamedOnlyWhereItHelps) {
  const std::string option = "`allow_truncated`";
  for (const char* file : {"rgb.bmp", "palette.gif", "lzw.tif", "runs4.bmp"}) {
    const auto whole = golden(file);
    size_t named = 0;
    for (size_t size = 30; size < whole.size(); size += 3) {
      SCOPED_TRACE(std::string(file) + " cut to " + std::to_string(size));
      const std::vector<uint8_t> cut(whole.begin(), whole.begin() + ptrdiff_t(size));
      const std::string strict = error_of(cut);
      if (strict.find(option) == std::string::npos) continue;
      EXPECT_EQ(error_of(cut, {.allow_truncated = true}), "");
      ++named;
    }
    EXPECT_EQ(named > 0,
              std::string_view(file) == "rgb.bmp" || std::string_view(file) == "palette.gif")
        << file;
  }
  // The directory of this one stands in front of its pixels.
  auto tiff = golden("l.tif");
  tiff.resize(tiff.size() - 30);
  expect_contains(error_of(tiff), option);
  EXPECT_EQ(error_of(tiff, {.allow_truncated = true}), "");
}

TEST(ImageFormats, WhatIsNotReadIsNamed) {
  using namespace std::string_literals;
  const std::pair<std::string, const char*> kinds[] = {
      {"qoif\0\0\0\1"s, "QOI"},
      {"8BPS\0\1"s, "Photoshop"},
      {"\0\0\0\x0cjP  \r\n"s, "JPEG 2000"},
      {"\xff\x4f\xff\x51"s, "JPEG 2000"},
      {"\xff\x0a\0"s, "JPEG XL"},
      {"%PDF-1.7"s, "PDF"},
      {"<svg xmlns='x'>"s, "SVG"},
      {"<?xml version='1.0'?>\n<svg>"s, "SVG"},
      {"<?xml version='1.0'?>\n<a>"s, "XML"},
      {"P6\n1 1\n255\nabc"s, "PPM"},
      {"\0\0\0\x18"
       "ftypisom\0\0\0\0mp42"s,
       "a video"},
      {std::string(40, '\1') + "TRUEVISION-XFILE.\0"s, "TGA"},
      {"<html>"s, "an HTML page"}};
  for (const auto& [bytes, format] : kinds) {
    const std::string error = error_of({bytes.begin(), bytes.end()});
    expect_contains(error, std::string("found ") + format);
    expect_contains(error, "this build reads JPEG, PNG, WebP, TIFF, BMP, GIF");
  }
  std::vector<uint8_t> tga(30);  // an old one, which has no mark
  tga[2] = 10;
  expect_contains(error_of(tga, {}, "old.TGA"), "found TGA");
  expect_contains(error_of(tga, {}, "old.jpg"), "unknown data beginning with 00 00 0a");
  tga[2] = 2;  // begins as a CUR does
  expect_contains(error_of(tga, {}, "old.TGA"), "found TGA");
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n";
  const std::string lfs = error_of({pointer.begin(), pointer.end()}, {}, "a.jpg");
  expect_contains(lfs, "Git LFS pointer");
  expect_contains(lfs, "git lfs pull");
  const auto lab = [] {  // CIE L*a*b*
    auto bytes = golden("strips.tif");
    put(bytes, value_at(bytes, 262), 8, 2);
    return bytes;
  }();
  expect_contains(error_of(lab), "CIE L*a*b*");
  expect_contains(error_of(lab), "convert the file to PNG or JPEG");
}

// A container of either kind may call itself "mif1"; what it is compatible with tells.
TEST(ImageFormats, ContainersAreToldByTheirBrands) {
  for (const char* file : {"444.avif", "444.heic"}) {
    if (!is_built(file)) continue;
    auto bytes = golden(file);
    const Image expected = decode_image(bytes, file);
    std::copy_n("mif1", 4, bytes.begin() + 8);
    EXPECT_EQ(decode_image(bytes, file).rgb, expected.rgb) << file;
    std::copy_n("isom", 4, bytes.begin() + 8);
    expect_contains(error_of(bytes), "a video");
  }
}

}  // namespace
}  // namespace fungi
