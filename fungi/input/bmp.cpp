// SPDX-License-Identifier: Apache-2.0
// BMP, which no packaged library reads: 1 to 32 bits, palettes, bit fields, run lengths, top-down,
// OS/2's headers. What is refused is what Pillow refuses, and where it reads a file otherwise than
// Windows does (a palette of greys counts as none, alpha is dropped), so do we.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>

#include "fungi/base/error.h"
#include "fungi/input/codec.h"

namespace fungi::codec {
namespace {

using Bytes = std::span<const uint8_t>;

constexpr size_t kFileHeader = 14;

uint32_t little(Bytes bytes, size_t at, size_t size) {
  uint32_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= uint32_t(bytes[at + i]) << 8 * i;
  return value;
}

enum class Packing { rows, runs_of_8, runs_of_4 };

// How one pixel of a row lies in the file.
struct Layout {
  unsigned bits = 0;     // of a pixel
  bool indexed = false;  // it is looked up in the table of colours
  std::array<unsigned, 3> place =
      {};                          // of red, green and blue: bytes, where there are 24 or 32 bits
  bool six_bits_of_green = false;  // where there are 16
};

struct Header {
  size_t size = 0;  // of itself
  uint64_t width = 0, height = 0;
  bool top_down = false;
  unsigned bits = 0;
  uint32_t compression = 0;
  std::array<uint32_t, 4> masks = {};  // red, green, blue, alpha
  uint64_t colours = 0;                // of the palette
  size_t entry = 4;                    // bytes of one of them
  size_t palette_at = 0, pixels_at = 0;
};

enum : uint32_t { kRaw = 0, kRuns8 = 1, kRuns4 = 2, kBitFields = 3 };

Header read_header(Bytes file, std::string_view name) {
  const auto need = [&](size_t bytes) {
    if (file.size() < bytes)
      fail_truncated("BMP", name,
                     "the " + std::to_string(file.size()) + " bytes end within the header");
  };
  need(kFileHeader + 4);
  Header h;
  h.pixels_at = little(file, 10, 4);
  h.size = little(file, kFileHeader, 4);
  constexpr size_t kSizes[] = {12, 40, 52, 56, 64, 108, 124};
  if (std::find(std::begin(kSizes), std::end(kSizes), h.size) == std::end(kSizes))
    fail_corrupt("BMP", name, "its header has an unknown size, " + std::to_string(h.size));
  need(kFileHeader + h.size);
  h.palette_at = kFileHeader + h.size;
  const Bytes own = file.subspan(kFileHeader, h.size);
  if (h.size == 12) {  // OS/2's first
    h.width = little(own, 4, 2);
    h.height = little(own, 6, 2);
    h.bits = little(own, 10, 2);
    h.entry = 3;
  } else {
    h.top_down = own[11] == 0xFF;
    h.width = little(own, 4, 4);
    h.height = h.top_down ? (uint64_t(1) << 32) - little(own, 8, 4) : little(own, 8, 4);
    h.bits = little(own, 14, 2);
    h.compression = little(own, 16, 4);
    h.colours = little(own, 32, 4);
    if (h.compression == kBitFields) {
      const size_t masks = h.size >= 56 ? 4 : 3;
      size_t at = kFileHeader + 40;
      if (h.size < 52) {  // they follow the header
        need(at + 12);
        h.palette_at = at + 12;
      }
      for (size_t i = 0; i < masks; ++i, at += 4) h.masks[i] = little(file, at, 4);
    }
  }
  if (h.bits != 1 && h.bits != 4 && h.bits != 8 && h.bits != 16 && h.bits != 24 && h.bits != 32)
    fail_corrupt("BMP", name, "it has " + std::to_string(h.bits) + " bits for each pixel");
  if (h.colours == 0) h.colours = uint64_t(1) << h.bits;
  if (h.pixels_at == kFileHeader + h.size && h.bits <= 8) h.pixels_at += h.entry * h.colours;
  if (h.pixels_at == 0) h.pixels_at = h.palette_at + (h.bits <= 8 ? h.entry * h.colours : 0);
  return h;
}

// The orders of bit fields that Pillow knows.
std::optional<Layout> bit_fields(const Header& h) {
  struct Known {
    unsigned bits;
    std::array<uint32_t, 4> masks;
    Layout layout;
  };
  static constexpr Known kKnown[] = {
      {32, {0xFF0000, 0xFF00, 0xFF, 0}, {32, false, {2, 1, 0}}},
      {32, {0xFF000000, 0xFF0000, 0xFF00, 0}, {32, false, {3, 2, 1}}},
      {32, {0xFF000000, 0xFF00, 0xFF, 0}, {32, false, {3, 1, 0}}},
      {32, {0xFF000000, 0xFF0000, 0xFF00, 0xFF}, {32, false, {3, 2, 1}}},
      {32, {0xFF, 0xFF00, 0xFF0000, 0xFF000000}, {32, false, {0, 1, 2}}},
      {32, {0xFF0000, 0xFF00, 0xFF, 0xFF000000}, {32, false, {2, 1, 0}}},
      {32, {0xFF000000, 0xFF00, 0xFF, 0xFF0000}, {32, false, {3, 1, 0}}},
      {32, {0, 0, 0, 0}, {32, false, {2, 1, 0}}},
      {24, {0xFF0000, 0xFF00, 0xFF}, {24, false, {2, 1, 0}}},
      {16, {0xF800, 0x7E0, 0x1F}, {16, false, {}, true}},
      {16, {0x7C00, 0x3E0, 0x1F}, {16, false, {}, false}}};
  const size_t compared = h.bits == 32 ? 4 : 3;
  for (const Known& known : kKnown)
    if (known.bits == h.bits &&
        std::equal(h.masks.begin(), h.masks.begin() + compared, known.masks.begin()))
      return known.layout;
  return std::nullopt;
}

using Colours = std::array<uint8_t, 768>;

// Fills the table that indices are looked up in and says how many bits one has. A palette that is
// black and white, or the greys from 0 on, is none to Pillow, and indices are then shades: of one
// bit where there are at most two colours, of eight elsewhere, whatever the header says.
unsigned read_palette(Bytes file, const Header& h, Colours& table, std::string_view name) {
  if (h.colours > 65536)
    fail_corrupt("BMP", name, "it has a palette of " + std::to_string(h.colours) + " colours");
  const Bytes behind = file.subspan(std::min(h.palette_at, file.size()));
  const Bytes palette = behind.first(std::min(behind.size(), size_t(h.entry * h.colours)));
  const auto is_grey = [&](size_t i) {
    const unsigned shade = h.colours == 2 ? 255 * unsigned(i) : unsigned(i & 255);
    const size_t at = i * h.entry;
    return at + 3 <= palette.size() && palette[at] == shade && palette[at + 1] == shade &&
           palette[at + 2] == shade;
  };
  bool grey = true;
  for (size_t i = 0; grey && i < h.colours; ++i) grey = is_grey(i);
  table.fill(0);
  if (grey) {
    for (size_t i = 0; i < 256; ++i)
      std::memset(&table[3 * i], h.colours <= 2 ? (i ? 255 : 0) : int(i), 3);
    return h.colours <= 2 ? 1 : 8;
  }
  if (palette.size() / h.entry > 256)
    fail_corrupt("BMP", name, "expected at most 256 colours in its palette");
  for (size_t i = 0; i < palette.size() / h.entry; ++i)
    for (size_t c = 0; c < 3; ++c) table[3 * i + c] = palette[i * h.entry + 2 - c];
  return h.bits;
}

// Run lengths to one index per byte, rows as they are stored. A run ends with its row.
std::vector<uint8_t> expand_runs(Bytes file, size_t at, bool of_4, size_t width, size_t height) {
  const size_t whole = width * height;
  std::vector<uint8_t> out;
  size_t x = 0;
  while (out.size() < whole && at + 2 <= file.size()) {
    const size_t count = file[at];
    const uint8_t value = file[at + 1];
    at += 2;
    if (count) {
      const size_t fitting = std::min(count, width - std::min(x, width));
      for (size_t i = 0; i < fitting; ++i)
        out.push_back(of_4 ? (i % 2 ? value & 15 : value >> 4) : value);
      x += fitting;
    } else if (value == 0) {  // the row ends
      out.resize((out.size() + width - 1) / width * width);
      x = 0;
    } else if (value == 1) {  // the picture ends
      break;
    } else if (value == 2) {  // the next pixel is so far to the right, and so many rows on
      if (at + 2 > file.size()) break;
      out.resize(std::min(whole, out.size() + file[at] + file[at + 1] * width));
      at += 2;
      x = out.size() % width;
    } else {  // so many indices as they are, padded to an even place in the file
      const size_t indices = std::min<size_t>(whole - out.size(), value);
      const size_t bytes = of_4 ? (indices + 1) / 2 : indices;
      const Bytes found = file.subspan(at, std::min(bytes, file.size() - at));
      for (size_t i = 0; i < indices && (of_4 ? i / 2 : i) < found.size(); ++i)
        out.push_back(of_4 ? (i % 2 ? found[i / 2] & 15 : found[i / 2] >> 4) : found[i]);
      at += found.size();
      if (found.size() < bytes) break;
      x += value;
      at += at % 2;
    }
  }
  return out;
}

void write_row(const uint8_t* in, const Layout& layout, const Colours& table, size_t width,
               uint8_t* rgb) {
  for (size_t x = 0; x < width; ++x, rgb += 3) {
    if (layout.indexed) {
      const size_t bit = x * layout.bits, shift = 8 - layout.bits - bit % 8;
      const unsigned index = in[bit / 8] >> shift & ((1u << layout.bits) - 1);
      std::memcpy(rgb, &table[3 * index], 3);
    } else if (layout.bits == 16) {
      const unsigned pixel = in[2 * x] | unsigned(in[2 * x + 1]) << 8;
      const unsigned most = layout.six_bits_of_green ? 63 : 31;
      rgb[0] = uint8_t((pixel >> (most == 63 ? 11 : 10) & 31) * 255 / 31);
      rgb[1] = uint8_t((pixel >> 5 & most) * 255 / most);
      rgb[2] = uint8_t((pixel & 31) * 255 / 31);
    } else {
      const uint8_t* pixel = in + x * layout.bits / 8;
      for (size_t c = 0; c < 3; ++c) rgb[c] = pixel[layout.place[c]];
    }
  }
}

}  // namespace

Decoded decode_bmp(Bytes file, std::string_view name, const DecodeOptions& options) {
  const Header h = read_header(file, name);
  const bool runs = h.compression == kRuns8 || h.compression == kRuns4;
  if (h.compression > kBitFields || (runs && h.bits > 8))
    fail_corrupt("BMP", name,
                 "its compression, " + std::to_string(h.compression) + ", at " +
                     std::to_string(h.bits) + " bits is not known");
  Layout layout{h.bits, h.bits <= 8, {2, 1, 0}};
  if (h.compression == kBitFields) {
    const auto found = bit_fields(h);
    if (!found) fail_corrupt("BMP", name, "its bit fields lie in an unknown order");
    layout = *found;
  }
  Decoded out{allocate(h.width, h.height, name, options), 1};
  Image& image = out.image;
  Colours table{};
  if (layout.indexed) {
    layout.bits = read_palette(file, h, table, name);
    for (size_t i = 0; i < image.rgb.size(); i += 3) std::memcpy(&image.rgb[i], table.data(), 3);
  }
  const auto row = [&](size_t y) {
    return &image.rgb[3 * image.width * (h.top_down ? y : image.height - 1 - y)];
  };
  if (runs) {
    const auto indices =
        expand_runs(file, h.pixels_at, h.compression == kRuns4, image.width, image.height);
    if (indices.size() < image.width * image.height)
      fail_truncated("BMP", name, "its runs end within the picture");
    for (size_t y = 0; y < image.height; ++y)
      write_row(&indices[y * image.width], {8, true}, table, image.width, row(y));
    return out;
  }
  const size_t stride = (image.width * h.bits + 31) / 32 * 4;
  const size_t needed = (image.width * layout.bits + 7) / 8;
  if (needed > stride) {  // greys of eight bits where the header says fewer
    if (options.allow_truncated) return out;
    fail_corrupt("BMP", name, "its rows are shorter than its pixels");
  }
  for (size_t y = 0; y < image.height; ++y) {
    const size_t at = h.pixels_at + y * stride;
    if (at + needed > file.size()) {
      if (options.allow_truncated) break;
      fail_truncated("BMP", name,
                     "the " + std::to_string(file.size()) + " bytes end in row " +
                         std::to_string(y) + " of " + std::to_string(image.height),
                     true);
    }
    write_row(file.data() + at, layout, table, image.width, row(y));
  }
  return out;
}

}  // namespace fungi::codec
