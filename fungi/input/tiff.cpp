// SPDX-License-Identifier: Apache-2.0
// TIFF, its first picture. The directory is read here, as Pillow reads it, and so are uncompressed
// pixels; libtiff decompresses the others. Pillow turns a TIFF as its tag of orientation says even
// where it leaves other pictures as they lie, and so does this.
#include "fungi/input/tiff.h"

#include <algorithm>
#include <string>

#include "fungi/base/error.h"

namespace fungi::codec {
namespace {

using namespace tiff;

struct Tile {
  uint64_t x0, y0, x1, y1;
  int64_t offset;
  uint64_t stride;  // bytes from row to row; 0: as many as the row needs
  unsigned plane;
  bool same_place(const Tile& o) const {
    return x0 == o.x0 && y0 == o.y0 && x1 == o.x1 && y1 == o.y1 && stride == o.stride &&
           plane == o.plane;
  }
};

// Where strips or tiles go: row by row over the picture and, of separate planes, plane by plane.
std::vector<Tile> lay_out(const Directory& directory, const Facts& facts, std::string_view name) {
  std::vector<int64_t> offsets = directory.numbers(tag::strip_offsets);
  uint64_t w = facts.width, h = 0;
  if (!offsets.empty()) {
    h = uint64_t(directory.number(tag::rows_per_strip, int64_t(facts.height)));
  } else {
    offsets = directory.numbers(tag::tile_offsets);
    w = uint64_t(directory.number(tag::tile_width, 0));
    h = uint64_t(directory.number(tag::tile_height, 0));
  }
  constexpr uint64_t kLargest = uint64_t(1) << 32;
  if (offsets.empty() || w == 0 || h == 0 || w > kLargest || h > kLargest)
    fail_corrupt("TIFF", name, "it does not say where its pixels are");
  const unsigned planes = facts.planar ? facts.bands : 1;
  if (w == facts.width && h == facts.height && !facts.planar)
    offsets.erase(offsets.begin(), offsets.end() - 1);  // they would cover each other
  const uint64_t across = (facts.width + w - 1) / w, down = (facts.height + h - 1) / h;
  const uint64_t most = across * down * planes;
  if (offsets.size() > most && (planes > 1 || offsets.size() > 16 * most))
    fail_corrupt("TIFF", name,
                 "expected at most " + std::to_string(most) + " strips or tiles, found " +
                     std::to_string(offsets.size()));
  const uint64_t bits = facts.layout.bits * facts.layout.samples;
  std::vector<Tile> tiles;
  for (size_t i = 0; i < offsets.size(); ++i) {
    const uint64_t x = i % across * w, y = i / across % down * h;
    const uint64_t stride = x + w > facts.width ? w * bits / 8 / planes : 0;
    tiles.push_back({x, y, std::min(x + w, facts.width), std::min(y + h, facts.height), offsets[i],
                     stride, unsigned(i / (across * down)) % planes});
  }
  // In the order of the file; of neighbours for the same place the last counts.
  std::ranges::stable_sort(tiles, {}, &Tile::offset);
  std::vector<Tile> kept;
  for (const Tile& tile : tiles) {
    if (!kept.empty() && kept.back().same_place(tile)) kept.pop_back();
    kept.push_back(tile);
  }
  return kept;
}

// What Pillow refuses, or reads as noise.
void check_uncompressed(const Facts& facts, std::string_view name) {
  const Layout& l = facts.layout;
  const bool unknown =
      l.reversed && ((l.kind == Kind::palette && l.bits < 8) || (l.inverted && l.bits == 8));
  const bool noise = facts.planar && (l.bits != 8 || l.inverted || l.reversed || l.samples == 2 ||
                                      l.kind == Kind::premultiplied || l.kind == Kind::ycbcr);
  if (unknown) fail_unknown("TIFF", name, "uncompressed pixels whose bits are reversed");
  if (noise)
    fail_unknown("TIFF", name, "uncompressed planes of samples other than 8 bits, or of this kind");
}

void decode_uncompressed(Bytes file, std::string_view name, const Directory& directory,
                         const Facts& facts, Image& image, const DecodeOptions& options) {
  check_uncompressed(facts, name);
  const auto tiles = lay_out(directory, facts, name);
  Canvas canvas(image, facts);
  Layout row = facts.layout;
  if (facts.planar) row.samples = 1;
  for (const Tile& tile : tiles) {
    const size_t pixels = tile.x1 - tile.x0, bytes = row.row_bytes(pixels);
    if (tile.stride && tile.stride < bytes) {  // Pillow minds that of the last one only
      if (&tile != &tiles.back() || options.allow_truncated) continue;
      fail_corrupt("TIFF", name, "the rows of its tiles are shorter than their pixels");
    }
    const size_t stride = std::max<uint64_t>(tile.stride, bytes);
    for (size_t y = tile.y0; y < tile.y1; ++y) {
      const size_t behind = (y - tile.y0) * stride + bytes;
      if (tile.offset < 0 || uint64_t(tile.offset) > file.size() ||
          file.size() - size_t(tile.offset) < behind) {
        if (options.allow_truncated) break;
        fail_truncated("TIFF", name,
                       "the " + std::to_string(file.size()) + " bytes end in row " +
                           std::to_string(y) + " of " + std::to_string(image.height),
                       true);
      }
      canvas.put(tile.x0, y, pixels, file.data() + tile.offset + behind - bytes, tile.plane);
    }
  }
  canvas.finish();
}

}  // namespace

Decoded decode_tiff(Bytes file, std::string_view name, const DecodeOptions& options) {
  if (file.size() < 8) fail_truncated("TIFF", name, "its bytes end within the header");
  const Directory directory(file, name);
  const Facts facts = read_facts(directory, name);
  Decoded out{allocate(facts.width, facts.height, name, options), facts.orientation};
  if (facts.compression == 1)
    decode_uncompressed(file, name, directory, facts, out.image, options);
  else
    decode_compressed(file, name, directory, facts, out.image, options);
  return out;
}

}  // namespace fungi::codec
