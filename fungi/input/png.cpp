// SPDX-License-Identifier: Apache-2.0
// PNG through libpng, every colour type brought to RGB as Pillow does: low depths scaled to 0..255,
// palette looked up, alpha and tRNS dropped, 16-bit colour cut to its high byte, 16-bit grey
// clipped at 255; gamma is not applied.
#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <string>

#include "fungi/base/error.h"
#include "fungi/input/codec.h"

namespace fungi::codec {
namespace {

// Owns the reader. libpng reports errors by a callback that must not return; C frames lie between,
// so it jumps. Every method that calls libpng arms the jump first and holds no object with a
// destructor.
class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : rest_(bytes) {
    png_ = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, this, on_error, on_warning, this,
                                    on_malloc, nullptr);
    if (png_) info_ = png_create_info_struct(png_);
    if (info_) png_set_read_fn(png_, this, on_read);
  }
  ~Reader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  bool read_header(bool allow_truncated) {
    if (!info_) return false;
    if (setjmp(jump_)) return false;
    // Byte by byte, so that everything in front of the cut is used; otherwise libpng reads ahead.
    if (allow_truncated) png_set_compression_buffer_size(png_, 1);
    png_set_user_limits(png_, 0x7fffffff, 0x7fffffff);  // DecodeOptions::max_pixels is the limit
    png_read_info(png_, info_);
    return true;
  }

  // Asks for 8-bit RGB rows, except for palette (one index per byte) and 16-bit grey (as stored).
  bool start() {
    if (setjmp(jump_)) return false;
    if (palette()) {
      png_set_packing(png_);
    } else if (!grey16()) {
      if (depth() < 8) png_set_expand_gray_1_2_4_to_8(png_);
      if (depth() == 16) png_set_strip_16(png_);
      if (colour() & PNG_COLOR_MASK_ALPHA) png_set_strip_alpha(png_);
      if (!(colour() & PNG_COLOR_MASK_COLOR)) png_set_gray_to_rgb(png_);
    }
    passes_ = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  bool read_rows(uint8_t* pixels) {
    if (setjmp(jump_)) return false;
    const size_t stride = row_bytes();
    for (int pass = 0; pass < passes_; ++pass)
      for (size_t y = 0; y < height(); ++y) png_read_row(png_, pixels + y * stride, nullptr);
    return true;
  }

  // The chunks behind the pixels. What is broken there does not matter.
  void read_end() {
    if (setjmp(jump_)) return;
    png_read_end(png_, info_);
  }

  int orientation() {
    png_uint_32 size = 0;
    png_bytep block = nullptr;
    if (!png_get_eXIf_1(png_, info_, &size, &block)) return 1;
    return exif_orientation({block, size});
  }

  // The palette as 256 RGB triples; entries that the file does not have are black, as in Pillow.
  std::array<uint8_t, 768> palette_rgb() {
    std::array<uint8_t, 768> table{};
    png_colorp colours = nullptr;
    int count = 0;
    if (png_get_PLTE(png_, info_, &colours, &count))
      for (int i = 0; i < std::min(count, 256); ++i) {
        table[3 * i] = colours[i].red;
        table[3 * i + 1] = colours[i].green;
        table[3 * i + 2] = colours[i].blue;
      }
    return table;
  }

  size_t width() const { return png_get_image_width(png_, info_); }
  size_t height() const { return png_get_image_height(png_, info_); }
  size_t row_bytes() const { return png_get_rowbytes(png_, info_); }
  int depth() const { return png_get_bit_depth(png_, info_); }
  int colour() const { return png_get_color_type(png_, info_); }
  bool palette() const { return colour() == PNG_COLOR_TYPE_PALETTE; }
  bool grey16() const { return colour() == PNG_COLOR_TYPE_GRAY && depth() == 16; }
  bool ran_out() const { return ran_out_; }
  bool out_of_memory() const { return out_of_memory_; }
  const char* error() const { return message_; }

 private:
  static void on_error(png_structp png, png_const_charp message) {
    auto* self = static_cast<Reader*>(png_get_error_ptr(png));
    std::strncpy(self->message_, message, sizeof self->message_ - 1);
    std::longjmp(self->jump_, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}
  static void* on_malloc(png_structp png, size_t bytes) {
    void* memory = std::malloc(bytes);
    if (!memory) static_cast<Reader*>(png_get_mem_ptr(png))->out_of_memory_ = true;
    return memory;
  }
  static void on_read(png_structp png, png_bytep out, size_t count) {
    auto* self = static_cast<Reader*>(png_get_io_ptr(png));
    if (count > self->rest_.size()) {
      self->ran_out_ = true;
      png_error(png, "the bytes end too early");
    }
    std::memcpy(out, self->rest_.data(), count);
    self->rest_ = self->rest_.subspan(count);
  }

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::span<const uint8_t> rest_;
  std::jmp_buf jump_;
  int passes_ = 1;
  bool ran_out_ = false, out_of_memory_ = false;
  char message_[256] = "";
};

// Whether all chunks in front of the first one called `last` are there. libpng takes memory for
// what their lengths say before it reads them.
bool is_whole(std::span<const uint8_t> bytes, const char* last) {
  constexpr size_t kSignature = 8, kBefore = 8, kSum = 4, kLongest = 0x7fffffff;
  for (size_t at = kSignature; at + kBefore <= bytes.size();) {
    const uint8_t* chunk = bytes.data() + at;
    const size_t length = png_get_uint_32(chunk);
    if (length > kLongest || std::memcmp(chunk + 4, last, 4) == 0) return true;  // libpng's
    if (length + kSum > bytes.size() - at - kBefore) return false;
    at += kBefore + length + kSum;
  }
  return true;
}

}  // namespace

Decoded decode_png(std::span<const uint8_t> bytes, std::string_view name,
                   const DecodeOptions& options) {
  Reader reader(bytes);
  bool usable = false;  // without a header nothing is
  const auto cut = [&](const char* where) {
    fail_truncated("PNG", name, "the " + std::to_string(bytes.size()) + " bytes end " + where,
                   usable);
  };
  const auto stop = [&](const char* where) {
    if (reader.out_of_memory()) throw std::bad_alloc();
    if (!reader.ran_out()) fail_corrupt("PNG", name, reader.error());
    cut(where);
  };
  if (!is_whole(bytes, "IDAT")) cut("within the header");
  if (!reader.read_header(options.allow_truncated)) stop("within the header");
  usable = !options.allow_truncated;
  Decoded out{allocate(reader.width(), reader.height(), name, options), 1};
  if (options.exif_orientation) out.orientation = reader.orientation();
  if (!reader.start()) stop("before the first row");

  Image& image = out.image;
  const size_t pixels = image.width * image.height;
  const bool indirect = reader.palette() || reader.grey16();
  std::vector<uint8_t> raw(indirect ? reader.row_bytes() * image.height : 0);
  FUNGI_ASSERT(reader.row_bytes() == image.width * (reader.palette()  ? 1
                                                    : reader.grey16() ? 2
                                                                      : 3));
  const bool complete = reader.read_rows(indirect ? raw.data() : image.rgb.data());
  if (!complete && !(options.allow_truncated && reader.ran_out())) stop("before the last row");

  if (reader.palette()) {
    const auto table = reader.palette_rgb();
    for (size_t i = 0; i < pixels; ++i) std::memcpy(&image.rgb[3 * i], &table[3 * raw[i]], 3);
  } else if (reader.grey16()) {
    for (size_t i = 0; i < pixels; ++i)
      std::memset(&image.rgb[3 * i], raw[2 * i] ? 255 : raw[2 * i + 1], 3);
  }
  // EXIF may stand behind the pixels, too.
  if (options.exif_orientation && complete && is_whole(bytes, "IEND")) {
    reader.read_end();
    out.orientation = reader.orientation();
  }
  return out;
}

}  // namespace fungi::codec
