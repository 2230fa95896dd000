// SPDX-License-Identifier: Apache-2.0
// JPEG through libjpeg-turbo's classic interface with its defaults (accurate integer DCT, smooth
// upsampling): the library and the settings of Pillow, hence its pixels. The data source suspends
// at the end of the bytes, as Pillow's does, so that exactly the files Pillow calls truncated are
// errors here.
#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <new>
#include <string>

// jpeglib.h wants <cstdio> before it
// clang-format off
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include "fungi/base/error.h"
#include "fungi/input/codec.h"

namespace fungi::codec {
namespace {

// libjpeg reports errors by a callback that must not return; C frames lie between, so it jumps.
struct ErrorManager {
  jpeg_error_mgr base;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
  bool out_of_memory;
};

void on_error(j_common_ptr info) {
  auto* manager = reinterpret_cast<ErrorManager*>(info->err);
  info->err->format_message(info, manager->message);
  manager->out_of_memory = info->err->msg_code == JERR_OUT_OF_MEMORY;
  std::longjmp(manager->jump, 1);
}

// Each scan goes over the whole picture, however few bytes it has: a small file could take minutes.
// Encoders write about ten; Skia stops at a hundred, too.
constexpr int kMostScans = 100;

void on_progress(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMostScans) return;
  auto* manager = reinterpret_cast<ErrorManager*>(info->err);
  std::snprintf(manager->message, sizeof manager->message,
                "expected at most %d progressive scans, found more", kMostScans);
  std::longjmp(manager->jump, 1);
}

struct Source {
  jpeg_source_mgr base;
  bool append_end;  // allow_truncated: give an end-of-image marker once the bytes are used up
};

constexpr JOCTET kEndMarker[2] = {0xFF, JPEG_EOI};

boolean on_empty(j_decompress_ptr info) {
  auto* source = reinterpret_cast<Source*>(info->src);
  if (!source->append_end) return FALSE;
  source->append_end = false;
  source->base.next_input_byte = kEndMarker;
  source->base.bytes_in_buffer = sizeof kEndMarker;
  return TRUE;
}

void on_skip(j_decompress_ptr info, long count) {
  if (count <= 0) return;
  const size_t n = std::min(size_t(count), info->src->bytes_in_buffer);
  info->src->next_input_byte += n;
  info->src->bytes_in_buffer -= n;
}

// Owns the decoder. Every method that calls libjpeg arms the jump first and returns false after an
// error, and holds no object with a destructor, so a jump skips none.
class Decoder {
 public:
  Decoder(std::span<const uint8_t> bytes, bool allow_truncated) {
    info_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = on_error;
    errors_.base.output_message = [](j_common_ptr) {};
    errors_.message[0] = 0;
    source_.base.next_input_byte = bytes.data();
    source_.base.bytes_in_buffer = bytes.size();
    source_.base.init_source = [](j_decompress_ptr) {};
    source_.base.fill_input_buffer = on_empty;
    source_.base.skip_input_data = on_skip;
    source_.base.resync_to_restart = jpeg_resync_to_restart;
    source_.base.term_source = [](j_decompress_ptr) {};
    source_.append_end = allow_truncated;
    progress_.progress_monitor = on_progress;
  }
  ~Decoder() {
    if (created_) jpeg_destroy_decompress(&info_);
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  bool read_header(bool keep_exif) {
    if (setjmp(errors_.jump)) return false;
    jpeg_create_decompress(&info_);
    created_ = true;
    info_.src = &source_.base;
    info_.progress = &progress_;
    if (keep_exif) jpeg_save_markers(&info_, JPEG_APP0 + 1, 0xFFFF);
    return jpeg_read_header(&info_, TRUE) == JPEG_HEADER_OK;
  }

  bool start() {
    if (setjmp(errors_.jump)) return false;
    info_.out_color_space = info_.num_components == 1   ? JCS_GRAYSCALE
                            : info_.num_components == 3 ? JCS_RGB
                                                        : JCS_CMYK;
    return jpeg_start_decompress(&info_);
  }

  // Writes `row`, which has room for width * num_components bytes.
  bool read_row(uint8_t* row) {
    if (setjmp(errors_.jump)) return false;
    return jpeg_read_scanlines(&info_, &row, 1) == 1;
  }

  int orientation() const {
    for (auto* marker = info_.marker_list; marker; marker = marker->next) {
      const std::span<const uint8_t> block(marker->data, marker->data_length);
      if (block.size() > 6 && std::memcmp(block.data(), "Exif\0\0", 6) == 0)
        return exif_orientation(block);
    }
    return 1;
  }

  size_t width() const { return info_.image_width; }
  size_t height() const { return info_.image_height; }
  int components() const { return info_.num_components; }
  const char* error() const { return errors_.message; }  // empty: the bytes ran out
  bool out_of_memory() const { return errors_.out_of_memory; }

 private:
  jpeg_decompress_struct info_{};
  ErrorManager errors_{};
  Source source_{};
  jpeg_progress_mgr progress_{};
  bool created_ = false;
};

void expand_grey(uint8_t* row, size_t width) {  // in place, from the right
  for (size_t x = width; x-- > 0;) row[3 * x] = row[3 * x + 1] = row[3 * x + 2] = row[x];
}

// Files hold the complement of the ink (Adobe's convention, which Pillow assumes of every CMYK
// JPEG). Pillow: channel = white - ink * white / 255, rounded, where white = 255 - black.
void cmyk_to_rgb(const uint8_t* cmyk, uint8_t* rgb, size_t width) {
  for (size_t x = 0; x < width; ++x) {
    const unsigned white = cmyk[4 * x + 3];
    for (size_t c = 0; c < 3; ++c) {
      const unsigned product = (255u - cmyk[4 * x + c]) * white + 128;
      rgb[3 * x + c] = uint8_t(white - ((product + (product >> 8)) >> 8));
    }
  }
}

}  // namespace

Decoded decode_jpeg(std::span<const uint8_t> bytes, std::string_view name,
                    const DecodeOptions& options) {
  Decoder decoder(bytes, options.allow_truncated);
  bool usable = false;  // without a header nothing is
  const auto stop = [&](const std::string& where) {
    if (decoder.out_of_memory()) throw std::bad_alloc();
    if (*decoder.error()) fail_corrupt("JPEG", name, decoder.error());
    fail_truncated("JPEG", name, "the " + std::to_string(bytes.size()) + " bytes end " + where,
                   usable);
  };
  if (!decoder.read_header(options.exif_orientation)) stop("within the header");
  usable = !options.allow_truncated;
  const int components = decoder.components();
  if (components != 1 && components != 3 && components != 4)
    fail_corrupt("JPEG", name,
                 "expected 1, 3 or 4 colour components, found " + std::to_string(components));
  Decoded out{allocate(decoder.width(), decoder.height(), name, options), 1};
  if (options.exif_orientation) out.orientation = decoder.orientation();
  if (!decoder.start()) stop("before the first row");
  Image& image = out.image;
  std::vector<uint8_t> ink(components == 4 ? 4 * image.width : 0);
  for (size_t y = 0; y < image.height; ++y) {
    uint8_t* row = image.rgb.data() + 3 * y * image.width;
    if (!decoder.read_row(components == 4 ? ink.data() : row))
      stop("in row " + std::to_string(y) + " of " + std::to_string(image.height));
    if (components == 1) expand_grey(row, image.width);
    if (components == 4) cmyk_to_rgb(ink.data(), row, image.width);
  }
  return out;
}

}  // namespace fungi::codec
