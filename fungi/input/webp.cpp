// SPDX-License-Identifier: Apache-2.0
// WebP (lossy and lossless) through libwebp; alpha is dropped. Of an animation the first frame is
// shown on a black canvas, which is what Pillow's convert("RGB") of it gives.
#include <webp/decode.h>

#include <cstring>
#include <string>

#include "fungi/base/error.h"
#include "fungi/input/codec.h"

namespace fungi::codec {
namespace {

struct Chunk {
  std::string_view tag;
  std::span<const uint8_t> data;
};

uint32_t little(const uint8_t* p, int bytes) {
  uint32_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= uint32_t(p[i]) << 8 * i;
  return value;
}

// The next chunk of a RIFF sequence, cut at the end of the bytes; an empty tag when there is none.
Chunk next_chunk(std::span<const uint8_t>& rest) {
  if (rest.size() < 8) return {};
  const size_t size = little(rest.data() + 4, 4), have = std::min(size, rest.size() - 8);
  const Chunk chunk{{reinterpret_cast<const char*>(rest.data()), 4}, rest.subspan(8, have)};
  rest = rest.subspan(std::min(8 + have + (have & 1), rest.size()));  // chunks are padded to even
  return chunk;
}

Chunk find_chunk(std::span<const uint8_t> rest, std::string_view tag) {
  for (Chunk chunk = next_chunk(rest); !chunk.tag.empty(); chunk = next_chunk(rest))
    if (chunk.tag == tag) return chunk;
  return {};
}

[[noreturn]] void fail_status(VP8StatusCode status, size_t bytes, std::string_view name) {
  switch (status) {
    case VP8_STATUS_NOT_ENOUGH_DATA:
      fail_truncated("WebP", name, "the " + std::to_string(bytes) + " bytes end too early");
    case VP8_STATUS_OUT_OF_MEMORY:
      throw std::bad_alloc();
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      fail_corrupt("WebP", name, "it uses a feature that libwebp does not know");
    default:
      fail_corrupt("WebP", name, "the bit stream is broken");
  }
}

WebPBitstreamFeatures features_of(std::span<const uint8_t> bytes, std::string_view name) {
  WebPBitstreamFeatures features;
  const VP8StatusCode status = WebPGetFeatures(bytes.data(), bytes.size(), &features);
  if (status != VP8_STATUS_OK) fail_status(status, bytes.size(), name);
  return features;
}

// Decodes one bit stream of the given size into rows of `stride` bytes.
void decode_into(std::span<const uint8_t> bytes, uint8_t* rgb, size_t rgb_bytes, size_t stride,
                 std::string_view name) {
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config)) fail_corrupt("WebP", name, "libwebp has another version");
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {rgb, int(stride), rgb_bytes};
  const VP8StatusCode status = WebPDecode(bytes.data(), bytes.size(), &config);
  if (status != VP8_STATUS_OK) fail_status(status, bytes.size(), name);
}

// ANMF: x/2, y/2, width-1, height-1, duration (3 bytes each), flags, then the frame's own chunks.
void decode_first_frame(std::span<const uint8_t> chunks, Image& image, std::string_view name) {
  const Chunk frame = find_chunk(chunks, "ANMF");
  if (frame.data.size() < 16) fail_truncated("WebP", name, "the animation has no whole frame");
  const size_t x = 2 * size_t(little(frame.data.data(), 3));
  const size_t y = 2 * size_t(little(frame.data.data() + 3, 3));
  Chunk stream = find_chunk(frame.data.subspan(16), "VP8 ");
  if (stream.tag.empty()) stream = find_chunk(frame.data.subspan(16), "VP8L");
  if (stream.tag.empty()) fail_corrupt("WebP", name, "the first frame holds no picture");
  const WebPBitstreamFeatures features = features_of(stream.data, name);
  const size_t width = features.width, height = features.height;
  if (x + width > image.width || y + height > image.height)
    fail_corrupt("WebP", name, "the first frame lies outside the canvas");
  const size_t stride = 3 * image.width, offset = y * stride + 3 * x;
  decode_into(stream.data, image.rgb.data() + offset, image.rgb.size() - offset, stride, name);
}

}  // namespace

Decoded decode_webp(std::span<const uint8_t> bytes, std::string_view name,
                    const DecodeOptions& options) {
  const WebPBitstreamFeatures features = features_of(bytes, name);
  Decoded out{allocate(features.width, features.height, name, options), 1};
  const std::span<const uint8_t> chunks = bytes.subspan(12);  // after "RIFF", size and "WEBP"
  if (little(bytes.data() + 4, 4) > bytes.size() - 8)
    fail_status(VP8_STATUS_NOT_ENOUGH_DATA, bytes.size(), name);
  if (features.has_animation)
    decode_first_frame(chunks, out.image, name);
  else
    decode_into(bytes, out.image.rgb.data(), out.image.rgb.size(), 3 * out.image.width, name);
  if (options.exif_orientation) out.orientation = exif_orientation(find_chunk(chunks, "EXIF").data);
  return out;
}

}  // namespace fungi::codec
