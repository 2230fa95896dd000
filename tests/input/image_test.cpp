// SPDX-License-Identifier: Apache-2.0
// Decoding against Pillow's bytes: every colour kind, real photographs, and files that are no
// images.
#include "fungi/input/image.h"

#include <gtest/gtest.h>

#include "fungi/base/error.h"
#include "tests/input/pattern.h"
#include "tests/support/data.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;

using testing::golden_image;

// The message of the Error that decoding throws, or "" when it does not.
std::string decode_error(std::vector<uint8_t> bytes, const DecodeOptions& options = {}) {
  try {
    decode_image(bytes, "some/file.jpg", options);
  } catch (const Error& error) {
    EXPECT_EQ(error.place(), "some/file.jpg");
    return error.what();
  }
  return "";
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "expected '" << part << "' in '" << text << "'";
}

TEST(Image, EveryKindAsPillow) {
  const auto cases = testing::golden_json("input/decode.json");
  ASSERT_GT(cases.size(), 50u);
  for (const auto& expected : cases) {
    const std::string file = expected["file"];
    SCOPED_TRACE(expected.contains("truncated") ? file + " (truncated)"
                 : expected.contains("exif")    ? file + " (exif)"
                                                : file);
    const DecodeOptions options{.exif_orientation = expected.contains("exif"),
                                .allow_truncated = expected.contains("truncated")};
    const auto bytes = golden_image(file);
    if (expected.contains("error")) {
      EXPECT_THROW(decode_image(bytes, file, options), Error);
      continue;
    }
    const Image image = decode_image(bytes, file, options);
    EXPECT_EQ(image.width, expected["width"]);
    EXPECT_EQ(image.height, expected["height"]);
    EXPECT_EQ(image.rgb, testing::from_hex(expected["rgb"].get<std::string>()));
  }
}

TEST(Image, RealPhotographsAsPillow) {
  const fs::path data = test::data_folder();
  if (!fs::exists(data / "images")) GTEST_SKIP() << test::missing_data(data / "images");
  const auto cases = testing::golden_json("input/real.json");
  ASSERT_EQ(cases.size(), 40u);
  for (const auto& expected : cases) {
    SCOPED_TRACE(expected["file"].get<std::string>());
    const Image image = read_image(data / expected["file"].get<std::string>());
    EXPECT_EQ(image.width, expected["width"]);
    EXPECT_EQ(image.height, expected["height"]);
    EXPECT_EQ(testing::checksum(image.rgb), expected["fnv1a64"]);
  }
}

// Which broken files are refused, and what the others show, is Pillow's choice, file by file.
TEST(Image, BrokenFilesAsPillow) {
  for (const auto& expected : testing::golden_json("input/broken.json")) {
    SCOPED_TRACE(expected.dump());
    const std::string file = expected["file"];
    const auto bytes = testing::edited(golden_image(file), expected["edits"]);
    for (const bool lenient : {false, true}) {
      const char* key = lenient ? "lenient" : "strict";
      if (!expected.contains(key)) continue;
      EXPECT_EQ(testing::verdict(bytes, file, {.allow_truncated = lenient}), expected[key]) << key;
    }
  }
}

// Found by fuzzing: libpng takes the memory that a chunk's length asks for, then looks for its
// bytes.
TEST(Image, AChunkThatIsNotThereTakesNoMemory) {
  const auto most_ever = [] {  // KiB of addresses, touched or not
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
      if (size_t kib; word == "VmPeak:" && status >> kib) return kib;
    return size_t(0);
  };
  std::vector<uint8_t> bytes = golden_image("rgb8.png");
  const uint8_t chunk[] = {0x60, 0, 0, 0, 'e', 'X', 'I', 'f', 'I', 'I'};     // 1.5 GiB
  bytes.insert(bytes.begin() + 8 + 25, std::begin(chunk), std::end(chunk));  // behind IHDR
  const size_t before = most_ever();
  for (const bool tolerant : {false, true})
    expect_contains(decode_error(bytes, {.allow_truncated = tolerant}), "end within the header");
  bytes = golden_image("rgb8.png");
  bytes.insert(bytes.end() - 12, std::begin(chunk), std::end(chunk));  // behind the pixels
  expect_contains(decode_error(bytes, {.exif_orientation = true}), "end in the chunk eXIf");
  EXPECT_LT(most_ever() - before, size_t(256) << 10);
}

// Where the first chunk of that name begins.
size_t chunk_at(const std::vector<uint8_t>& png, std::string_view name) {
  const auto at = std::search(png.begin(), png.end(), name.begin(), name.end());
  return size_t(at - png.begin()) - 4;
}

TEST(Image, ExifOfAPngMayStandBehindThePixels) {
  const DecodeOptions turned{.exif_orientation = true};
  const auto before = golden_image("exif_6.png");
  const auto eXIf = before.begin() + ptrdiff_t(chunk_at(before, "eXIf")), behind = eXIf + 12 + 26;
  auto after = before;
  after.erase(after.begin() + (eXIf - before.begin()), after.begin() + (behind - before.begin()));
  after.insert(after.begin() + ptrdiff_t(chunk_at(after, "IEND")), eXIf, behind);
  const Image expected = decode_image(before, "before", turned);
  EXPECT_EQ(expected.width, decode_image(before, "before").height);
  EXPECT_EQ(decode_image(after, "after", turned).rgb, expected.rgb);
  after.resize(after.size() - 12);  // no IEND
  EXPECT_EQ(decode_image(after, "after", turned).rgb, expected.rgb);
}

// Each scan goes over the whole picture: without a limit a small file takes minutes.
TEST(Image, RefusesJpegsOfHundredsOfScans) {
  const auto bytes = golden_image("progressive.jpg");  // ten scans
  const uint8_t scan[] = {0xff, 0xda};
  const auto last = std::find_end(bytes.begin(), bytes.end(), std::begin(scan), std::end(scan));
  const auto with_scans = [&](size_t count) {
    std::vector<uint8_t> more(bytes.begin(), bytes.end() - 2);
    for (size_t i = 10; i < count; ++i) more.insert(more.end(), last, bytes.end() - 2);
    more.insert(more.end(), bytes.end() - 2, bytes.end());
    return more;
  };
  EXPECT_EQ(decode_error(with_scans(100)), "");
  for (const bool tolerant : {false, true})
    expect_contains(decode_error(with_scans(101), {.allow_truncated = tolerant}),
                    "at most 100 progressive scans");
}

TEST(Image, ChunksOfAWebpArePaddedToAnEvenLength) {
  const DecodeOptions turned{.exif_orientation = true};
  const auto plain = golden_image("exif_8.webp");
  auto odd = plain;
  const std::string_view name = "EXIF", chunk("note\3\0\0\0abc\0", 12);
  odd.insert(std::search(odd.begin(), odd.end(), name.begin(), name.end()), chunk.begin(),
             chunk.end());
  odd[4] = uint8_t(odd[4] + chunk.size());
  const Image expected = decode_image(plain, "plain", turned);
  EXPECT_EQ(expected.width, decode_image(plain, "plain").height);
  EXPECT_EQ(decode_image(odd, "odd", turned).rgb, expected.rgb);
}

TEST(Image, SaysWhatItFoundInstead) {
  expect_contains(decode_error({}), "empty file (0 bytes)");
  expect_contains(decode_error({1, 2, 0xab}), "01 02 ab");
  EXPECT_THROW(read_image("no/such/file.png"), Error);
}

// The bytes of the file are a hole: nothing is written, and nothing read.
TEST(Image, RefusesFilesBeyondTheLimit) {
  const test::TemporaryFolder root;
  root.write("huge.jpg", "x");
  fs::resize_file(root.path() / "huge.jpg", kLargestFile + 1);
  try {
    read_file_bytes(root.path() / "huge.jpg");
    FAIL();
  } catch (const Error& error) {
    expect_contains(error.what(), "at most 1 GiB, found 1073741825 bytes");
    expect_contains(error.what(), "huge.jpg");
  }
}

TEST(Image, EveryCutIsAnError) {
  for (const char* file :
       {"progressive.jpg", "ycbcr_420.jpg", "cmyk_adobe.jpg", "rgba8.png", "interlaced.png",
        "lossy_alpha.webp", "lossless.webp", "animated.webp"}) {
    const auto whole = golden_image(file);
    for (size_t size = 1; size + 30 < whole.size(); size += 3) {
      SCOPED_TRACE(std::string(file) + " cut to " + std::to_string(size));
      EXPECT_NE(decode_error({whole.begin(), whole.begin() + ptrdiff_t(size)}), "");
    }
  }
  expect_contains(decode_error(golden_image("cut.jpg")), "truncated");
  expect_contains(decode_error(golden_image("cut.png")), "truncated");
}

// A hint that names an option which is set, or never helps, sends its reader in circles.
TEST(Image, AllowTruncatedIsNamedOnlyWhereItMayHelp) {
  const std::string option = "`allow_truncated`";
  for (const char* file : {"progressive.jpg", "ycbcr_420.jpg", "cut.jpg", "rgba8.png", "cut.png",
                           "interlaced.png", "lossy.webp", "lossless.webp", "animated.webp"}) {
    const auto whole = golden_image(file);
    size_t named = 0;
    for (size_t size = 12; size < whole.size(); size += 3) {
      SCOPED_TRACE(std::string(file) + " cut to " + std::to_string(size));
      const std::vector<uint8_t> cut(whole.begin(), whole.begin() + ptrdiff_t(size));
      const std::string tolerant = decode_error(cut, {.allow_truncated = true});
      EXPECT_EQ(tolerant.find(option), std::string::npos) << tolerant;
      const std::string strict = decode_error(cut);
      if (strict.find(option) == std::string::npos) continue;
      EXPECT_EQ(strict.find("within the header"), std::string::npos) << strict;
      ++named;
    }
    EXPECT_EQ(named == 0, std::string(file).ends_with(".webp")) << file;
  }
}

// Whatever the bytes, there is an image or an Error: no crash, no other exception.
TEST(Image, FlippedBytesNeverCrash) {
  TorchRandom random(5);
  for (const char* file : {"progressive.jpg", "ycck.jpg", "exif_6.jpg", "palette4.png", "rgb16.png",
                           "interlaced_palette.png", "exif_6.png", "lossy.webp", "exif_8.webp",
                           "animated.webp", "lossless_alpha.webp"}) {
    const auto whole = golden_image(file);
    for (int round = 0; round < 300; ++round) {
      auto bytes = whole;
      for (uint32_t i = 0; i <= random.integer(4); ++i)
        bytes[random.integer(uint32_t(bytes.size()))] = uint8_t(random.draw());
      for (const bool lenient : {false, true}) {
        try {
          const Image image = decode_image(
              bytes, file,
              {.exif_orientation = true, .allow_truncated = lenient, .max_pixels = 1 << 20});
          EXPECT_EQ(image.rgb.size(), 3 * image.width * image.height);
        } catch (const Error&) {
        }
      }
    }
  }
}

void put_big_endian(std::vector<uint8_t>& bytes, size_t at, uint32_t value, int size) {
  for (int i = 0; i < size; ++i) bytes[at + size_t(i)] = uint8_t(value >> 8 * (size - 1 - i));
}

uint32_t crc32(const uint8_t* data, size_t size) {
  uint32_t crc = ~0u;
  for (size_t i = 0; i < size; ++i) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

std::vector<uint8_t> png_of_size(uint32_t width, uint32_t height) {
  auto bytes = golden_image("rgb8.png");
  put_big_endian(bytes, 16, width, 4);
  put_big_endian(bytes, 20, height, 4);
  put_big_endian(bytes, 29, crc32(bytes.data() + 12, 17), 4);
  return bytes;
}

TEST(Image, RefusesBombsBeforeAllocating) {
  expect_contains(decode_error(png_of_size(30000, 30000)), "30000x30000");
  expect_contains(decode_error(png_of_size(0x7fffffff, 0x7fffffff)), "exceeds the limit");
  auto jpeg = golden_image("ycbcr_444.jpg");
  size_t frame = 2;
  while (jpeg[frame + 1] != 0xc0) frame += 2 + jpeg[frame + 2] * 256u + jpeg[frame + 3];
  put_big_endian(jpeg, frame + 5, 30000, 2);
  put_big_endian(jpeg, frame + 7, 30000, 2);
  expect_contains(decode_error(jpeg), "30000x30000");
  put_big_endian(jpeg, frame + 5, 0, 2);
  put_big_endian(jpeg, frame + 7, 0, 2);
  EXPECT_NE(decode_error(jpeg), "");
  EXPECT_NE(decode_error(png_of_size(0, 0)), "");

  expect_contains(decode_error(golden_image("rgb8.png"), {.max_pixels = 23 * 17 - 1}),
                  "limit of 390");
  EXPECT_EQ(decode_error(golden_image("rgb8.png"), {.max_pixels = 23 * 17}), "");
}

}  // namespace
}  // namespace fungi
