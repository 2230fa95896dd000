// SPDX-License-Identifier: Apache-2.0
// What the files that read TIFF say to each other: the directory of the first picture
// (tiff_directory.cpp), how its pixels lie in rows (tiff_pixels.cpp), compressed ones
// (tiff_compressed.cpp, through libtiff), and the rest (tiff.cpp). Internal to this room.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "fungi/input/codec.h"

namespace fungi::codec::tiff {

using Bytes = std::span<const uint8_t>;

namespace tag {
enum : uint16_t {
  width = 256,
  height = 257,
  bits = 258,
  compression = 259,
  photometric = 262,
  fill_order = 266,
  strip_offsets = 273,
  orientation = 274,
  samples = 277,
  rows_per_strip = 278,
  planes = 284,
  colour_map = 320,
  tile_width = 322,
  tile_height = 323,
  tile_offsets = 324,
  extra_samples = 338,
  sample_format = 339,
  xmp = 700,
};
}

// The first directory of a file. As Pillow does, it passes over tags that it cannot have, and stops
// at the first whose data lie behind the end.
class Directory {
 public:
  Directory(Bytes file, std::string_view name);

  bool big_endian() const { return big_; }
  uint64_t offset() const { return offset_; }
  bool has(uint16_t tag) const { return find(tag); }
  // The first of a tag's numbers; Error where they are no whole numbers.
  std::optional<int64_t> number(uint16_t tag) const;
  int64_t number(uint16_t tag, int64_t absent) const { return number(tag).value_or(absent); }
  std::vector<int64_t> numbers(uint16_t tag) const;
  Bytes bytes(uint16_t tag) const;
  size_t count(uint16_t tag) const;

 private:
  struct Entry {
    uint16_t type;
    Bytes data;
  };
  const Entry* find(uint16_t tag) const;
  std::optional<uint64_t> read(uint64_t at, size_t size) const;
  void read_entries();

  Bytes file_;
  std::string_view name_;
  bool big_ = false, long_offsets_ = false;  // BigTIFF
  uint64_t offset_ = 0;
  std::map<uint16_t, Entry> entries_;
};

enum class Kind { grey, integer, real, palette, rgb, premultiplied, cmyk, ycbcr };

// How a pixel lies in a row.
struct Layout {
  Kind kind = Kind::grey;
  unsigned bits = 8, samples = 1;  // bits of a sample
  bool big_endian = false;
  bool reversed = false;  // the first pixel of a byte is in its lowest bits
  bool inverted = false;  // 0 is white
  bool is_signed = false;
  size_t row_bytes(size_t pixels) const { return (pixels * bits * samples + 7) / 8; }
};

// What the directory says of the picture.
struct Facts {
  uint64_t width = 0, height = 0;
  int64_t compression = 1, photometric = 0;
  bool planar = false;  // each sample's plane lies for itself
  unsigned bands = 1;   // that Pillow has of it
  Layout layout;
  std::vector<uint8_t> palette;  // 256 RGB triples
  int orientation = 1;
};

Facts read_facts(const Directory& directory, std::string_view name);

// Turns rows as they are stored into RGB.
class Canvas {
 public:
  Canvas(Image& image, const Facts& facts);

  // Pixels of a row, from x on; of separate planes, those of one.
  void put(size_t x, size_t y, size_t pixels, const uint8_t* row, unsigned plane = 0);
  // Where planes were separate, joins them.
  void finish();

 private:
  Image& image_;
  Layout layout_;
  std::vector<uint8_t> palette_;
  std::vector<uint8_t> planes_;  // of separate planes: four bytes for each pixel
};

// Everything but uncompressed pixels.
void decode_compressed(Bytes file, std::string_view name, const Directory& directory, Facts facts,
                       Image& image, const DecodeOptions& options);

}  // namespace fungi::codec::tiff
