// SPDX-License-Identifier: Apache-2.0
// A data set of pictures in memory: what it gives, and what it refuses.
#include <gtest/gtest.h>

#include "fungi/input/dataset.h"
#include "tests/support/errors.h"

namespace fungi {
namespace {

Image picture(size_t width, size_t height, uint8_t value = 1) {
  return {width, height, std::vector<uint8_t>(width * height * 3, value)};
}

TEST(MemoryDataset, GivesThePicturesBack) {
  const auto data =
      memory_dataset({"a", "b"}, {picture(3, 2, 7), picture(1, 4)}, {1, -1}, {"ant", "bee"});
  ASSERT_EQ(data->size(), 2u);
  EXPECT_EQ(data->id(1), "b");
  EXPECT_EQ(data->label(0), 1);
  EXPECT_EQ(data->label(1), -1);
  EXPECT_EQ(data->class_names()[1], "bee");
  EXPECT_EQ(data->image(0).width, 3u);
  EXPECT_EQ(data->image(0).rgb, std::vector<uint8_t>(18, 7));
  EXPECT_EQ(memory_dataset({"a"}, {picture(3, 2)})->label(0), -1);
  EXPECT_EQ(memory_dataset({"a"}, {picture(3, 2)}, {5})->label(0), 5) << "a bare number";
}

TEST(MemoryDataset, RefusesWhatDoesNotFit) {
  EXPECT_ERROR("expected pictures, found none", memory_dataset({}, std::vector<Image>()));
  EXPECT_ERROR("each of 1 pictures, found 2 and 2", memory_dataset({"a", "b"}, {picture(3, 2)}));
  EXPECT_ERROR("each of 1 pictures, found 1 and 2", memory_dataset({"a"}, {picture(3, 2)}, {0, 1}));
  EXPECT_ERROR("'a' occurs twice", memory_dataset({"a", "a"}, {picture(3, 2), picture(3, 2)}));
  EXPECT_ERROR("a: the label 1 has no class",
               memory_dataset({"a"}, {picture(3, 2)}, {1}, {"only"}));
  EXPECT_ERROR("the label -2 has no class", memory_dataset({"a"}, {picture(3, 2)}, {-2}));
  const size_t half = size_t(1) << 32;
  for (const auto& [width, height, bytes] : {std::array<size_t, 3>{3, 2, 17},
                                             {3, 2, 19},
                                             {3, 2, 21},
                                             {2, 3, 6},
                                             {0, 0, 0},
                                             {0, 5, 0},
                                             {5, 0, 0},
                                             {half, half, 0},
                                             {3, (SIZE_MAX / 9) + 1, 3}}) {
    const Image image{width, height, std::vector<uint8_t>(bytes)};
    EXPECT_ERROR("expected width x height x 3 bytes", memory_dataset({"a"}, {image}));
  }
}

}  // namespace
}  // namespace fungi
