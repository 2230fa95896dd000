// SPDX-License-Identifier: Apache-2.0
// File names of any bytes in JSON; the characters are those that Python's surrogateescape gives.
#include "fungi/store/text.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/folder.h"

namespace fungi::store {
namespace {

struct Name {
  std::string bytes;
  std::u32string characters;
};

const std::vector<Name>& names() {
  const auto lone = [](std::initializer_list<unsigned> bytes) {
    std::u32string text;
    for (const unsigned byte : bytes) text += char32_t(0xdc00 + byte);
    return text;
  };
  static const std::vector<Name> all = {
      {"plain", U"plain"},
      {"\xc3\xa9\x7f", U"\u00e9\u007f"},
      {"\xc2\x80\xdf\xbf", U"\u0080\u07ff"},
      {"\xe0\xa0\x80", U"\u0800"},
      {"\xed\x9f\xbf", U"\ud7ff"},
      {"\xee\x80\x80", U"\ue000"},
      {"\xef\xbf\xbf", U"\uffff"},
      {"\xf0\x90\x80\x80", U"\U00010000"},
      {"\xf0\x9f\x93\xa9", U"\U0001f4e9"},
      {"\xf4\x8f\xbf\xbf", U"\U0010ffff"},
      {"\x80", lone({0x80})},
      {"\xc1\xbf", lone({0xc1, 0xbf})},
      {"\xe0\x9f\xbf", lone({0xe0, 0x9f, 0xbf})},
      {"\xed\xa0\x80", lone({0xed, 0xa0, 0x80})},
      {"\xf0\x8f\xbf\xbf", lone({0xf0, 0x8f, 0xbf, 0xbf})},
      {"\xf4\x90\x80\x80", lone({0xf4, 0x90, 0x80, 0x80})},
      {"\xf5\x80\x80\x80", lone({0xf5, 0x80, 0x80, 0x80})},
      {"\xc2", lone({0xc2})},
      {"\xe2\x82", lone({0xe2, 0x82})},
      {"\xf0\x9f\x93", lone({0xf0, 0x9f, 0x93})},
      {"\xe2\x82z", lone({0xe2, 0x82}) + U"z"},
      {"\xf0\x9f\x93z", lone({0xf0, 0x9f, 0x93}) + U"z"},
      {"\xc2\xc3\xa9", lone({0xc2}) + U"\u00e9"},
  };
  return all;
}

TEST(StoreText, CharactersAreThoseOfPython) {
  for (const Name& name : names())
    EXPECT_TRUE(to_code_points(name.bytes) == name.characters)
        << testing::PrintToString(name.bytes);
}

TEST(StoreText, EveryNameComesBack) {
  for (const Name& name : names()) {
    const std::string text = dump(Json(to_json_string(name.bytes)));
    EXPECT_EQ(from_json_string(parse(text, "x").get<std::string>()), name.bytes) << text;
  }
  for (const std::string& odd :
       {std::string("a\0b", 3), std::string("\0", 1), std::string("\0c3", 3),
        std::string("\\udce9"), std::string("\\\xe9")}) {
    const std::string text = dump(Json(to_json_string(odd)));
    EXPECT_EQ(from_json_string(parse(text, "x").get<std::string>()), odd) << text;
  }
}

TEST(StoreText, ARawByteIsWrittenAsPythonWritesIt) {
  EXPECT_EQ(dump(Json(to_json_string("\xe9/\xc3\xa9"))), "\"\\udce9/\xc3\xa9\"");
  const auto read = [](const char* text) {
    return from_json_string(parse(text, "x").get<std::string>());
  };
  EXPECT_EQ(read("\"a\\udce9b\""),
            "a\xe9"
            "b");
  EXPECT_EQ(read("\"a\\\\udce9\""), "a\\udce9") << "an escaped backslash";
  EXPECT_EQ(read("\"\\ud83d\\udce9 \\udc80\""), "\xf0\x9f\x93\xa9 \x80") << "a pair, then a byte";
  EXPECT_EQ(read("\"\\udce9\\n\\udcE9\""), "\xe9\n\xe9");
}

TEST(StoreText, WhatIsNoObjectIsRefused) {
  EXPECT_EQ(parse_object("{\"a\": 1}", "f")["a"], 1);
  EXPECT_ERROR("f: expected a JSON object, found [1]", parse_object("[1]", "f"));
  EXPECT_ERROR("place: expected JSON", parse("{", "place"));
  const test::TemporaryFolder folder;
  EXPECT_EQ(read_text(folder.write("a", std::string(100'000, 'x'))), std::string(100'000, 'x'));
  EXPECT_ERROR("cannot be read: No such file", read_text(folder / "none"));
}

}  // namespace
}  // namespace fungi::store
