// SPDX-License-Identifier: Apache-2.0
// PNG through libpng, every colour type brought to RGB as Pillow does: low depths scaled to 0..255,
// palette looked up, alpha and tRNS dropped, 16-bit colour cut to its high byte, 16-bit grey
// clipped at 255; gamma is not applied. What is refused is what Pillow refuses, which minds less
// than libpng: so the chunks are told apart here, and libpng sees a tidy file made of what counts.
#include <fmt/format.h>
#include <png.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <string>

#include "fungi/base/error.h"
#include "fungi/input/codec.h"

namespace fungi::codec {
namespace {

using Bytes = std::span<const uint8_t>;

constexpr size_t kSignature = 8;

// What a file is made of as Pillow reads it.
struct Parts {
  Bytes header;               // IHDR's thirteen bytes; empty: none of use
  Bytes palette;              // RGB triples
  std::vector<Bytes> pixels;  // what there is of the compressed stream
  Bytes exif;
  std::string wrong;         // what keeps Pillow from finding a picture
  bool cut = false;          // and that is the end of the bytes
  std::string wrong_behind;  // what makes it give up behind the pixels
  bool last_is_cut = false;  // the last of `pixels` is not all there
  bool animated = false;
};

struct Chunk {
  std::string_view name;
  Bytes data;          // what there is of it
  size_t missing = 0;  // the rest of its length
  Bytes sum;           // four bytes, fewer where the file ends
  bool critical() const { return !(name[0] & 0x20); }
};

// Takes the next chunk off; false where there are no eight bytes.
bool next_chunk(Bytes& rest, Chunk& chunk) {
  if (rest.size() < 8) return false;
  const size_t length = png_get_uint_32(rest.data());
  chunk.name = {reinterpret_cast<const char*>(rest.data()) + 4, 4};
  rest = rest.subspan(8);
  chunk.data = rest.first(std::min(length, rest.size()));
  chunk.missing = length - chunk.data.size();
  rest = rest.subspan(chunk.data.size());
  chunk.sum = rest.first(std::min<size_t>(4, rest.size()));
  rest = rest.subspan(chunk.sum.size());
  return true;
}

bool is_name(std::string_view name, bool lenient) {
  return std::all_of(name.begin(), name.end(), [&](char c) {
    if (lenient) return !(c & 0x80);
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// Chunks that Pillow wants to be that long.
bool too_short(const Chunk& chunk) {
  constexpr std::pair<std::string_view, size_t> kLeast[] = {
      {"IHDR", 13}, {"gAMA", 4}, {"cHRM", 32}, {"sRGB", 1}, {"pHYs", 9}, {"acTL", 8}, {"fcTL", 26}};
  return std::any_of(std::begin(kLeast), std::end(kLeast), [&](const auto& least) {
    return chunk.name == least.first && chunk.data.size() < least.second;
  });
}

// What Pillow minds of a chunk that is no part of the stream of pixels.
std::string fault_of(const Chunk& chunk, bool lenient) {
  const std::string name(chunk.name);
  if (!is_name(chunk.name, lenient)) return "the name of a chunk is broken";
  if (chunk.missing) return "the bytes end in the chunk " + name;
  if (too_short(chunk) && !lenient) return "the chunk " + name + " is too short";
  return "";
}

bool sum_is_wrong(const Chunk& chunk) {
  const auto* data = chunk.data.data();
  uLong sum = crc32(0, reinterpret_cast<const Bytef*>(chunk.name.data()), 4);
  for (size_t at = 0; at < chunk.data.size(); at += 1 << 30)
    sum = crc32(sum, data + at, uInt(std::min<size_t>(1 << 30, chunk.data.size() - at)));
  return chunk.sum.size() < 4 || png_get_uint_32(chunk.sum.data()) != sum;
}

// Looks at the chunks in front of the pixels, whose sums have to be right (leniently, those of
// critical chunks only), and leaves `chunk` at the first that has pixels.
void read_front(Bytes& rest, Chunk& chunk, Parts& parts, bool lenient) {
  while (next_chunk(rest, chunk)) {
    if (chunk.name == "IDAT" || chunk.name == "IEND") {
      if (chunk.name == "IEND" || parts.header.empty()) parts.wrong = "it holds no picture";
      return;
    }
    parts.wrong = fault_of(chunk, lenient);
    parts.cut = chunk.missing;
    if (parts.wrong.empty() && (chunk.critical() || !lenient) && sum_is_wrong(chunk))
      parts.wrong = "the checksum of the chunk " + std::string(chunk.name) + " is wrong";
    if (!parts.wrong.empty()) return;
    if (chunk.name == "IHDR" && !too_short(chunk)) parts.header = chunk.data;
    if (chunk.name == "PLTE") parts.palette = chunk.data;
    if (chunk.name == "eXIf") parts.exif = chunk.data;
    if (chunk.name == "acTL") parts.animated = true;
  }
  parts.wrong = "the bytes end in front of the pixels";
  parts.cut = true;
}

// Of the chunks behind the first with pixels no sum is looked at.
Parts take_apart(Bytes bytes, bool lenient) {
  Parts parts;
  Bytes rest = bytes.subspan(kSignature);
  Chunk chunk;
  read_front(rest, chunk, parts, lenient);
  if (!parts.wrong.empty()) return parts;
  for (bool pixels = true;;) {
    const bool stream = chunk.name == "IDAT" || chunk.name == "DDAT";
    pixels = pixels && stream;
    if (pixels) {
      parts.pixels.push_back(chunk.data);
      parts.last_is_cut = chunk.missing;
    } else {
      if (chunk.name == "IEND" || !is_name(chunk.name, lenient)) return parts;
      if (chunk.name == "fcTL" && parts.animated) return parts;  // the next frame
      if (stream && lenient && chunk.missing) return parts;
      parts.wrong_behind = fault_of(chunk, lenient);
      if (!parts.wrong_behind.empty()) return parts;
      if (chunk.name == "eXIf") parts.exif = chunk.data;
    }
    if (!next_chunk(rest, chunk)) break;
  }
  // What is left of a chunk's first eight bytes: leniently, a length counts for itself.
  if (lenient && rest.size() >= 4 && rest.size() < 8 && png_get_uint_32(rest.data()))
    parts.wrong_behind = "the bytes end in the name of a chunk";
  return parts;
}

// The parts that decide about pixels as a file that libpng has nothing to say against. Sums are
// left out of account: it is told not to look.
std::vector<uint8_t> tidy(const Parts& parts, std::span<const Bytes> pixels) {
  std::vector<uint8_t> out = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  const auto add = [&](const char* name, std::span<const Bytes> pieces) {
    size_t length = 0;
    for (const Bytes& piece : pieces) length += piece.size();
    uint8_t head[8];
    png_save_uint_32(head, uint32_t(length));
    std::memcpy(head + 4, name, 4);
    out.insert(out.end(), head, head + 8);
    for (const Bytes& piece : pieces) out.insert(out.end(), piece.begin(), piece.end());
    out.insert(out.end(), 4, 0);
  };
  std::array<uint8_t, 13> header;
  std::copy_n(parts.header.begin(), 13, header.begin());
  header[10] = 0;                // the method of compression, which Pillow does not look at
  header[12] = header[12] != 0;  // interlaced
  const std::array<uint8_t, 3> colour{};
  const Bytes head(header), black(colour);
  add("IHDR", {&head, 1});
  if (header[9] == PNG_COLOR_TYPE_PALETTE) add("PLTE", {&black, 1});  // looked up by us
  add("IDAT", pixels);
  return out;  // no IEND: who wants more finds the end of the bytes
}

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

  bool read_header() {
    if (!info_) return false;
    if (setjmp(jump_)) return false;
    png_set_crc_action(png_, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
    png_set_user_limits(png_, 0x7fffffff, 0x7fffffff);  // DecodeOptions::max_pixels is the limit
    png_read_info(png_, info_);
    return true;
  }

  // Asks for 8-bit RGB rows, except for palette (one index per byte) and 16-bit grey (as stored).
  // Of a mask grey is a number, too, which nothing scales.
  bool start(bool mask = false) {
    if (setjmp(jump_)) return false;
    if (palette() || (mask && !grey16())) {
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

  // What goes wrong behind the last row, where libpng looks for the end of the stream, is nothing.
  bool read_rows(uint8_t* pixels) {
    if (setjmp(jump_))
      return passes_ > 1 ? png_get_current_pass_number(png_) >= passes_
                         : png_get_current_row_number(png_) >= height();
    const size_t stride = row_bytes();
    for (int pass = 0; pass < passes_; ++pass)
      for (size_t y = 0; y < height(); ++y) png_read_row(png_, pixels + y * stride, nullptr);
    return true;
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

// Whether every row is there without the last piece of the stream. Pillow then goes past it as past
// any chunk, and minds its cut.
bool complete_without_last(const Parts& parts, size_t bytes) {
  const auto file = tidy(parts, std::span(parts.pixels).first(parts.pixels.size() - 1));
  Reader reader(file);
  std::vector<uint8_t> pixels(bytes);
  return reader.read_header() && reader.start() && reader.read_rows(pixels.data());
}

// The palette as 256 RGB triples; entries that the file does not have are black, as in Pillow.
std::array<uint8_t, 768> full_palette(Bytes palette) {
  std::array<uint8_t, 768> table{};
  std::copy_n(palette.begin(), std::min(palette.size() / 3 * 3, table.size()), table.begin());
  return table;
}

void require_numbers(const Reader& reader, std::string_view name) {
  if (reader.palette() || reader.colour() == PNG_COLOR_TYPE_GRAY) return;
  const bool grey = reader.colour() == PNG_COLOR_TYPE_GRAY_ALPHA;
  fail(fmt::format("expected a mask with one number per pixel (a palette or grey), found {}",
                   grey ? "grey with alpha" : "colours"),
       std::string(name),
       "write the number of its class into each pixel, as a palette PNG or an 8-bit grey one");
}

// The stored numbers as bytes.
void take_numbers(const Reader& reader, const std::vector<uint8_t>& raw, std::string_view name,
                  Mask& mask) {
  mask = {reader.width(), reader.height(), raw};
  if (!reader.grey16()) return;
  mask.values.resize(raw.size() / 2);
  for (size_t i = 0; i < mask.values.size(); ++i) {
    const unsigned value = raw[2 * i] * 256u + raw[2 * i + 1];
    if (value > 255)
      fail(fmt::format("the mask holds class {} at ({}, {}): there may be 256 classes, 0 to 255",
                       value, i % mask.width, i / mask.width),
           std::string(name), "number the classes from 0 and leave out, or join, what is too many");
    mask.values[i] = uint8_t(value);
  }
}

// A picture, or its numbers where `mask` is given.
Decoded read_png(std::span<const uint8_t> bytes, std::string_view name,
                 const DecodeOptions& options, Mask* mask) {
  const bool lenient = options.allow_truncated;
  bool usable = false;  // without a header nothing is
  const auto cut = [&](const char* where) {
    fail_truncated("PNG", name, "the " + std::to_string(bytes.size()) + " bytes end " + where,
                   usable);
  };
  const Parts parts = take_apart(bytes, lenient);
  if (parts.cut) cut("within the header");
  if (!parts.wrong.empty()) fail_corrupt("PNG", name, parts.wrong);
  const std::vector<uint8_t> file = tidy(parts, parts.pixels);
  Reader reader(file);
  const auto stop = [&](const char* where) {
    if (reader.out_of_memory()) throw std::bad_alloc();
    if (!reader.ran_out()) fail_corrupt("PNG", name, reader.error());
    cut(where);
  };
  if (!reader.read_header()) stop("within the header");
  if (mask) require_numbers(reader, name);
  usable = !lenient && !mask;
  Decoded out{allocate(reader.width(), reader.height(), name, options), 1};
  if (options.exif_orientation) out.orientation = exif_orientation(parts.exif);
  if (!reader.start(mask)) stop("before the first row");
  if (reader.palette() && parts.palette.size() / 3 > 256)
    fail_corrupt("PNG", name, "expected at most 256 colours in its palette");

  Image& image = out.image;
  const size_t pixels = image.width * image.height;
  const bool indirect = mask || reader.palette() || reader.grey16();
  std::vector<uint8_t> raw(indirect ? reader.row_bytes() * image.height : 0);
  const size_t bytes_each = reader.grey16() ? 2 : indirect ? 1 : 3;
  FUNGI_ASSERT(reader.row_bytes() == image.width * bytes_each);
  const bool complete = reader.read_rows(indirect ? raw.data() : image.rgb.data());
  if (!complete && (!lenient || reader.out_of_memory())) stop("before the last row");
  if (!lenient && parts.last_is_cut &&
      complete_without_last(parts, reader.row_bytes() * image.height))
    cut("behind the last row");
  if (!parts.wrong_behind.empty()) fail_corrupt("PNG", name, parts.wrong_behind);

  if (mask) {
    take_numbers(reader, raw, name, *mask);
  } else if (reader.palette()) {
    const auto table = full_palette(parts.palette);
    for (size_t i = 0; i < pixels; ++i) std::memcpy(&image.rgb[3 * i], &table[3 * raw[i]], 3);
  } else if (reader.grey16()) {
    for (size_t i = 0; i < pixels; ++i)
      std::memset(&image.rgb[3 * i], raw[2 * i] ? 255 : raw[2 * i + 1], 3);
  }
  return out;
}

}  // namespace

Decoded decode_png(std::span<const uint8_t> bytes, std::string_view name,
                   const DecodeOptions& options) {
  return read_png(bytes, name, options, nullptr);
}

Mask decode_png_mask(std::span<const uint8_t> bytes, std::string_view name) {
  Mask mask;
  read_png(bytes, name, {}, &mask);
  return mask;
}

}  // namespace fungi::codec
