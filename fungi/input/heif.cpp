// SPDX-License-Identifier: Apache-2.0
// HEIC (HEIF with HEVC, as telephones write it) through libheif, the one place that includes it.
// The primary picture, turned and cropped as the container says; alpha is dropped.
#include "fungi/base/error.h"
#include "fungi/input/codec.h"

#ifdef FUNGI_HAVE_HEIF
#include <libheif/heif.h>

#include <algorithm>
#include <memory>
#endif

namespace fungi::codec {

#ifndef FUNGI_HAVE_HEIF

const bool kHaveHeif = false;

Decoded decode_heif(std::span<const uint8_t>, std::string_view name, const DecodeOptions&) {
  fail("this build of fungi does not read HEIC", std::string(name),
       "build it with libheif-dev installed (-DFUNGI_HEIF=ON), or convert the file to PNG or JPEG");
}

#else

const bool kHaveHeif = true;

namespace {

template <typename T, void (*release)(T*)>
struct Releases {
  void operator()(T* object) const { release(object); }
};
using Context = std::unique_ptr<heif_context, Releases<heif_context, heif_context_free> >;
using Options = std::unique_ptr<heif_decoding_options,
                                Releases<heif_decoding_options, heif_decoding_options_free> >;

struct Handle {
  heif_image_handle* raw = nullptr;
  ~Handle() {
    if (raw) heif_image_handle_release(raw);
  }
};

struct Pixels {
  heif_image* raw = nullptr;
  ~Pixels() {
    if (raw) heif_image_release(raw);
  }
};

void require(const heif_error& error, std::string_view name) {
  if (error.code == heif_error_Ok) return;
  if (error.code == heif_error_Memory_allocation_error &&
      error.subcode != heif_suberror_Security_limit_exceeded)
    throw std::bad_alloc();
  fail_corrupt("HEIC", name, error.message ? error.message : "libheif does not say why");
}

}  // namespace

Decoded decode_heif(std::span<const uint8_t> bytes, std::string_view name,
                    const DecodeOptions& options) {
  const Context context(heif_context_alloc());
  const Options decoding(heif_decoding_options_alloc());
  if (!context || !decoding) throw std::bad_alloc();
  heif_context_set_max_decoding_threads(context.get(), 0);  // samples are decoded side by side
  require(heif_context_read_from_memory_without_copy(context.get(), bytes.data(), bytes.size(),
                                                     nullptr),
          name);
  Handle handle;
  require(heif_context_get_primary_image_handle(context.get(), &handle.raw), name);
  const int width = heif_image_handle_get_width(handle.raw);
  const int height = heif_image_handle_get_height(handle.raw);
  Decoded out{allocate(uint64_t(std::max(width, 0)), uint64_t(std::max(height, 0)), name, options),
              1};
  decoding->convert_hdr_to_8bit = 1;
  decoding->strict_decoding = 1;
  Pixels pixels;
  require(heif_decode_image(handle.raw, &pixels.raw, heif_colorspace_RGB,
                            heif_chroma_interleaved_RGB, decoding.get()),
          name);
  int stride = 0;
  const uint8_t* rows =
      heif_image_get_plane_readonly(pixels.raw, heif_channel_interleaved, &stride);
  if (!rows || heif_image_get_width(pixels.raw, heif_channel_interleaved) != width ||
      heif_image_get_height(pixels.raw, heif_channel_interleaved) != height)
    fail_corrupt("HEIC", name, "its picture has another size than it says");
  const size_t row = 3 * out.image.width;
  for (size_t y = 0; y < out.image.height; ++y)
    std::copy_n(rows + y * size_t(stride), row, &out.image.rgb[y * row]);
  return out;
}

#endif

}  // namespace fungi::codec
