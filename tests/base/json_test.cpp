// SPDX-License-Identifier: Apache-2.0
#include "fungi/base/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace fungi {
namespace {

std::string nested(size_t depth, const std::string& inside = "1") {
  return std::string(depth, '[') + inside + std::string(depth, ']');
}

TEST(Json, IsParsedOrDiscarded) {
  EXPECT_EQ(parse_json("{\"a\": [1, {\"b\": null}]}")["a"][0], 1);
  EXPECT_TRUE(parse_json("{\"a\": ").is_discarded());
  EXPECT_TRUE(parse_json("").is_discarded());
}

// Printing or copying a million levels would overflow the stack.
TEST(Json, DepthIsBounded) {
  EXPECT_FALSE(parse_json(nested(64)).is_discarded());
  EXPECT_TRUE(parse_json(nested(65)).is_discarded());
  EXPECT_TRUE(parse_json(nested(1000000)).is_discarded());
  EXPECT_TRUE(parse_json(std::string(1000000, '{')).is_discarded());
}

TEST(Json, BracketsInTextAreNoDepth) {
  const std::string text = "\"" + std::string(1000, '[') + "\\\"" + std::string(1000, '{') + "\"";
  EXPECT_EQ(parse_json(text).get<std::string>().size(), 2001u);
  EXPECT_FALSE(parse_json("[" + text + ", [1], [2]]").is_discarded());
  std::string list = "[";
  for (size_t i = 0; i < 1000; ++i) list += "[],";
  EXPECT_EQ(parse_json(list + "[]]").size(), 1001u) << "beside each other is not inside";
}

}  // namespace
}  // namespace fungi
