// SPDX-License-Identifier: Apache-2.0
// Bytes of a file -> 8-bit RGB pixels, the same bytes as Pillow's Image.open(f).convert("RGB")
// (SPEC 3.1). First step of the flow: everything after it (resize, views, backbones) sees only this
// struct. All functions are pure and safe to call from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/base/error.h"

namespace fungi {

struct Image {
  size_t width = 0, height = 0;
  std::vector<uint8_t> rgb;  // height * width * 3, row-major, interleaved
};

// Throws Error unless both sides are positive and rgb has the bytes they say: for pictures that no
// decoder of ours made.
void check(const Image& image, const std::string& place = "image");

struct DecodeOptions {
  bool exif_orientation = false;  // turn the picture as its EXIF tag says; the references do not
  bool allow_truncated = false;   // keep what a broken file still holds; default: Error
  // More pixels than this are refused before anything is allocated. The default is Pillow's: it
  // warns above 1 GiB / 4 / 3 pixels and refuses above twice that.
  size_t max_pixels = 178'956'970;
  bool operator==(const DecodeOptions&) const = default;
};

// The formats that this build decodes. Every one has JPEG, PNG, WebP, TIFF, BMP and GIF; AVIF and
// HEIC need libraries that may have been left out.
const std::vector<std::string>& image_formats();

// Decodes a picture, whose format is told by its first bytes. Alpha is dropped, not blended; 16-bit
// colour keeps its high byte; 16-bit grey is clipped at 255 (all three as Pillow does). Of several
// pictures (an animation, pages) the first is taken. TIFF and HEIC are turned as they say in any
// case. `name` is used in errors only. Throws Error on anything that is not a whole, supported
// image.
Image decode_image(std::span<const uint8_t> bytes, std::string_view name,
                   const DecodeOptions& options = {});

// The same from a file; the path is the name.
Image read_image(const std::filesystem::path& file, const DecodeOptions& options = {});

// Bytes that a file or a member of an archive may have: no picture and no list needs more, and what
// is larger (a disk image with a picture's name) must not take all memory.
inline constexpr size_t kLargestFile = size_t(1) << 30;

// The process has too many files open, the system no memory left, the network disk does not answer,
// or the whole data set is gone: no fault of the file, and nothing that may be recorded as one.
class Exhausted : public Error {
 public:
  using Error::Error;
};

// Throws Error "what: the system's reason"; Exhausted where errno says so.
[[noreturn]] void fail_reading(const char* what, int reason, const std::filesystem::path& file);

// The whole content of a file. Throws Error with the system's reason, and beyond kLargestFile.
std::vector<uint8_t> read_file_bytes(const std::filesystem::path& file);

}  // namespace fungi
