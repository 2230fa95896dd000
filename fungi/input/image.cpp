// SPDX-License-Identifier: Apache-2.0
// Tells formats apart, hands the bytes to their decoder and turns the result upright when asked to.
#include "fungi/input/image.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>

#include "fungi/base/error.h"
#include "fungi/input/codec.h"

namespace fungi {
namespace codec {

Image allocate(uint64_t width, uint64_t height, std::string_view name,
               const DecodeOptions& options) {
  if (width == 0 || height == 0)
    fail(fmt::format("image of {}x{} pixels has nothing to show", width, height), std::string(name),
         "remove or replace the file");
  if (width > options.max_pixels / height)
    fail(fmt::format("image of {}x{} pixels exceeds the limit of {} pixels", width, height,
                     options.max_pixels),
         std::string(name), "shrink the image (in a program: DecodeOptions::max_pixels)");
  Image image{size_t(width), size_t(height), {}};
  image.rgb.resize(image.width * image.height * 3);
  return image;
}

void fail_truncated(std::string_view format, std::string_view name, std::string_view detail,
                    bool usable) {
  fail(fmt::format("{} file is truncated: {}", format, detail), std::string(name),
       usable
           ? "fetch the file again, or use what is there with `allow_truncated` and `retry_failed`"
           : "fetch the file again: nothing of what is there can be used");
}

void fail_corrupt(std::string_view format, std::string_view name, std::string_view detail) {
  fail(fmt::format("{} file cannot be decoded: {}", format, detail), std::string(name),
       "check the file with another viewer; fetch or export it again");
}

void fail_unknown(std::string_view format, std::string_view name, std::string_view feature) {
  fail(fmt::format("{} file cannot be decoded: {} are not supported", format, feature),
       std::string(name), "convert the file to PNG or JPEG");
}

}  // namespace codec

void check(const Image& image, const std::string& place) {
  const size_t w = image.width, h = image.height;
  size_t bytes = 0;
  if (w == 0 || h == 0 || __builtin_mul_overflow(w, h, &bytes) ||
      __builtin_mul_overflow(bytes, size_t{3}, &bytes) || image.rgb.size() != bytes)
    fail(fmt::format("expected width x height x 3 bytes of pixels, found {} bytes for {}x{}",
                     image.rgb.size(), w, h),
         place, "fill width, height and rgb of the Image");
}

namespace {

// Classic and BigTIFF; the number behind the order of bytes may stand in the other one.
bool is_tiff(std::span<const uint8_t> bytes) {
  using namespace std::string_view_literals;
  for (const auto magic : {"II*\0"sv, "MM\0*"sv, "II\0*"sv, "MM*\0"sv, "II+\0"sv, "MM\0+"sv})
    if (codec::starts_with(bytes, magic)) return true;
  return false;
}

// Moves every pixel to where EXIF orientation 2..8 wants it.
Image upright(const Image& in, int orientation) {
  const bool swap = orientation >= 5;
  Image out{swap ? in.height : in.width, swap ? in.width : in.height, {}};
  out.rgb.resize(in.rgb.size());
  const size_t right = in.width - 1, bottom = in.height - 1;
  for (size_t y = 0; y < out.height; ++y)
    for (size_t x = 0; x < out.width; ++x) {
      size_t u = swap ? y : x, v = swap ? x : y;  // source column and row
      if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8)
        u = right - u;
      if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7)
        v = bottom - v;
      std::memcpy(&out.rgb[3 * (y * out.width + x)], &in.rgb[3 * (v * in.width + u)], 3);
    }
  return out;
}

}  // namespace

Image decode_image(std::span<const uint8_t> bytes, std::string_view name,
                   const DecodeOptions& options) {
  if (bytes.empty())
    fail("expected an image, found an empty file (0 bytes)", std::string(name),
         "remove the file or fetch it again");
  using codec::starts_with;
  codec::Decoded decoded;
  if (starts_with(bytes, "\xff\xd8\xff"))
    decoded = codec::decode_jpeg(bytes, name, options);
  else if (starts_with(bytes, "\x89PNG\r\n\x1a\n"))
    decoded = codec::decode_png(bytes, name, options);
  else if (starts_with(bytes, "RIFF") && starts_with(bytes, "WEBP", 8))
    decoded = codec::decode_webp(bytes, name, options);
  else if (starts_with(bytes, "BM"))
    decoded = codec::decode_bmp(bytes, name, options);
  else if (starts_with(bytes, "GIF87a") || starts_with(bytes, "GIF89a"))
    decoded = codec::decode_gif(bytes, name, options);
  else if (is_tiff(bytes))
    decoded = codec::decode_tiff(bytes, name, options);
  else if (const auto brand = codec::brand_of(bytes); brand == codec::Brand::avif)
    decoded = codec::decode_avif(bytes, name, options);
  else if (brand == codec::Brand::heic)
    decoded = codec::decode_heif(bytes, name, options);
  else
    codec::fail_unread(bytes, name);
  if (decoded.orientation == 1) return std::move(decoded.image);
  return upright(decoded.image, decoded.orientation);
}

const std::vector<std::string>& image_formats() {
  static const std::vector<std::string> formats = [] {
    std::vector<std::string> names = {"JPEG", "PNG", "WebP", "TIFF", "BMP", "GIF"};
    if (codec::kHaveAvif) names.push_back("AVIF");
    if (codec::kHaveHeif) names.push_back("HEIC");
    return names;
  }();
  return formats;
}

Image read_image(const std::filesystem::path& file, const DecodeOptions& options) {
  return decode_image(read_file_bytes(file), file.string(), options);
}

void fail_reading(const char* what, int reason, const std::filesystem::path& file) {
  const std::string message = fmt::format("{}: {}", what, std::generic_category().message(reason));
  if (reason == EMFILE || reason == ENFILE)
    throw Exhausted(
        message, file.string(),
        "allow more open files (ulimit -n) or use fewer threads (`threads`), then repeat");
  if (reason == ENOMEM)
    throw Exhausted(message, file.string(),
                    "free memory or use fewer threads (`threads`), then repeat");
  for (const int lost : {ESTALE, ENOTCONN, ETIMEDOUT, EHOSTDOWN, EHOSTUNREACH})
    if (reason == lost)
      throw Exhausted(message, file.string(), "connect the disk or the server again, then repeat");
  fail(message, file.string());
}

std::vector<uint8_t> read_file_bytes(const std::filesystem::path& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored))
    fail("expected a file, found a folder", file.string());
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(std::fopen(file.c_str(), "rb"),
                                                               &std::fclose);
  if (!stream) fail_reading("cannot open the file", errno, file);
  const auto check_size = [&](uint64_t size) {
    if (size > kLargestFile)
      fail(fmt::format("expected a file of at most 1 GiB, found {} bytes", size), file.string(),
           "check what it is; remove it, or store the picture smaller");
  };
  std::vector<uint8_t> bytes;
  const auto size = std::filesystem::file_size(file, ignored);
  if (!ignored) {
    check_size(size);
    bytes.reserve(size + 1);  // one more, so that a regular file is read in one go
  }
  for (;;) {
    const size_t old = bytes.size(), room = std::max<size_t>(bytes.capacity() - old, 1 << 16);
    bytes.resize(old + room);
    const size_t got = std::fread(bytes.data() + old, 1, room, stream.get());
    bytes.resize(old + got);
    check_size(bytes.size());  // it may grow, or have no size: a pipe
    if (got < room) break;
  }
  if (std::ferror(stream.get())) fail_reading("cannot read the file", errno, file);
  return bytes;
}

}  // namespace fungi
