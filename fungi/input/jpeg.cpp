// SPDX-License-Identifier: Apache-2.0
// JPEG through libjpeg-turbo's classic interface with its defaults (accurate integer DCT, smooth
// upsampling): the library and the settings of Pillow, hence its pixels. What is refused is what
// Pillow refuses: it walks over the header by itself, hands libjpeg the bytes in blocks of 64 KiB,
// passes over its warnings, and heeds an error behind the last row if it lies in the same block.
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
  bool out_of_memory, too_many_scans;
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
  manager->too_many_scans = true;
  std::snprintf(manager->message, sizeof manager->message,
                "expected at most %d progressive scans, found more", kMostScans);
  std::longjmp(manager->jump, 1);
}

// What is at hand of the file: it grows by blocks, and libjpeg stops at its end until it has grown.
struct Source {
  jpeg_source_mgr base;
  std::span<const uint8_t> later;
  size_t to_skip;     // of what is not at hand yet
  size_t end_marker;  // how many of the last bytes are our own and a block of theirs
};

constexpr size_t kBlock = 1 << 16;  // as Pillow's
constexpr size_t kEndMarker = 2;

void on_skip(j_decompress_ptr info, long count) {
  if (count <= 0) return;
  auto* source = reinterpret_cast<Source*>(info->src);
  const size_t n = std::min(size_t(count), source->base.bytes_in_buffer);
  source->base.next_input_byte += n;
  source->base.bytes_in_buffer -= n;
  source->to_skip = size_t(count) - n;
}

// Owns the decoder. Every method that calls libjpeg arms the jump first and returns false after an
// error, and holds no object with a destructor, so a jump skips none.
class Decoder {
 public:
  Decoder(std::span<const uint8_t> bytes, size_t end_marker) {
    info_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = on_error;
    errors_.base.output_message = [](j_common_ptr) {};
    errors_.message[0] = 0;
    source_.base.next_input_byte = bytes.data();
    source_.base.bytes_in_buffer = 0;
    source_.base.init_source = [](j_decompress_ptr) {};
    source_.base.fill_input_buffer = [](j_decompress_ptr) -> boolean { return FALSE; };
    source_.base.skip_input_data = on_skip;
    source_.base.resync_to_restart = jpeg_resync_to_restart;
    source_.base.term_source = [](j_decompress_ptr) {};
    source_.later = bytes;
    source_.end_marker = end_marker;
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
    for (;;) {
      const int found = jpeg_read_header(&info_, FALSE);
      if (found == JPEG_HEADER_OK) return true;
      if (found == JPEG_SUSPENDED && !more()) return false;
    }
  }

  bool start() {
    if (setjmp(errors_.jump)) return false;
    info_.out_color_space = info_.num_components == 1   ? JCS_GRAYSCALE
                            : info_.num_components == 3 ? JCS_RGB
                                                        : JCS_CMYK;
    while (!jpeg_start_decompress(&info_))
      if (!more()) return false;
    return true;
  }

  // Writes `row`, which has room for width * num_components bytes.
  bool read_row(uint8_t* row) {
    if (setjmp(errors_.jump)) return false;
    while (jpeg_read_scanlines(&info_, &row, 1) != 1)
      if (!more()) return false;
    return true;
  }

  // Looks for errors behind the last row, as far as the bytes at hand go.
  bool finish() {
    if (setjmp(errors_.jump)) return false;
    jpeg_finish_decompress(&info_);
    return true;
  }

  int orientation() const {
    for (auto* marker = info_.marker_list; marker; marker = marker->next) {
      const std::span<const uint8_t> block(marker->data, marker->data_length);
      if (block.size() > 6 && std::memcmp(block.data(), "Exif\0\0", 6) == 0)
        return exif_orientation(block);
    }
    return 1;
  }

  const char* error() const { return errors_.message; }  // empty: the bytes ran out
  bool out_of_memory() const { return errors_.out_of_memory; }
  bool too_many_scans() const { return errors_.too_many_scans; }

 private:
  // Puts the next block at hand, the bytes that libjpeg left before it; false where there is none.
  bool more() {
    while (!source_.later.empty()) {
      size_t size = std::min(kBlock, source_.later.size());
      if (size > source_.end_marker && size == source_.later.size()) size -= source_.end_marker;
      source_.later = source_.later.subspan(size);
      source_.base.bytes_in_buffer += size;
      if (source_.to_skip) on_skip(&info_, long(source_.to_skip));
      if (source_.to_skip == 0) return true;
    }
    return false;
  }

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
// JPEG).
void cmyk_to_rgb(const uint8_t* cmyk, uint8_t* rgb, size_t width) {
  for (size_t x = 0; x < width; ++x) {
    const unsigned white = cmyk[4 * x + 3];
    for (size_t c = 0; c < 3; ++c) rgb[3 * x + c] = with_ink(255u - cmyk[4 * x + c], white);
  }
}

struct Frame {
  size_t width = 0, height = 0;
  unsigned components = 0;  // 0: Pillow finds no picture
};

// Reads the header as Pillow does before libjpeg sees anything. Both have to understand a file.
Frame pillow_header(std::span<const uint8_t> bytes) {
  Frame frame;
  const auto word = [&](size_t at) { return size_t(bytes[at]) << 8 | bytes[at + 1]; };
  for (size_t at = 2; at + 1 < bytes.size();) {
    const unsigned marker = bytes[at + 1];
    if (bytes[at] != 0xFF || marker == 0xFF) {  // not a marker, or filling before one
      ++at;
      continue;
    }
    at += 2;
    const bool alone = marker == 0 || marker == 0xC8 || (marker >= 0xD0 && marker <= 0xD9) ||
                       (marker >= 0xF0 && marker <= 0xFD);
    if (alone) continue;
    if (marker < 0xC0 || at + 2 > bytes.size()) return {};
    const size_t size = std::max<size_t>(word(at), 2);
    if (size > bytes.size() - at) return {};
    const auto body = bytes.subspan(at + 2, size - 2);
    const bool is_frame =
        (marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xCC) || marker == 0xDE;
    if (is_frame) {
      if (body.size() < 6 || body.size() % 3 || body[0] != 8) return {};
      frame = {word(at + 5), word(at + 3), body[5]};
      if (frame.components != 1 && frame.components != 3 && frame.components != 4) return {};
    }
    if (marker == 0xDB)  // tables of 64 values of one byte, or of two
      for (size_t i = 0; i < body.size();) {
        i += body[i] < 16 ? 65 : 129;
        if (i > body.size()) return {};
      }
    if (marker == 0xDA) return frame;
    at += size;
  }
  return {};
}

}  // namespace

Decoded decode_jpeg(std::span<const uint8_t> bytes, std::string_view name,
                    const DecodeOptions& options) {
  std::vector<uint8_t> ended;  // lenient: the bytes and a marker that says that they end
  if (options.allow_truncated) {
    ended.assign(bytes.begin(), bytes.end());
    ended.insert(ended.end(), {0xFF, JPEG_EOI});
  }
  const bool lenient = options.allow_truncated;
  Decoder decoder(lenient ? ended : bytes, lenient ? kEndMarker : 0);
  bool usable = false;  // without a header nothing is
  const auto stop = [&](const std::string& where) {
    if (decoder.out_of_memory()) throw std::bad_alloc();
    if (lenient && usable && !decoder.too_many_scans()) return;  // what is there is the picture
    if (*decoder.error()) fail_corrupt("JPEG", name, decoder.error());
    fail_truncated("JPEG", name, "the " + std::to_string(bytes.size()) + " bytes end " + where,
                   usable);
  };
  const Frame frame = pillow_header(bytes);
  usable = lenient && frame.components;
  const bool understood = decoder.read_header(options.exif_orientation);
  if (!understood) stop("within the header");
  if (!frame.components)
    fail_corrupt("JPEG", name,
                 "expected whole tables and 1, 3 or 4 colour components of 8 bits in its header");
  usable = true;
  Decoded out{allocate(frame.width, frame.height, name, options), 1};
  if (options.exif_orientation) out.orientation = decoder.orientation();
  Image& image = out.image;
  if (frame.components == 4) std::fill(image.rgb.begin(), image.rgb.end(), 255);  // paper
  if (!understood) return out;
  if (!decoder.start()) {
    stop("before the first row");
    return out;
  }
  std::vector<uint8_t> ink(frame.components == 4 ? 4 * image.width : 0);
  for (size_t y = 0; y < image.height; ++y) {
    uint8_t* row = image.rgb.data() + 3 * y * image.width;
    if (!decoder.read_row(frame.components == 4 ? ink.data() : row)) {
      stop("in row " + std::to_string(y) + " of " + std::to_string(image.height));
      return out;
    }
    if (frame.components == 1) expand_grey(row, image.width);
    if (frame.components == 4) cmyk_to_rgb(ink.data(), row, image.width);
  }
  if (!decoder.finish()) stop("behind the last row");
  return out;
}

}  // namespace fungi::codec
