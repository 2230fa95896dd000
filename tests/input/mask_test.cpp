// SPDX-License-Identifier: Apache-2.0
// Masks: numbers as Pillow reads them from every kind of PNG, colours as Pascal VOC has them, and
// what is no mask.
#include "fungi/input/mask.h"

#include <gtest/gtest.h>

#include "tests/input/pattern.h"
#include "tests/support/data.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

std::vector<uint8_t> golden_mask(const std::string& name) {
  return read_file_bytes(std::filesystem::path(FUNGI_GOLDEN_DIR) / "input/masks" / name);
}

nlohmann::json facts() { return testing::golden_json("input/masks/masks.json"); }

TEST(Mask, NumbersOfEveryDepthAsPillow) {
  const auto all = facts()["files"];
  ASSERT_EQ(all.size(), 7u);
  for (const auto& [name, rows] : all.items()) {
    SCOPED_TRACE(name);
    const Mask mask = decode_mask(golden_mask(name), name);
    ASSERT_EQ(mask.height, rows.size());
    ASSERT_EQ(mask.width, rows[0].size());
    std::vector<uint8_t> expected;
    for (const auto& row : rows)
      for (const auto& value : row) expected.push_back(value);
    EXPECT_EQ(mask.values, expected);
  }
}

TEST(Mask, ColoursOfPascalVoc) {
  const std::vector<uint8_t> palette = facts()["palette"];
  for (size_t number = 0; number < 256; ++number) {
    const auto colour = class_colour(uint8_t(number));
    for (size_t c = 0; c < 3; ++c) EXPECT_EQ(colour[c], palette[3 * number + c]) << number;
  }
}

TEST(Mask, WrittenMasksAreReadAgainAndHaveTheirColours) {
  Mask mask{19, 16, {}};
  for (size_t p = 0; p < 19 * 16; ++p) mask.values.push_back(uint8_t(p));
  const std::vector<uint8_t> bytes = encode_mask(mask);
  EXPECT_EQ(bytes[25], 3) << "a palette";
  const Mask again = decode_mask(bytes, "again");
  EXPECT_EQ(again.width, 19u);
  EXPECT_EQ(again.values, mask.values);
  const Image seen = decode_image(bytes, "seen");
  for (size_t p = 0; p < mask.values.size(); ++p)
    for (size_t c = 0; c < 3; ++c)
      EXPECT_EQ(seen.rgb[3 * p + c], class_colour(mask.values[p])[c]) << p;
  const test::TemporaryFolder root;
  write_mask(root / "m.png", mask);
  EXPECT_EQ(read_mask(root / "m.png").values, mask.values);
  EXPECT_ERROR("expected width x height values", encode_mask({2, 2, {1, 2, 3}}));
  EXPECT_ERROR("expected width x height values", encode_mask({}));
}

TEST(Mask, WhatIsNoMaskIsSaid) {
  const auto read = [](const std::string& name) { decode_mask(golden_mask(name), name); };
  EXPECT_ERROR("found colours", read("colours.png"));
  EXPECT_ERROR("found grey with alpha", read("grey_alpha.png"));
  EXPECT_ERROR("class 300 at (6, 4)", read("many16.png"));
  EXPECT_ERROR("found a picture in another format", read("mask.jpg"));
  EXPECT_ERROR("0 bytes", decode_mask({}, "empty"));
  EXPECT_ERROR("", decode_mask(std::vector<uint8_t>{'h', 'e', 'l', 'l', 'o'}, "text"));
  EXPECT_ERROR("No such file", read_mask("/nowhere/m.png"));
}

TEST(Mask, CutAndBrokenFilesAreErrorsAndNothingElse) {
  for (const std::string name : {"palette4.png", "grey8.png", "grey16.png"}) {
    const std::vector<uint8_t> whole = golden_mask(name);
    size_t refused = 0;
    for (size_t length = 0; length < whole.size(); ++length)
      refused += test::error_of([&] { decode_mask(std::span(whole).first(length), name); }) != "";
    // Pillow reads a picture where all that is cut are sums and the last chunk.
    EXPECT_GE(refused, whole.size() - 24) << name;
    for (size_t at = 0; at < whole.size(); ++at)
      for (const uint8_t flip : {0x01, 0x80, 0xff}) {
        std::vector<uint8_t> broken = whole;
        broken[at] ^= flip;
        test::error_of([&] {
          const Mask mask = decode_mask(broken, name);
          EXPECT_EQ(mask.values.size(), mask.width * mask.height);
        });
      }
  }
}

TEST(Mask, NearestPixelsOfAPart) {
  const Mask mask{4, 3, {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23}};
  EXPECT_EQ(resize_mask(mask, 2, 3).values, (std::vector<uint8_t>{0, 2, 10, 12, 20, 22}));
  EXPECT_EQ(resize_mask(mask, {1, 1, 3, 2}, 3, 2).values,
            (std::vector<uint8_t>{11, 12, 13, 21, 22, 23}));
  EXPECT_EQ(resize_mask(mask, {1, 1, 2, 1}, 4, 1).values, (std::vector<uint8_t>{11, 11, 12, 12}));
  EXPECT_ERROR("does not lie in the mask", resize_mask(mask, {2, 0, 3, 3}, 4, 4));
  EXPECT_ERROR("does not lie in the mask", resize_mask(mask, {0, 0, 0, 3}, 4, 4));
}

TEST(Mask, OfPascalVocInFull) {
  const auto folder = test::data_folder() / "segmentation/voc2012-subset/train/masks";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << test::missing_data(folder);
  size_t masks = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const Mask mask = read_mask(entry.path());
    for (const uint8_t value : mask.values) ASSERT_TRUE(value <= 20 || value == 255) << entry;
    ++masks;
  }
  EXPECT_EQ(masks, 40u);
}

}  // namespace
}  // namespace fungi
