// SPDX-License-Identifier: Apache-2.0
// Views written one after the other are the batch that a backbone gets.
#include "fungi/base/inputs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/errors.h"

namespace fungi {
namespace {

TEST(InputBuffer, KeepsPicturesWhileItGrows) {
  InputBuffer buffer;
  for (int round = 0; round < 2; ++round) {  // the second time in the memory of the first
    buffer.clear();
    EXPECT_EQ(buffer.inputs().count(), 0u);
    for (size_t i = 0; i < 5; ++i) {
      const std::span<float> room = buffer.add_pixels(7);
      ASSERT_EQ(room.size(), 7u);
      std::fill(room.begin(), room.end(), float(i + size_t(round)));
    }
    const Inputs inputs = buffer.inputs();
    ASSERT_EQ(inputs.count(), 5u);
    ASSERT_EQ(inputs.pixels.cols, 7u);
    for (size_t i = 0; i < 5; ++i)
      for (size_t j = 0; j < 7; ++j) EXPECT_EQ(inputs.pixels(i, j), float(i + size_t(round)));
  }
}

TEST(InputBuffer, KeepsHowManyFramesHoldSound) {
  InputBuffer buffer;
  buffer.add_pixels(6, 2);
  buffer.clear();
  buffer.add_pixels(6);
  buffer.add_pixels(6, 3);
  const Inputs inputs = buffer.inputs();
  ASSERT_EQ(inputs.frames.size(), 2u);
  EXPECT_EQ(inputs.frames[0], 0u);  // all of them
  EXPECT_EQ(inputs.frames[1], 3u);
}

TEST(InputBuffer, KeepsTextsOfAnyLength) {
  InputBuffer buffer;
  for (int32_t length : {3, 0, 2}) {
    const std::span<int32_t> ids = buffer.add_ids(size_t(length));
    std::fill(ids.begin(), ids.end(), length);
  }
  const Inputs inputs = buffer.inputs();
  ASSERT_EQ(inputs.count(), 3u);
  EXPECT_EQ(inputs.texts[0].ids.size(), 3u);
  EXPECT_EQ(inputs.texts[1].ids.size(), 0u);
  ASSERT_EQ(inputs.texts[2].ids.size(), 2u);
  EXPECT_EQ(inputs.texts[0].ids[2], 3);
  EXPECT_EQ(inputs.texts[2].ids[0], 2);
  EXPECT_TRUE(inputs.texts[0].mask.empty());
}

TEST(InputBuffer, KeepsEmbeddedTokens) {
  InputBuffer buffer;
  for (size_t tokens : {2, 5}) {
    const View<float> rows = buffer.add_embedded(tokens, 3);
    for (size_t i = 0; i < tokens * 3; ++i) rows.data[i] = float(tokens * 100 + i);
  }
  const Inputs inputs = buffer.inputs();
  ASSERT_EQ(inputs.count(), 2u);
  EXPECT_EQ(inputs.embedded[0].rows, 2u);
  EXPECT_EQ(inputs.embedded[0](1, 2), 205);
  EXPECT_EQ(inputs.embedded[1].rows, 5u);
  EXPECT_EQ(inputs.embedded[1](4, 2), 514);
}

TEST(InputBuffer, ABatchIsOfOneSort) {
  InputBuffer buffer;
  buffer.add_pixels(4);
  EXPECT_ERROR("not of one sort", buffer.add_pixels(5));
  EXPECT_ERROR("not of one sort", buffer.add_ids(4));
  EXPECT_ERROR("not of one sort", buffer.add_embedded(2, 2));
  buffer.clear();
  buffer.add_ids(1);
  buffer.add_ids(9);
  EXPECT_ERROR("not of one sort", buffer.add_pixels(4));
}

}  // namespace
}  // namespace fungi
