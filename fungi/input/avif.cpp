// SPDX-License-Identifier: Apache-2.0
// AVIF through libavif (the one place that includes it), with the tolerance of Pillow's reader: an
// incomplete list of properties is no fault. Of a sequence the first picture; alpha is dropped.
// libaom decodes where libavif has it: others make pictures of damaged data, and print.
#include "fungi/base/error.h"
#include "fungi/input/codec.h"

#ifdef FUNGI_HAVE_AVIF
#include <avif/avif.h>

#include <algorithm>
#include <memory>
#include <string>
#endif

namespace fungi::codec {

#ifndef FUNGI_HAVE_AVIF

const bool kHaveAvif = false;

Decoded decode_avif(std::span<const uint8_t>, std::string_view name, const DecodeOptions&) {
  fail("this build of fungi does not read AVIF", std::string(name),
       "build it with libavif-dev installed (-DFUNGI_AVIF=ON), or convert the file to PNG or JPEG");
}

#else

const bool kHaveAvif = true;

namespace {

void require(avifResult result, size_t bytes, std::string_view name) {
  if (result == AVIF_RESULT_OK) return;
  if (result == AVIF_RESULT_OUT_OF_MEMORY) throw std::bad_alloc();
  if (result == AVIF_RESULT_TRUNCATED_DATA)
    fail_truncated("AVIF", name, "the " + std::to_string(bytes) + " bytes end too early");
  fail_corrupt("AVIF", name, avifResultToString(result));
}

// Turned and mirrored by the container, as a tag of orientation says it.
int orientation(const avifImage& image) {
  const bool turned = image.transformFlags & AVIF_TRANSFORM_IROT;
  const bool mirrored = image.transformFlags & AVIF_TRANSFORM_IMIR;
  const unsigned quarters = turned ? image.irot.angle % 4 : 0;  // against the clock
  constexpr int kTurned[] = {1, 8, 3, 6};
  constexpr int kMirroredFromLeftToRight[] = {2, 7, 4, 5};  // and turned before
  if (!mirrored) return kTurned[quarters];
  return kMirroredFromLeftToRight[image.imir.mode == 1 ? quarters : (quarters + 2) % 4];
}

}  // namespace

Decoded decode_avif(std::span<const uint8_t> bytes, std::string_view name,
                    const DecodeOptions& options) {
  const std::unique_ptr<avifDecoder, decltype(&avifDecoderDestroy)> decoder(avifDecoderCreate(),
                                                                            &avifDecoderDestroy);
  if (!decoder) throw std::bad_alloc();
  decoder->strictFlags &= ~avifStrictFlags(AVIF_STRICT_CLAP_VALID | AVIF_STRICT_PIXI_REQUIRED);
  if (avifCodecName(AVIF_CODEC_CHOICE_AOM, AVIF_CODEC_FLAG_CAN_DECODE))
    decoder->codecChoice = AVIF_CODEC_CHOICE_AOM;
  decoder->ignoreExif = decoder->ignoreXMP = AVIF_TRUE;
  decoder->imageSizeLimit = uint32_t(std::min<size_t>(options.max_pixels, 16384 * 16384));
  require(avifDecoderSetIOMemory(decoder.get(), bytes.data(), bytes.size()), bytes.size(), name);
  require(avifDecoderParse(decoder.get()), bytes.size(), name);
  Decoded out{allocate(decoder->image->width, decoder->image->height, name, options), 1};
  require(avifDecoderNextImage(decoder.get()), bytes.size(), name);
  const avifImage& image = *decoder->image;
  if (image.width != out.image.width || image.height != out.image.height)
    fail_corrupt("AVIF", name, "its picture has another size than it says");
  // With alpha, which the colours may have been multiplied by.
  avifRGBImage pixels;
  avifRGBImageSetDefaults(&pixels, &image);
  pixels.depth = 8;
  const size_t channels = decoder->alphaPresent ? 4 : 3, width = out.image.width;
  pixels.format = channels == 4 ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
  std::vector<uint8_t> with_alpha(channels == 4 ? 4 * width * out.image.height : 0);
  pixels.pixels = channels == 4 ? with_alpha.data() : out.image.rgb.data();
  pixels.rowBytes = uint32_t(channels * width);
  require(avifImageYUVToRGB(&image, &pixels), bytes.size(), name);
  for (size_t i = 0; i < with_alpha.size() / 4; ++i)
    std::copy_n(&with_alpha[4 * i], 3, &out.image.rgb[3 * i]);
  if (options.exif_orientation) out.orientation = orientation(image);
  return out;
}

#endif

}  // namespace fungi::codec
