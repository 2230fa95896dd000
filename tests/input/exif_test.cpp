// SPDX-License-Identifier: Apache-2.0
// Orientation among other tags, in both byte orders, and blocks that lie.
#include <gtest/gtest.h>

#include "fungi/input/codec.h"

namespace fungi::codec {
namespace {

struct Entry {
  unsigned tag, type, value;
};

// The first directory of a TIFF block, behind its head of 8 bytes.
std::vector<uint8_t> block(bool big, const std::vector<Entry>& entries) {
  std::vector<uint8_t> bytes;
  const auto put = [&](uint32_t value, unsigned size) {
    for (unsigned i = 0; i < size; ++i)
      bytes.push_back(uint8_t(value >> 8 * (big ? size - 1 - i : i)));
  };
  bytes.assign(2, big ? 'M' : 'I');
  put(42, 2), put(8, 4), put(uint32_t(entries.size()), 2);
  for (const Entry& e : entries)
    put(e.tag, 2), put(e.type, 2), put(1, 4), put(e.value, 2), put(0, 2);
  return bytes;
}

TEST(Exif, OrientationStandsAmongOtherTags) {
  for (const bool big : {false, true})
    for (unsigned turned = 1; turned <= 8; ++turned) {
      auto bytes =
          block(big, {{0x0100, 3, 5}, {0x010f, 2, 2}, {0x0112, 3, turned}, {0x0213, 3, 4}});
      EXPECT_EQ(exif_orientation(bytes), int(turned));
      const std::string_view name("Exif\0\0", 6);
      bytes.insert(bytes.begin(), name.begin(), name.end());
      EXPECT_EQ(exif_orientation(bytes), int(turned)) << "behind its name, as in a JPEG";
    }
}

TEST(Exif, WhatIsNoOrientationTurnsNothing) {
  for (const bool big : {false, true}) {
    EXPECT_EQ(exif_orientation(block(big, {})), 1);
    EXPECT_EQ(exif_orientation(block(big, {{0x0100, 3, 6}})), 1) << "another tag";
    EXPECT_EQ(exif_orientation(block(big, {{0x0112, 4, 6}})), 1) << "another type";
    for (const unsigned wrong : {0u, 9u, 0x106u})
      EXPECT_EQ(exif_orientation(block(big, {{0x0112, 3, wrong}})), 1) << wrong;
    EXPECT_EQ(exif_orientation(block(big, {{0x0112, 3, 9}, {0x0112, 3, 6}})), 1)
        << "the first one counts";
    const auto whole = block(big, {{0x0112, 3, 6}});
    for (size_t length = 0; length < whole.size() - 2; ++length)  // the last two are no part of it
      EXPECT_EQ(exif_orientation(std::span(whole).first(length)), 1) << length;
    EXPECT_EQ(exif_orientation(std::span(whole).first(whole.size() - 2)), 6);
    auto other = whole;
    other[big ? 3 : 2] = 43;
    EXPECT_EQ(exif_orientation(other), 1) << "no TIFF";
    other = whole;
    other[1] = 'x';
    EXPECT_EQ(exif_orientation(other), 1) << "no byte order";
  }
}

}  // namespace
}  // namespace fungi::codec
