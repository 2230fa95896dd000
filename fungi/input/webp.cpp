// SPDX-License-Identifier: Apache-2.0
// WebP (lossy and lossless) through libwebp; alpha is dropped. Of an animation the first frame is
// shown on a black canvas, which is what Pillow's convert("RGB") of it gives. The file is taken
// apart by libwebpdemux, which refuses what Pillow refuses: it wants the whole container in order.
#include <webp/decode.h>
#include <webp/demux.h>

#include <cstring>
#include <memory>
#include <string>

#include "fungi/base/error.h"
#include "fungi/input/codec.h"

namespace fungi::codec {
namespace {

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

using Demuxer = std::unique_ptr<WebPDemuxer, decltype(&WebPDemuxDelete)>;

Demuxer take_apart(std::span<const uint8_t> bytes, std::string_view name) {
  const WebPData data{bytes.data(), bytes.size()};
  WebPDemuxState state = WEBP_DEMUX_PARSE_ERROR;
  Demuxer demuxer(WebPDemuxPartial(&data, &state), &WebPDemuxDelete);
  if (state == WEBP_DEMUX_DONE && demuxer) return demuxer;
  fail_status(
      state == WEBP_DEMUX_PARSE_ERROR ? VP8_STATUS_BITSTREAM_ERROR : VP8_STATUS_NOT_ENOUGH_DATA,
      bytes.size(), name);
}

// Decodes the first frame to its place on the canvas.
void decode_first_frame(const WebPDemuxer* demuxer, Image& image, size_t bytes,
                        std::string_view name) {
  WebPIterator frame;
  if (!WebPDemuxGetFrame(demuxer, 1, &frame)) fail_corrupt("WebP", name, "it holds no picture");
  const std::unique_ptr<WebPIterator, decltype(&WebPDemuxReleaseIterator)> owner(
      &frame, &WebPDemuxReleaseIterator);
  const size_t x = size_t(frame.x_offset), y = size_t(frame.y_offset);
  if (x + size_t(frame.width) > image.width || y + size_t(frame.height) > image.height)
    fail_corrupt("WebP", name, "the first frame lies outside the canvas");
  const size_t stride = 3 * image.width, offset = y * stride + 3 * x;
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config)) fail_corrupt("WebP", name, "libwebp has another version");
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {image.rgb.data() + offset, int(stride), image.rgb.size() - offset};
  const VP8StatusCode status = WebPDecode(frame.fragment.bytes, frame.fragment.size, &config);
  if (status != VP8_STATUS_OK) fail_status(status, bytes, name);
}

int orientation(const WebPDemuxer* demuxer) {
  WebPChunkIterator exif;
  if (!WebPDemuxGetChunk(demuxer, "EXIF", 1, &exif)) return 1;
  const int found = exif_orientation({exif.chunk.bytes, exif.chunk.size});
  WebPDemuxReleaseChunkIterator(&exif);
  return found;
}

}  // namespace

Decoded decode_webp(std::span<const uint8_t> bytes, std::string_view name,
                    const DecodeOptions& options) {
  const Demuxer demuxer = take_apart(bytes, name);
  const uint32_t width = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH);
  const uint32_t height = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT);
  Decoded out{allocate(width, height, name, options), 1};
  decode_first_frame(demuxer.get(), out.image, bytes.size(), name);
  if (options.exif_orientation) out.orientation = orientation(demuxer.get());
  return out;
}

}  // namespace fungi::codec
