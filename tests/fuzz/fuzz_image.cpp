// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as a picture of any format, whole and with all tolerance.
#include <zlib.h>

#include <cstdlib>
#include <cstring>

#include "fungi/base/error.h"
#include "fungi/input/image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kPixels = 1 << 20;  // time is for decoders, not for blank pages
  for (const bool tolerant : {false, true}) try {
      const fungi::Image image = fungi::decode_image(
          {data, size}, "fuzz",
          {.exif_orientation = tolerant, .allow_truncated = tolerant, .max_pixels = kPixels});
      const size_t pixels = image.width * image.height;
      if (pixels == 0 || pixels > kPixels || image.rgb.size() != 3 * pixels) std::abort();
    } catch (const fungi::Error&) {
    }
  return 0;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t largest);

// Chunks of a PNG get the sum that they should have: with a wrong one they would not be looked at.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t largest, unsigned) {
  constexpr size_t kSignature = 8, kAround = 12;  // length and type before, sum after
  size = LLVMFuzzerMutate(data, size, largest);
  if (size < kSignature || std::memcmp(data, "\x89PNG\r\n\x1a\n", kSignature) != 0) return size;
  const auto big_endian = [](const uint8_t* at) {
    return size_t(at[0]) << 24 | size_t(at[1]) << 16 | size_t(at[2]) << 8 | size_t(at[3]);
  };
  for (size_t at = kSignature; at + kAround <= size;) {
    const size_t length = big_endian(data + at);
    if (length > size - at - kAround) break;
    const uLong sum = crc32(0, data + at + 4, uInt(length + 4));
    for (size_t i = 0; i < 4; ++i) data[at + 8 + length + i] = uint8_t(sum >> 8 * (3 - i));
    at += kAround + length;
  }
  return size;
}
