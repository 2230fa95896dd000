// SPDX-License-Identifier: Apache-2.0
// How Pillow understands what a directory says of the pixels (a list of what it knows, by all that
// matters), and what it makes of them.
#include <algorithm>
#include <cstring>
#include <string>

#include "fungi/input/tiff.h"

namespace fungi::codec::tiff {
namespace {

struct Known {
  const char* orders;  // "IM": both
  int photometric, format;
  int fill;  // 3: both orders of bits
  unsigned bits, samples;
  const char* extra;  // the kinds of further samples, a digit each; c: 999, which Corel Draw writes
  Kind kind;
  unsigned bands;
};

constexpr Known kKnown[] = {
    {"IM", 0, 1, 3, 1, 1, "", Kind::grey, 1},
    {"IM", 1, 1, 3, 1, 1, "", Kind::grey, 1},
    {"IM", 0, 1, 3, 2, 1, "", Kind::grey, 1},
    {"IM", 1, 1, 3, 2, 1, "", Kind::grey, 1},
    {"IM", 0, 1, 3, 4, 1, "", Kind::grey, 1},
    {"IM", 1, 1, 3, 4, 1, "", Kind::grey, 1},
    {"IM", 0, 1, 3, 8, 1, "", Kind::grey, 1},
    {"IM", 1, 1, 3, 8, 1, "", Kind::grey, 1},
    {"IM", 1, 2, 1, 8, 1, "", Kind::grey, 1},
    {"IM", 6, 1, 1, 8, 1, "", Kind::grey, 1},
    {"IM", 1, 1, 1, 8, 2, "0", Kind::grey, 1},
    {"IM", 1, 1, 1, 8, 2, "2", Kind::grey, 2},
    {"I", 1, 1, 1, 12, 1, "", Kind::integer, 1},
    {"I", 0, 1, 1, 16, 1, "", Kind::integer, 1},
    {"IM", 1, 1, 1, 16, 1, "", Kind::integer, 1},
    {"I", 1, 1, 2, 16, 1, "", Kind::integer, 1},
    {"IM", 1, 2, 1, 16, 1, "", Kind::integer, 1},
    {"I", 1, 1, 1, 32, 1, "", Kind::integer, 1},
    {"IM", 1, 2, 1, 32, 1, "", Kind::integer, 1},
    {"IM", 0, 3, 1, 32, 1, "", Kind::real, 1},
    {"IM", 1, 3, 1, 32, 1, "", Kind::real, 1},
    {"IM", 2, 1, 3, 8, 3, "", Kind::rgb, 3},
    {"IM", 2, 1, 1, 8, 4, "", Kind::rgb, 4},
    {"IM", 2, 1, 1, 8, 4, "0", Kind::rgb, 3},
    {"IM", 2, 1, 1, 8, 5, "00", Kind::rgb, 3},
    {"IM", 2, 1, 1, 8, 6, "000", Kind::rgb, 3},
    {"IM", 2, 1, 1, 8, 4, "1", Kind::premultiplied, 4},
    {"IM", 2, 1, 1, 8, 5, "10", Kind::premultiplied, 4},
    {"IM", 2, 1, 1, 8, 6, "100", Kind::premultiplied, 4},
    {"IM", 2, 1, 1, 8, 4, "2", Kind::rgb, 4},
    {"IM", 2, 1, 1, 8, 5, "20", Kind::rgb, 4},
    {"IM", 2, 1, 1, 8, 6, "200", Kind::rgb, 4},
    {"IM", 2, 1, 1, 8, 4, "c", Kind::rgb, 4},
    {"IM", 2, 1, 1, 16, 3, "", Kind::rgb, 3},
    {"IM", 2, 1, 1, 16, 4, "", Kind::rgb, 4},
    {"IM", 2, 1, 1, 16, 4, "0", Kind::rgb, 3},
    {"IM", 2, 1, 1, 16, 4, "1", Kind::premultiplied, 4},
    {"IM", 2, 1, 1, 16, 4, "2", Kind::rgb, 4},
    {"IM", 3, 1, 3, 1, 1, "", Kind::palette, 1},
    {"IM", 3, 1, 3, 2, 1, "", Kind::palette, 1},
    {"IM", 3, 1, 3, 4, 1, "", Kind::palette, 1},
    {"IM", 3, 1, 3, 8, 1, "", Kind::palette, 1},
    {"IM", 3, 1, 1, 8, 2, "0", Kind::palette, 1},
    {"IM", 3, 1, 1, 8, 2, "2", Kind::palette, 2},
    {"IM", 5, 1, 1, 8, 4, "", Kind::cmyk, 4},
    {"IM", 5, 1, 1, 8, 5, "0", Kind::cmyk, 4},
    {"IM", 5, 1, 1, 8, 6, "00", Kind::cmyk, 4},
    {"IM", 5, 1, 1, 16, 4, "", Kind::cmyk, 4},
    {"IM", 6, 1, 1, 8, 3, "", Kind::ycbcr, 3},
};

// A reader of photographs has no use for them, and they have no end.
constexpr int64_t kMostSamples = 6;

struct Samples {
  std::vector<int64_t> bits, extra;
};

Samples read_samples(const Directory& directory, const Facts& facts, std::string_view name) {
  Samples s{directory.numbers(tag::bits), directory.numbers(tag::extra_samples)};
  if (s.bits.empty()) s.bits = {1};
  const bool old_jpeg = facts.compression == 6;
  int64_t count = directory.number(tag::samples, old_jpeg ? 3 : 1);
  if (facts.planar && !s.extra.empty() && *std::ranges::max_element(s.extra) == 0) {
    s.bits.resize(s.bits.size() - std::min(s.bits.size(), s.extra.size()));
    count -= int64_t(s.extra.size());
    s.extra.clear();
  }
  if (count > kMostSamples)
    fail_corrupt("TIFF", name, "it has " + std::to_string(count) + " samples for each pixel");
  if (count >= 0 && size_t(count) < s.bits.size()) s.bits.resize(size_t(count));
  if (count > 1 && s.bits.size() == 1) s.bits.assign(size_t(count), s.bits[0]);
  if (int64_t(s.bits.size()) != count)
    fail_corrupt("TIFF", name, "it does not say how many bits each sample has");
  return s;
}

int read_orientation(const Directory& directory) {
  std::optional<int64_t> found;
  if (directory.has(tag::orientation)) {
    try {
      found = directory.number(tag::orientation);
    } catch (const Error&) {  // of another type: none
    }
  } else {
    const Bytes data = directory.bytes(tag::xmp);
    const std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
    constexpr std::string_view kName = "tiff:Orientation";
    for (size_t at = text.find(kName); at != text.npos && !found; at = text.find(kName, at + 1)) {
      std::string_view value = text.substr(at + kName.size());
      if (value.starts_with("=\""))
        value.remove_prefix(2);
      else if (value.starts_with(">"))
        value.remove_prefix(1);
      else
        continue;
      if (!value.empty() && value[0] >= '0' && value[0] <= '9') found = value[0] - '0';
    }
  }
  return found && *found >= 2 && *found <= 8 ? int(*found) : 1;
}

std::vector<uint8_t> read_palette(const Directory& directory, std::string_view name) {
  const auto map = directory.numbers(tag::colour_map);  // all reds, all greens, all blues
  if (map.empty()) fail_corrupt("TIFF", name, "it has no palette");
  if (map.size() / 3 > 256)
    fail_corrupt("TIFF", name, "expected at most 256 colours in its palette");
  std::vector<uint8_t> out(768);
  for (size_t i = 0, n = map.size() / 3; i < n; ++i)
    for (size_t c = 0; c < 3; ++c) {
      const int64_t value = map[c * n + i];
      if (value < 0 || value > 0xFFFF) fail_corrupt("TIFF", name, "its palette is broken");
      out[3 * i + c] = uint8_t(value / 256);
    }
  return out;
}

bool same_extra(const std::vector<int64_t>& extra, std::string_view known) {
  return std::equal(extra.begin(), extra.end(), known.begin(), known.end(),
                    [](int64_t a, char b) { return a == (b == 'c' ? 999 : b - '0'); });
}

// ------------------------------------------------------------------------------- rows to RGB

uint8_t clipped(int64_t value) { return uint8_t(std::clamp<int64_t>(value, 0, 255)); }

uint8_t reversed_bits(uint8_t byte) {
  byte = uint8_t((byte & 0xF0) >> 4 | (byte & 0x0F) << 4);
  byte = uint8_t((byte & 0xCC) >> 2 | (byte & 0x33) << 2);
  return uint8_t((byte & 0xAA) >> 1 | (byte & 0x55) << 1);
}

// A number of up to eight bits.
unsigned small_number(const Layout& layout, const uint8_t* row, size_t x) {
  const size_t bit = x * layout.samples * layout.bits;
  const uint8_t byte = layout.reversed ? reversed_bits(row[bit / 8]) : row[bit / 8];
  return byte >> (8 - layout.bits - bit % 8) & ((1u << layout.bits) - 1);
}

// Pillow has integers of 16 and 32 bits as they are, and cuts them off at 255.
uint8_t shade_of_integer(const Layout& layout, const uint8_t* row, size_t x) {
  if (layout.bits == 12) {
    const uint8_t* pair = row + x / 2 * 3;
    return clipped(x % 2 ? (pair[1] & 15) << 8 | pair[2] : pair[0] << 4 | pair[1] >> 4);
  }
  const size_t bytes = layout.bits / 8;
  uint32_t value = 0;
  for (size_t i = 0; i < bytes; ++i) {
    const uint8_t byte = row[x * bytes + (layout.big_endian ? bytes - 1 - i : i)];
    value |= uint32_t(layout.reversed ? reversed_bits(byte) : byte) << 8 * i;
  }
  if (bytes == 4) return clipped(int32_t(value));
  return clipped(layout.is_signed ? int16_t(value) : int64_t(value));
}

uint8_t shade_of_real(const Layout& layout, const uint8_t* row, size_t x) {
  uint8_t bytes[4];
  std::copy_n(row + 4 * x, 4, bytes);
  if (layout.big_endian) std::reverse(bytes, bytes + 4);
  float value;
  std::memcpy(&value, bytes, 4);
  return value >= 255 ? 255 : value > 0 ? uint8_t(value) : 0;
}

// The integer arithmetic of Pillow's tables.
void ycbcr_to_rgb(const uint8_t* ycbcr, uint8_t* rgb) {
  const auto part = [](double factor, unsigned value) {
    return int(factor * 64 * (int(value) - 128) + 0.5);
  };
  const int y = ycbcr[0];
  const unsigned cb = ycbcr[1], cr = ycbcr[2];
  rgb[0] = clipped(y + (part(1.402, cr) >> 6));
  rgb[1] = clipped(y + ((part(-0.34414, cb) + part(-0.71414, cr)) >> 6));
  rgb[2] = clipped(y + (part(1.772, cb) >> 6));
}

void colour(const Layout& layout, const uint8_t* samples, uint8_t* rgb) {
  switch (layout.kind) {
    case Kind::premultiplied:
      for (size_t c = 0; c < 3; ++c)
        rgb[c] = samples[3] ? clipped(samples[c] * 255 / samples[3]) : 0;
      return;
    case Kind::cmyk:
      for (size_t c = 0; c < 3; ++c) rgb[c] = with_ink(samples[c], 255u - samples[3]);
      return;
    case Kind::ycbcr:
      return ycbcr_to_rgb(samples, rgb);
    default:
      std::memcpy(rgb, samples, 3);
  }
}

void unpack(const Layout& layout, const std::vector<uint8_t>& palette, const uint8_t* row,
            size_t pixels, uint8_t* rgb) {
  const size_t bytes = layout.bits / 8;
  for (size_t x = 0; x < pixels; ++x, rgb += 3) {
    if (layout.kind == Kind::grey) {
      const unsigned shade = small_number(layout, row, x) * (255 / ((1u << layout.bits) - 1));
      std::memset(rgb, int(layout.inverted ? 255 - shade : shade), 3);
    } else if (layout.kind == Kind::palette) {
      std::memcpy(rgb, &palette[3 * small_number(layout, row, x)], 3);
    } else if (layout.kind == Kind::integer) {
      std::memset(rgb, shade_of_integer(layout, row, x), 3);
    } else if (layout.kind == Kind::real) {
      std::memset(rgb, shade_of_real(layout, row, x), 3);
    } else {  // of 16 bits the high byte
      uint8_t samples[4] = {};
      const uint8_t* in = row + x * layout.samples * bytes;
      for (size_t c = 0; c < std::min(layout.samples, 4u); ++c) {
        const uint8_t byte = in[c * bytes + (bytes == 2 && !layout.big_endian)];
        samples[c] = layout.reversed ? reversed_bits(byte) : byte;
      }
      colour(layout, samples, rgb);
    }
  }
}

}  // namespace

Facts read_facts(const Directory& directory, std::string_view name) {
  Facts facts;
  facts.compression = directory.number(tag::compression, 1);
  facts.planar = directory.number(tag::planes, 1) == 2;
  if (directory.count(tag::photometric) == 1)
    facts.photometric = directory.number(tag::photometric, 0);
  if (facts.compression == 6) facts.photometric = 6;  // JPEG as of 1992
  const int64_t fill = directory.number(tag::fill_order, 1);
  const auto width = directory.number(tag::width), height = directory.number(tag::height);
  if (!width || !height || *width < 0 || *height < 0)
    fail_corrupt("TIFF", name, "it does not say how large the picture is");
  facts.width = uint64_t(*width);
  facts.height = uint64_t(*height);
  auto formats = directory.numbers(tag::sample_format);
  if (formats.empty()) formats = {1};
  const bool one_format = std::ranges::count(formats, formats[0]) == ptrdiff_t(formats.size());
  const Samples samples = read_samples(directory, facts, name);
  const bool one_size =
      std::ranges::count(samples.bits, samples.bits.empty() ? 0 : samples.bits[0]) ==
      ptrdiff_t(samples.bits.size());
  const char order = directory.big_endian() ? 'M' : 'I';
  const auto known = std::ranges::find_if(kKnown, [&](const Known& k) {
    return std::strchr(k.orders, order) && k.photometric == facts.photometric &&
           k.format == formats[0] && (fill == 1 || fill == 2) && (k.fill & fill) &&
           k.samples == samples.bits.size() && int64_t(k.bits) == samples.bits[0] &&
           same_extra(samples.extra, k.extra);
  });
  if (known == std::end(kKnown) || !one_format || !one_size) {
    std::string bits;
    for (const int64_t b : samples.bits) bits += (bits.empty() ? "" : ", ") + std::to_string(b);
    fail_unknown("TIFF", name,
                 "pixels of the photometric interpretation " + std::to_string(facts.photometric) +
                     (facts.photometric == 8 ? " (CIE L*a*b*)" : "") + " with samples of " + bits +
                     " bits in the format " + std::to_string(formats[0]));
  }
  facts.bands = known->bands;
  facts.layout = {known->kind,       known->bits,
                  known->samples,    directory.big_endian(),
                  fill == 2,         known->kind == Kind::grey && facts.photometric == 0,
                  known->format == 2};
  if (known->kind == Kind::palette) facts.palette = read_palette(directory, name);
  facts.orientation = read_orientation(directory);
  return facts;
}

Canvas::Canvas(Image& image, const Facts& facts)
    : image_(image), layout_(facts.layout), palette_(facts.palette) {
  if (facts.planar && facts.bands > 1) planes_.resize(4 * image.width * image.height);
  // What no strip covers is what Pillow makes of zeros.
  Layout zero = layout_;
  zero.inverted = false;
  const uint8_t nothing[16] = {};
  uint8_t blank[3];
  unpack(zero, palette_, nothing, 1, blank);
  for (size_t i = 0; i < image.rgb.size(); i += 3) std::memcpy(&image.rgb[i], blank, 3);
}

void Canvas::put(size_t x, size_t y, size_t pixels, const uint8_t* row, unsigned plane) {
  const size_t at = y * image_.width + x;
  if (planes_.empty()) return unpack(layout_, palette_, row, pixels, &image_.rgb[3 * at]);
  const size_t bytes = layout_.bits / 8, high = bytes == 2 && !layout_.big_endian;
  for (size_t i = 0; i < pixels; ++i) planes_[4 * (at + i) + plane] = row[i * bytes + high];
}

void Canvas::finish() {
  if (planes_.empty()) return;
  const Layout joined{layout_.kind, 8, 4};
  for (size_t y = 0, width = image_.width; y < image_.height; ++y)
    unpack(joined, palette_, &planes_[4 * y * width], width, &image_.rgb[3 * y * width]);
}

}  // namespace fungi::codec::tiff
