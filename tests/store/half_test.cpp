// SPDX-License-Identifier: Apache-2.0
// float16: every half comes back from its float, and every boundary between two halves rounds to
// nearest, ties to even.
#include "fungi/store/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

float to_float(uint16_t half) {
  float value = 0;
  to_floats(DType::f16, reinterpret_cast<const std::byte*>(&half), 1, &value);
  return value;
}

TEST(StoreHalf, EveryHalfComesBack) {
  for (unsigned bits = 0; bits < 0x10000u; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = to_float(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(to_float(half_from_float(value))));
    } else {
      ASSERT_EQ(half_from_float(value), half) << value;
    }
  }
}

TEST(StoreHalf, TiesGoToEven) {
  for (unsigned bits = 0; bits < 0x7BFFu; ++bits) {
    const float low = to_float(uint16_t(bits)), high = to_float(uint16_t(bits + 1));
    const float middle = (low + high) / 2;  // exact: one bit more
    const unsigned even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(half_from_float(middle), even);
    ASSERT_EQ(half_from_float(std::nextafter(middle, 0.0f)), bits);
    ASSERT_EQ(half_from_float(std::nextafter(middle, 1e9f)), bits + 1);
    ASSERT_EQ(half_from_float(-middle), even | 0x8000u);
  }
}

TEST(StoreHalf, OverflowIsInfinityAndTinyIsZero) {
  EXPECT_EQ(half_from_float(65519.996f), 0x7BFFu);
  EXPECT_EQ(half_from_float(65520.0f), 0x7C00u);
  EXPECT_EQ(half_from_float(-1e30f), 0xFC00u);
  EXPECT_EQ(half_from_float(std::numeric_limits<float>::infinity()), 0x7C00u);
  EXPECT_EQ(half_from_float(0x1p-26f), 0u);
  EXPECT_EQ(half_from_float(-std::numeric_limits<float>::denorm_min()), 0x8000u);
}

}  // namespace
}  // namespace fungi
