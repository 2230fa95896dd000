// SPDX-License-Identifier: Apache-2.0
// Names what is not read, so that nobody has to guess why a picture failed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "fungi/base/error.h"
#include "fungi/input/codec.h"
#include "fungi/input/sound.h"

namespace fungi::codec {
namespace {

using namespace std::string_view_literals;
using Bytes = std::span<const uint8_t>;

struct Magic {
  std::string_view bytes;
  size_t offset;
  const char* format;
};

constexpr Magic kMagics[] = {{"\0\0\0\x0cJXL "sv, 0, "JPEG XL"},
                             {"\xff\x0a", 0, "JPEG XL"},
                             {"\0\0\0\x0cjP  "sv, 0, "JPEG 2000"},
                             {"\xff\x4f\xff\x51", 0, "JPEG 2000"},
                             {"II\xbc", 0, "JPEG XR"},
                             {"P1", 0, "PBM"},
                             {"P2", 0, "PGM"},
                             {"P3", 0, "PPM"},
                             {"P4", 0, "PBM"},
                             {"P5", 0, "PGM"},
                             {"P6", 0, "PPM"},
                             {"P7", 0, "PAM"},
                             {"qoif", 0, "QOI"},
                             {"8BPS", 0, "Photoshop (PSD)"},
                             {"gimp xcf", 0, "GIMP (XCF)"},
                             {"DDS ", 0, "DDS"},
                             {"\x76\x2f\x31\x01", 0, "OpenEXR"},
                             {"#?RADIANCE", 0, "Radiance HDR"},
                             {"SIMPLE  =", 0, "FITS"},
                             {"BPG\xfb", 0, "BPG"},
                             {"\0\0\x01\0"sv, 0, "ICO"},
                             {"\0\0\x02\0"sv, 0, "CUR"},
                             {"\x01\xda", 0, "SGI"},
                             {"%PDF", 0, "PDF"},
                             {"%!PS", 0, "PostScript"},
                             {"PK\x03\x04", 0, "a ZIP archive"},
                             {"\x1f\x8b", 0, "gzip data"},
                             {"\x89HDF", 0, "HDF5"},
                             {"\x93NUMPY", 0, "a numpy array"},
                             {"ftypM4A", 4, "AAC in MP4 (M4A)"},
                             {"ftyp", 4, "a video (MP4 or its kin)"},
                             {"WAVE", 8, "a WAV sound"},
                             {"fLaC", 0, "a FLAC sound"},
                             {"OggS", 0, "an OGG stream"},
                             {"ID3", 0, "an MP3 sound"},
                             {"\x30\x26\xb2\x75", 0, "Windows media (WMA)"},
                             {"\x1a\x45\xdf\xa3", 0, "Matroska or WebM"},
                             {"\xff\xd8\xff", 0, "a JPEG picture"},
                             {"\x89PNG", 0, "a PNG picture"},
                             {"GIF8", 0, "a GIF picture"},
                             {"WEBP", 8, "a WebP picture"},
                             {"<svg", 0, "SVG"},
                             {"<?xml", 0, "XML"},
                             {"<!DOCTYPE", 0, "an HTML page"},
                             {"<html", 0, "an HTML page"}};

// TGA begins with no mark of its own: newer ones end with one, of older ones the name and the
// plausible fields of the header tell it.
bool is_tga(Bytes bytes, std::string_view name) {
  constexpr auto kEnd = "TRUEVISION-XFILE.\0"sv;
  if (bytes.size() > kEnd.size() && starts_with(bytes, kEnd, bytes.size() - kEnd.size()))
    return true;
  std::string end(name.substr(name.size() - std::min<size_t>(name.size(), 4)));
  std::ranges::transform(end, end.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? c | 32 : c; });
  return end == ".tga" && bytes.size() >= 18 && bytes[1] <= 1 && (bytes[2] & ~8) <= 3;
}

std::string describe(Bytes bytes, std::string_view name) {
  if (is_tga(bytes, name)) return "TGA";  // the first bytes of most are those of a CUR
  for (const Magic& magic : kMagics)
    if (starts_with(bytes, magic.bytes, magic.offset)) {
      const std::string_view start(reinterpret_cast<const char*>(bytes.data()),
                                   std::min<size_t>(bytes.size(), 1000));
      return magic.bytes == "<?xml" && start.find("<svg") != start.npos ? "SVG" : magic.format;
    }
  if (bytes.empty()) return "an empty file";
  return fmt::format("unknown data beginning with {:02x}",
                     fmt::join(bytes.first(std::min<size_t>(bytes.size(), 8)), " "));
}

}  // namespace

bool starts_with(Bytes bytes, std::string_view magic, size_t offset) {
  return bytes.size() >= offset + magic.size() &&
         std::memcmp(bytes.data() + offset, magic.data(), magic.size()) == 0;
}

Brand brand_of(Bytes bytes) {
  if (!starts_with(bytes, "ftyp", 4)) return Brand::none;
  const auto one_of = [&](size_t at, std::initializer_list<std::string_view> brands) {
    return std::ranges::any_of(brands, [&](auto brand) { return starts_with(bytes, brand, at); });
  };
  // The first brand, then those that the file is compatible with; "mif1" may be either.
  const size_t size = size_t(bytes[0]) << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
  for (size_t at = 8; at + 4 <= std::min(size, bytes.size()); at += at == 8 ? 8 : 4) {
    if (one_of(at, {"avif", "avis"})) return Brand::avif;
    if (one_of(at, {"heic", "heix", "heim", "heis", "hevc", "hevx", "hevm", "hevs"}))
      return Brand::heic;
    if (at == 8 && !one_of(at, {"mif1", "msf1"})) return Brand::none;
  }
  return Brand::none;
}

namespace {

void refuse_pointer(const char* expected, Bytes bytes, std::string_view name) {
  if (starts_with(bytes, "version https://git-lfs"))
    fail(fmt::format("expected {}, found a Git LFS pointer, not the file itself", expected),
         std::string(name),
         "run 'git lfs pull' in its repository, then repeat with `retry_failed`");
}

}  // namespace

void fail_unread_sound(Bytes bytes, std::string_view name, std::string_view why) {
  refuse_pointer("a sound", bytes, name);
  std::string found = describe(bytes, name);
  if (!why.empty()) found += fmt::format(" ({})", why.substr(0, why.find_last_not_of(" .\n") + 1));
  fail(fmt::format("expected a sound, found {}", found), std::string(name),
       fmt::format("this build reads {}; convert the file to one of them",
                   fmt::join(sound_formats(), ", ")));
}

void fail_unread(Bytes bytes, std::string_view name) {
  refuse_pointer("an image", bytes, name);
  fail(fmt::format("expected an image, found {}", describe(bytes, name)), std::string(name),
       fmt::format("this build reads {}; convert the file to one of them",
                   fmt::join(image_formats(), ", ")));
}

}  // namespace fungi::codec
