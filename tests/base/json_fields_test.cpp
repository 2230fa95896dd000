// SPDX-License-Identifier: Apache-2.0
// Fields of JSON that a stranger may have written.
#include "fungi/base/json_fields.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/errors.h"

namespace fungi {
namespace {

using nlohmann::json;

TEST(JsonFields, AreReadIntoWhatHoldsThem) {
  const json object = {{"flag", true}, {"count", 7u},          {"half", 0.5},
                       {"text", "a"},  {"mean", {0.1, 2, -3}}, {"inner", {{"size", 3u}}}};
  JsonFields fields(object, "", "file");
  bool flag = false;
  unsigned count = 0;
  size_t same = 0;
  unsigned long long longest = 0;
  float half = 0;
  double number = 0;
  std::string text;
  std::array<float, 3> mean{};
  fields.read("flag", flag), fields.read("count", count), fields.read("count", same);
  fields.read("count", longest);
  fields.read("half", half), fields.read("count", number), fields.read("text", text);
  fields.read("mean", mean);
  EXPECT_TRUE(flag);
  EXPECT_EQ(count, 7u);
  EXPECT_EQ(same, 7u);
  EXPECT_EQ(longest, 7u);
  EXPECT_EQ(half, 0.5f);
  EXPECT_EQ(number, 7);
  EXPECT_EQ(text, "a");
  EXPECT_EQ(mean, (std::array<float, 3>{0.1f, 2, -3}));
  EXPECT_ERROR("the field 'inner' is none that this version knows", fields.require_all_read());
  JsonFields inner = fields.inside("inner");
  EXPECT_NO_THROW(fields.require_all_read());
  EXPECT_ERROR("the field 'inner.size' is none", inner.require_all_read());
  inner.read("size", count);
  EXPECT_EQ(count, 3u);
  EXPECT_NO_THROW(inner.require_all_read());
}

TEST(JsonFields, AreInAnObject) {
  EXPECT_ERROR("file: expected a JSON object, found [1]", JsonFields(json{1}, "", "file"));
  EXPECT_ERROR("found \"\\u00e4\"", JsonFields(json("\u00e4"), "", "file"));
  EXPECT_ERROR("expected a JSON object as 'views.plan', found 3",
               JsonFields(json(3), "views.plan", "file"));
}

TEST(JsonFields, AreOfTheirType) {
  const json object = {{"text", "a"},          {"negative", -1},      {"large", uint64_t{1} << 32},
                       {"half", 0.5},          {"huge", 1e39},        {"two", {1, 2}},
                       {"mixed", {1, 2, "3"}}, {"wide", {1, 2, 1e39}}};
  JsonFields fields(object, "at", "file");
  bool flag = false;
  unsigned count = 0;
  size_t wide = 0;
  float number = 0;
  double exact = 0;
  std::string text;
  std::array<float, 3> mean{};
  EXPECT_ERROR("file: the field 'at.none' is missing", fields.read("none", flag));
  EXPECT_ERROR("the field 'at.text' holds \"a\", which is not true or false",
               fields.read("text", flag));
  for (const char* name : {"text", "negative", "half", "large"})
    EXPECT_ERROR("a whole number from 0 on", fields.read(name, count));
  fields.read("large", wide);
  EXPECT_EQ(wide, uint64_t{1} << 32);
  for (const char* name : {"text", "huge"}) EXPECT_ERROR("a number", fields.read(name, number));
  fields.read("huge", exact);
  EXPECT_EQ(exact, 1e39);
  EXPECT_ERROR("a number", fields.read("text", exact));
  EXPECT_ERROR("which is not text", fields.read("half", text));
  for (const char* name : {"text", "two", "mixed", "wide"})
    EXPECT_ERROR("a list of three numbers", fields.read(name, mean));
  EXPECT_EQ(fields.names().size(), object.size());
  size_t choice = 0;
  const auto word_of = [](size_t value) { return value == 1 ? "a" : "b"; };
  fields.read_word("text", choice, {size_t{2}, size_t{1}}, word_of);
  EXPECT_EQ(choice, 1u);
  EXPECT_ERROR("which is not one of b, b",
               fields.read_word("text", choice, {size_t{2}, size_t{3}}, word_of));
}

}  // namespace
}  // namespace fungi
