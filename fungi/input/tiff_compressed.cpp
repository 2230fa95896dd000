// SPDX-License-Identifier: Apache-2.0
// Compressed pixels of a TIFF, strip by strip or tile by tile, through libtiff (the one place that
// includes it) and with Pillow's precautions: what libtiff says of sizes has to be what the
// directory says. Pictures in YCbCr are left to libtiff's own conversion.
#include <tiffio.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "fungi/base/error.h"
#include "fungi/input/tiff.h"

namespace fungi::codec::tiff {
namespace {

// The bytes as a file. libtiff maps them and hardly ever reads.
struct Stream {
  Bytes bytes;
  uint64_t at = 0;
  std::string error;  // the first
};

tmsize_t on_read(thandle_t handle, void* out, tmsize_t size) {
  auto* stream = static_cast<Stream*>(handle);
  if (stream->at >= stream->bytes.size() || size <= 0) return 0;
  const size_t n = std::min(size_t(size), size_t(stream->bytes.size() - stream->at));
  std::memcpy(out, stream->bytes.data() + stream->at, n);
  stream->at += n;
  return tmsize_t(n);
}

toff_t on_seek(thandle_t handle, toff_t offset, int whence) {
  auto* stream = static_cast<Stream*>(handle);
  if (whence == SEEK_CUR) offset += stream->at;
  if (whence == SEEK_END) offset += stream->bytes.size();
  return stream->at = offset;
}

int on_map(thandle_t handle, void** base, toff_t* size) {
  auto* stream = static_cast<Stream*>(handle);
  *base = const_cast<uint8_t*>(stream->bytes.data());  // read only: the file is opened for reading
  *size = stream->bytes.size();
  return 1;
}

int on_error(TIFF*, void* user, const char* module, const char* format, va_list values) {
  auto* stream = static_cast<Stream*>(user);
  char text[256];
  std::vsnprintf(text, sizeof text, format, values);
  if (stream->error.empty()) stream->error = std::string(module ? module : "libtiff") + ": " + text;
  return 1;  // nothing is printed
}

int on_warning(TIFF*, void*, const char*, const char*, va_list) { return 1; }

using Handle = std::unique_ptr<TIFF, decltype(&TIFFClose)>;
using Buffer = std::unique_ptr<uint8_t, decltype(&std::free)>;

class Reader {
 public:
  Reader(Bytes file, std::string_view name, const Facts& facts, size_t largest)
      : stream_{file}, name_(name), facts_(facts), largest_(largest) {}

  void open(uint64_t directory) {
    const std::unique_ptr<TIFFOpenOptions, decltype(&TIFFOpenOptionsFree)> options(
        TIFFOpenOptionsAlloc(), &TIFFOpenOptionsFree);
    if (!options) throw std::bad_alloc();
    TIFFOpenOptionsSetErrorHandlerExtR(options.get(), on_error, &stream_);
    TIFFOpenOptionsSetWarningHandlerExtR(options.get(), on_warning, &stream_);
    TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), tmsize_t(largest_));
    const auto on_write = [](thandle_t, void*, tmsize_t) -> tmsize_t { return 0; };
    const auto on_close = [](thandle_t) { return 0; };
    const auto on_size = [](thandle_t handle) -> toff_t {
      return static_cast<Stream*>(handle)->bytes.size();
    };
    const auto on_unmap = [](thandle_t, void*, toff_t) {};
    // C: long strips are read in pieces, as Pillow does
    tiff_.reset(TIFFClientOpenExt("file", "rC", &stream_, on_read, on_write, on_seek, on_close,
                                  on_size, on_map, on_unmap, options.get()));
    if (!tiff_ || !TIFFSetSubDirectory(tiff_.get(), directory)) stop();
    if (number32(TIFFTAG_IMAGEWIDTH) != facts_.width ||
        number32(TIFFTAG_IMAGELENGTH) != facts_.height)
      stop();
    // Of a stream that is longer than its strip, libdeflate may leave the last bytes out.
    if (facts_.compression == 8 || facts_.compression == 32946)
      TIFFSetField(tiff_.get(), TIFFTAG_DEFLATE_SUBCODEC, DEFLATE_SUBCODEC_ZLIB);
  }

  uint16_t number16(uint32_t tag) {
    uint16_t value = 0;
    TIFFGetFieldDefaulted(tiff_.get(), tag, &value);
    return value;
  }
  uint32_t number32(uint32_t tag, uint32_t absent = 0) {
    uint32_t value = absent;
    if (TIFFGetField(tiff_.get(), tag, &value) != 1) return absent;
    return value;
  }

  void as_rgb() { TIFFSetField(tiff_.get(), TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB); }
  bool premultiplied() {
    uint16_t count = 0, *kinds = nullptr;
    TIFFGetFieldDefaulted(tiff_.get(), TIFFTAG_EXTRASAMPLES, &count, &kinds);
    return count && (kinds[0] == EXTRASAMPLE_UNSPECIFIED || kinds[0] == EXTRASAMPLE_ASSOCALPHA);
  }
  bool tiled() { return TIFFIsTiled(tiff_.get()); }

  // All three hand rows to the canvas. `bits` are those of a pixel, in all planes.
  void read_converted(Canvas& canvas);
  void read_tiles(Canvas& canvas, unsigned planes, unsigned bits);
  void read_strips(Canvas& canvas, unsigned planes, unsigned bits);

 private:
  [[noreturn]] void stop() {
    fail_corrupt("TIFF", name_,
                 stream_.error.empty()
                     ? "its tags contradict each other, or its pixels end too early"
                     : stream_.error);
  }
  Buffer buffer(uint64_t bytes) {
    if (bytes == 0 || bytes > INT_MAX - 1 || bytes > largest_) stop();
    Buffer memory(static_cast<uint8_t*>(std::calloc(1, bytes)), &std::free);
    if (!memory) throw std::bad_alloc();
    return memory;
  }

  Stream stream_;
  std::string_view name_;
  const Facts& facts_;
  size_t largest_;
  Handle tiff_{nullptr, &TIFFClose};
};

void Reader::read_converted(Canvas& canvas) {
  uint32_t rows = number32(tiled() ? TIFFTAG_TILELENGTH : TIFFTAG_ROWSPERSTRIP, UINT32_MAX);
  if (rows == UINT32_MAX) rows = uint32_t(facts_.height);
  struct Converter {
    TIFFRGBAImage image;
    bool begun = false;
    ~Converter() {
      if (begun) TIFFRGBAImageEnd(&image);
    }
  } converter;
  char message[1024] = "";
  converter.begun = TIFFRGBAImageOK(tiff_.get(), message) &&
                    TIFFRGBAImageBegin(&converter.image, tiff_.get(), 0, message);
  if (!converter.begun) {
    if (*message) stream_.error = message;
    stop();
  }
  TIFFRGBAImage& image = converter.image;
  image.orientation = image.req_orientation = ORIENTATION_TOPLEFT;
  image.col_offset = 0;
  const uint64_t row_bytes = uint64_t(image.width) * 4;
  if (rows == 0 || row_bytes > INT_MAX || INT_MAX / row_bytes < rows) stop();
  rows = std::min(rows, uint32_t(facts_.height));
  const Buffer pixels = buffer(rows * row_bytes);
  for (uint64_t y = 0; y < facts_.height; y += rows) {
    const uint32_t count = uint32_t(std::min<uint64_t>(rows, facts_.height - y));
    image.row_offset = int(y);
    if (!TIFFRGBAImageGet(&image, reinterpret_cast<uint32_t*>(pixels.get()), image.width, count))
      stop();
    for (uint32_t i = 0; i < count; ++i)
      canvas.put(0, y + i, facts_.width, pixels.get() + i * row_bytes);
  }
}

void Reader::read_tiles(Canvas& canvas, unsigned planes, unsigned bits) {
  const uint64_t size = uint64_t(TIFFTileSize(tiff_.get()));
  const uint64_t row = uint64_t(TIFFTileRowSize(tiff_.get()));
  const uint64_t w = number32(TIFFTAG_TILEWIDTH), h = number32(TIFFTAG_TILELENGTH);
  const uint64_t expected = (w * bits / planes + 7) / 8;
  if (w == 0 || h == 0 || w > INT_MAX || h > INT_MAX || row == 0 || row > size ||
      size != expected * h || expected > row)
    stop();
  const Buffer pixels = buffer(size);
  for (uint64_t y = 0; y < facts_.height; y += h)
    for (unsigned plane = 0; plane < planes; ++plane)
      for (uint64_t x = 0; x < facts_.width; x += w) {
        if (TIFFReadTile(tiff_.get(), pixels.get(), uint32_t(x), uint32_t(y), 0, uint16_t(plane)) ==
            -1)
          stop();
        for (uint64_t i = 0; i < std::min(h, facts_.height - y); ++i)
          canvas.put(x, y + i, std::min(w, facts_.width - x), pixels.get() + i * row, plane);
      }
}

void Reader::read_strips(Canvas& canvas, unsigned planes, unsigned bits) {
  uint64_t rows = number32(TIFFTAG_ROWSPERSTRIP, UINT32_MAX);
  if (rows == UINT32_MAX) rows = facts_.height;
  const uint64_t size = uint64_t(TIFFStripSize(tiff_.get()));
  const uint64_t row = uint64_t(TIFFScanlineSize(tiff_.get()));
  const uint64_t expected = (facts_.width * bits / planes + 7) / 8;
  if (rows == 0 || rows > INT_MAX || size > expected * rows || row == 0 || expected > row) stop();
  const Buffer pixels = buffer(size);
  for (uint64_t y = 0; y < facts_.height; y += rows)
    for (unsigned plane = 0; plane < planes; ++plane) {
      const uint32_t strip = TIFFComputeStrip(tiff_.get(), uint32_t(y), uint16_t(plane));
      if (TIFFReadEncodedStrip(tiff_.get(), strip, pixels.get(), tmsize_t(size)) == -1) stop();
      for (uint64_t i = 0; i < std::min(rows, facts_.height - y); ++i) {
        if ((i + 1) * row > size) stop();
        canvas.put(0, y + i, facts_.width, pixels.get() + i * row, plane);
      }
    }
}

bool is_known(int64_t compression) {
  constexpr int64_t kKnown[] = {2,     3,     4,     5,     6,     7,     8,     32771,
                                32773, 32809, 32946, 34676, 34677, 34925, 50000, 50001};
  return std::ranges::count(kKnown, compression) > 0;
}

}  // namespace

void decode_compressed(Bytes file, std::string_view name, const Directory& directory, Facts facts,
                       Image& image, const DecodeOptions& options) {
  if (!is_known(facts.compression))
    fail_unknown("TIFF", name, "pixels of the compression " + std::to_string(facts.compression));
  // libtiff brings bits, and numbers of 16, to this processor's order.
  Layout& layout = facts.layout;
  if (layout.big_endian && (layout.bits == 32 || layout.is_signed))
    fail_corrupt("TIFF", name,
                 "compressed numbers of this kind, highest byte first, are not known");
  layout.big_endian = layout.reversed = false;
  const bool jpeg = facts.compression == 7 && !facts.planar;
  if (facts.photometric == 6) {
    layout = {Kind::rgb, 8, jpeg ? 3u : 4u};
    facts.bands = 3;
  }
  // Whatever a strip may need: eight bytes a pixel, and what libtiff holds of the file.
  const size_t largest = 8 * options.max_pixels + file.size() + (size_t(1) << 20);
  Reader reader(file, name, facts, largest);
  reader.open(directory.offset());
  bool convert = reader.number16(TIFFTAG_PHOTOMETRIC) == PHOTOMETRIC_YCBCR;
  const bool planar = reader.number16(TIFFTAG_PLANARCONFIG) == PLANARCONFIG_SEPARATE;
  if (convert && reader.number16(TIFFTAG_COMPRESSION) == COMPRESSION_JPEG && !planar) {
    reader.as_rgb();
    convert = false;
  }
  const unsigned bits = layout.bits * layout.samples;
  facts.planar = planar && !convert && facts.bands > 1;
  if ((convert && bits != 32) || (facts.planar && layout.bits != 8 && layout.bits != 16))
    fail_corrupt("TIFF", name, "its tags contradict each other");
  const unsigned planes = facts.planar ? facts.bands : 1;
  if (planes == 4 && layout.kind != Kind::cmyk)
    layout.kind = reader.premultiplied() ? Kind::premultiplied : Kind::rgb;
  Canvas canvas(image, facts);
  if (convert)
    reader.read_converted(canvas);
  else if (reader.tiled())
    reader.read_tiles(canvas, planes, bits);
  else
    reader.read_strips(canvas, planes, bits);
  canvas.finish();
}

}  // namespace fungi::codec::tiff
