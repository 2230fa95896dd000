// SPDX-License-Identifier: Apache-2.0
// The one EXIF tag that matters here: orientation (0x0112 of the first TIFF directory).
#include <cstring>

#include "fungi/input/codec.h"

namespace fungi::codec {
namespace {

class Tiff {  // bounds-checked reader in the block's own byte order
 public:
  Tiff(std::span<const uint8_t> bytes, bool big_endian) : bytes_(bytes), big_(big_endian) {}

  // The unsigned integer of `size` bytes at `offset`; false when it lies outside.
  bool read(uint64_t offset, unsigned size, uint32_t& value) const {
    if (offset + size > bytes_.size()) return false;
    value = 0;
    for (unsigned i = 0; i < size; ++i)
      value |= uint32_t(bytes_[offset + i]) << 8 * (big_ ? size - 1 - i : i);
    return true;
  }

 private:
  std::span<const uint8_t> bytes_;
  bool big_;
};

}  // namespace

int exif_orientation(std::span<const uint8_t> block) {
  if (block.size() >= 6 && std::memcmp(block.data(), "Exif\0\0", 6) == 0) block = block.subspan(6);
  if (block.size() < 8) return 1;
  const bool big = block[0] == 'M' && block[1] == 'M';
  if (!big && !(block[0] == 'I' && block[1] == 'I')) return 1;
  const Tiff tiff(block, big);
  uint32_t magic = 0, directory = 0, entries = 0;
  if (!tiff.read(2, 2, magic) || magic != 42 || !tiff.read(4, 4, directory) ||
      !tiff.read(directory, 2, entries))
    return 1;
  for (uint32_t i = 0; i < entries; ++i) {
    const uint64_t entry = uint64_t(directory) + 2 + 12ull * i;
    uint32_t tag = 0, type = 0, value = 0;
    if (!tiff.read(entry, 2, tag) || !tiff.read(entry + 2, 2, type)) return 1;
    if (tag != 0x0112) continue;
    constexpr uint32_t kShort = 3;
    if (type == kShort && tiff.read(entry + 8, 2, value) && value >= 1 && value <= 8)
      return int(value);
    return 1;
  }
  return 1;
}

}  // namespace fungi::codec
