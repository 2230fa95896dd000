// SPDX-License-Identifier: Apache-2.0
// What image.cpp and the decoders, a file or more for each format, say to each other; nobody else
// includes it. Internal to this room.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "fungi/input/image.h"
#include "fungi/input/mask.h"

namespace fungi::codec {

struct Decoded {
  Image image;
  int orientation = 1;  // EXIF value 1..8; read only when options.exif_orientation asks for it
};

Decoded decode_jpeg(std::span<const uint8_t> bytes, std::string_view name, const DecodeOptions&);
Decoded decode_png(std::span<const uint8_t> bytes, std::string_view name, const DecodeOptions&);
Decoded decode_webp(std::span<const uint8_t> bytes, std::string_view name, const DecodeOptions&);
Decoded decode_bmp(std::span<const uint8_t> bytes, std::string_view name, const DecodeOptions&);
Decoded decode_gif(std::span<const uint8_t> bytes, std::string_view name, const DecodeOptions&);
Decoded decode_tiff(std::span<const uint8_t> bytes, std::string_view name, const DecodeOptions&);
Decoded decode_avif(std::span<const uint8_t> bytes, std::string_view name, const DecodeOptions&);
Decoded decode_heif(std::span<const uint8_t> bytes, std::string_view name, const DecodeOptions&);
// One number per pixel, of a palette or grey.
Mask decode_png_mask(std::span<const uint8_t> bytes, std::string_view name);
extern const bool kHaveAvif, kHaveHeif;  // whether this build can; where not, the decoder says so

bool starts_with(std::span<const uint8_t> bytes, std::string_view magic, size_t offset = 0);

// What a container of the ISO (its first box is "ftyp") says it holds.
enum class Brand { none, avif, heic };
Brand brand_of(std::span<const uint8_t> bytes);

// Says what the file is instead of a picture that can be read.
[[noreturn]] void fail_unread(std::span<const uint8_t> bytes, std::string_view name);
// The same of a sound; `bytes` are its first ones, `why` what its library says.
[[noreturn]] void fail_unread_sound(std::span<const uint8_t> bytes, std::string_view name,
                                    std::string_view why);

// An image of that size, zero-filled; Error when a side is zero or the limit is exceeded.
Image allocate(uint64_t width, uint64_t height, std::string_view name, const DecodeOptions&);

// Orientation (1..8) out of an EXIF block, with or without its "Exif\0\0" prefix; 1 when there is
// none.
int exif_orientation(std::span<const uint8_t> block);

// A channel of so much white (255 - black) under a coloured ink: white - ink * white / 255, rounded
// as Pillow does.
inline uint8_t with_ink(unsigned ink, unsigned white) {
  const unsigned product = ink * white + 128;
  return uint8_t(white - ((product + (product >> 8)) >> 8));
}

// usable: allow_truncated is not set and could help, so the error names it.
[[noreturn]] void fail_truncated(std::string_view format, std::string_view name,
                                 std::string_view detail, bool usable = false);
[[noreturn]] void fail_corrupt(std::string_view format, std::string_view name,
                               std::string_view detail);

// The file may be in order, but has what nothing here reads.
[[noreturn]] void fail_unknown(std::string_view format, std::string_view name,
                               std::string_view feature);

}  // namespace fungi::codec
