// SPDX-License-Identifier: Apache-2.0
// Lists whose cells are texts: what Python's csv and json modules read, and what is refused.
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "tests/input/pattern.h"
#include "tests/input/text_rows.h"
#include "tests/support/data.h"

namespace fungi {
namespace {

using namespace testing;
using test::TemporaryFolder;

TEST(TextList, ReadsWhatPythonReads) {
  const TemporaryFolder root;
  size_t rows = 0;
  for (const auto& c : golden_json("input/texts.json")) {
    const std::string name = c["name"];
    SCOPED_TRACE(name);
    TextRows expected;
    for (const auto& row : c["rows"])
      expected.push_back({std::to_string(row[0].get<int>()), row[2], row[1]});
    const auto data = open_texts(root.write(name, c["content"].get<std::string>()));
    EXPECT_EQ(text_rows(*data), expected);
    EXPECT_EQ(data->kind(), DatasetKind::list);
    EXPECT_EQ(data->samples(), SampleKind::text);
    rows += expected.size();
  }
  EXPECT_GT(rows, 400u);
}

// Lines as they are usually published: a label, a tab, and a text with quotes wherever it has some.
TEST(TextList, RealSetsAreReadToTheByte) {
  const auto folder = test::data_folder() / "text";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << test::missing_data(folder);
  size_t rows = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".tsv") continue;
    SCOPED_TRACE(entry.path());
    const auto data = open_texts(entry.path());
    std::ifstream file(entry.path());
    std::string line;
    size_t i = 0, others = 0;
    for (; std::getline(file, line); ++i) {
      const std::string label = line.substr(0, line.find('\t'));
      const int number = data->label(i);
      others += data->id(i) != std::to_string(i + 1) ||
                text_of(*data, i) != line.substr(label.size() + 1) ||
                label != (data->class_names().empty() ? std::to_string(number)
                                                      : data->class_names()[size_t(number)]);
    }
    EXPECT_EQ(i, data->size());
    EXPECT_EQ(others, 0u);
    rows += i;
  }
  EXPECT_GT(rows, 100000u);
}

// Pieces of a file are 1 MiB: rows, quotes and pairs of line ends lie across their borders.
TEST(TextList, RowsMayLieAnywhereInALargeFile) {
  constexpr size_t kPiece = size_t(1) << 20;
  for (const char* end : {"\n", "\r\n", "\r"})
    for (size_t shift = 0; shift < 4; ++shift) {
      SCOPED_TRACE(shift);
      const std::string first(kPiece - 8 - shift, 'x'), long_one(3 * kPiece, 'y');
      const std::string csv = "text" + std::string(end) + first + end + "\"a\"\"b\"" + end + "\"c" +
                              end + "d\"" + end + long_one + end + "last" + end;
      EXPECT_EQ(rows_of_text("l.csv", csv), (TextRows{{"2", "", first},
                                                      {"3", "", "a\"b"},
                                                      {"4", "", std::string("c") + end + "d"},
                                                      {"6", "", long_one},
                                                      {"7", "", "last"}}));
    }
}

TEST(TextList, AddedLinesChangeNoFormerRow) {
  const TemporaryFolder root;
  const std::string first = "label,text\r\na,one\r\n\r\nb,\"two\r\nlines\"\r\n";
  const auto before = open_texts(root.write("l.csv", first));
  const auto after = open_texts(root.write("m.csv", first + "a,three\r\nc,four"));
  ASSERT_EQ(before->size(), 2u);
  ASSERT_EQ(after->size(), 4u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(before->id(i), after->id(i));
    EXPECT_EQ(before->key(i), after->key(i));
  }
  EXPECT_EQ(after->id(1), "4");
  EXPECT_EQ(after->id(2), "6");
}

TEST(TextList, KeysFollowTheTextAlone) {
  const TemporaryFolder root;
  const auto keys = [&](const char* name, const char* content) {
    const auto data = open_texts(root.write(name, content));
    std::vector<std::string> out;
    for (size_t i = 0; i < data->size(); ++i) out.push_back(data->key(i));
    return out;
  };
  const auto plain = keys("a.csv", "text,label\nred,x\nblue,y\n");
  EXPECT_EQ(plain,
            keys("b.jsonl", "{\"label\": \"z\", \"text\": \"red\"}\n{\"text\": \"blue\"}\n"));
  EXPECT_EQ(plain, keys("c.csv", "id,text\n7,\"red\"\n8,blue\n"));
  EXPECT_NE(plain[0], keys("d.csv", "text,label\nrad,x\nblue,y\n")[0]);
  EXPECT_EQ(plain[0], memory_dataset({"q"}, std::vector<Text>{{"red"}})->key(0));
}

TEST(TextList, IdsMayBeAColumn) {
  const DatasetOptions by_id{.id_column = "ID"};
  EXPECT_EQ(rows_of_text("l.csv", "id,text,label\n q7 ,one,a\nq3,two,b\n", by_id),
            (TextRows{{"q7", "a", "one"}, {"q3", "b", "two"}}));
  EXPECT_EQ(rows_of_text("l.jsonl",
                         "{\"id\": 7, \"text\": \"one\"}\n{\"id\": \"x\", \"text\": \"\"}", by_id),
            (TextRows{{"7", "", "one"}, {"x", "", ""}}));
  EXPECT_EQ(rows_of_text("l.tsv", "a b c\tx\t9\nd e f\ty\t8\n", {.id_column = "3"}),
            (TextRows{{"9", "x", "a b c"}, {"8", "y", "d e f"}}));
  EXPECT_ERROR("sample id 'a' occurs twice, in the lines 2 and 5",
               rows_of_text("l.csv", "id,text\na,\"one\n\"\nb,two\na,three\n", by_id));
  EXPECT_ERROR("l.csv, line 3: expected an id, found none",
               rows_of_text("l.csv", "id,text\na,one\n,two\n", by_id));
}

TEST(TextList, LabelsAreThoseOfImages) {
  EXPECT_EQ(rows_of_text("l.tsv", "a b\t3\nc d\t-1\ne f\t\n"),
            (TextRows{{"1", "3", "a b"}, {"2", "", "c d"}, {"3", "", "e f"}}));
  EXPECT_EQ(rows_of_text("l.jsonl",
                         "{\"text\": \"a\", \"label\": true}\n"
                         "{\"text\": \"b\", \"label\": false}\n"
                         "{\"text\": \"c\", \"label\": null}\n{\"text\": \"d\"}\n"),
            (TextRows{{"1", "true", "a"}, {"2", "false", "b"}, {"3", "", "c"}, {"4", "", "d"}}));
  const TemporaryFolder root;
  const auto file = root.write("l.csv", "text,label\none,cat\ntwo,ant\n\nthree,bee\n");
  EXPECT_EQ(open_texts(file)->class_names(), (std::vector<std::string>{"ant", "bee", "cat"}));
  const auto other = open_texts(file, {.class_names = {"cat", "bee", "ant", "dog"}});
  EXPECT_EQ(other->label(0), 0);
  EXPECT_EQ(other->label(1), 2);
  EXPECT_ERROR("l.csv, line 5: class 'bee' is not among the 2 given classes",
               open_texts(file, {.class_names = {"ant", "cat"}}));
  EXPECT_ERROR("l.jsonl, line 2: expected a name or a whole number as 'label', found array",
               rows_of_text("l.jsonl",
                            "{\"text\": \"a\", \"label\": 1}\n"
                            "{\"text\": \"b\", \"label\": [1]}"));
}

TEST(TextList, ABadTextIsASampleThatFails) {
  const std::string nul("text\nwith\0in\nfine\ncaf\xe9\n\"two\n\xff\"\n", 31);
  EXPECT_EQ(rows_of_text("l.csv", nul),
            (TextRows{{"2", "", "! line 2: expected a text, found a NUL byte behind 4 others"},
                      {"3", "", "fine"},
                      {"4", "", "! line 4: expected UTF-8, found the byte 0xe9 behind 3 others"},
                      {"5", "", "! line 5: expected UTF-8, found the byte 0xff behind 4 others"}}));
  EXPECT_EQ(rows_of_text("l.jsonl",
                         "{\"text\": \"fine \\ud83d\\udc68 \\\\ud83d\", \"label\": \"x\"}\n"
                         "{\"text\": \"caf\xe9\", \"label\": \"x\"}\n"
                         "{\"text\": \"half \\uD83D of one\", \"label\": \"y\"}\n"
                         "{\"text\": \"a\\u0000b\"}\n{\"text\": 5}\n{\"label\": \"x\"}\n"),
            (TextRows{{"1", "x", "fine \xf0\x9f\x91\xa8 \\ud83d"},
                      {"2", "x", "! line 2: expected UTF-8, found the byte 0xe9 behind 13 others"},
                      {"3", "y", "! line 3: expected characters, found half of one: \\uD83D"},
                      {"4", "", "! line 4: expected a text, found a NUL byte behind 1 others"},
                      {"5", "", "! line 5: expected a text as 'text', found number"},
                      {"6", "x", "! line 6: expected a text as 'text', found nothing"}}));
  const TemporaryFolder root;
  const auto number = open_texts(root.write("l.jsonl", "{\"text\": \"a\"}\n{\"text\": 5}\n"));
  EXPECT_NO_THROW(number->read(1)) << "the file is readable";
  const auto data = open_texts(root.write("l.csv", "id,text\nq,\xe9\n"), {.id_column = "id"});
  try {
    data->decode(0, data->read(0));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.place(), "q");
    EXPECT_TRUE(error.message().starts_with("line 2: ")) << error.message();
    EXPECT_NE(error.hint().find("iconv -f LATIN1"), std::string::npos);
  }
}

TEST(TextList, ControlCharactersInJsonFailAlone) {
  const std::string content("{\"text\": \"a\tb\"}\n{\t\"text\": \"a\0b\"}\n{\t\"text\":\t\"c\"}",
                            47);
  EXPECT_EQ(rows_of_text("l.jsonl", content),
            (TextRows{{"1", "", "! line 1: expected characters, found the control character 9"},
                      {"2", "", "! line 2: expected characters, found the control character 0"},
                      {"3", "", "c"}}));
}

TEST(TextList, NoCellIsLost) {
  EXPECT_ERROR("l.csv, line 3: expected 2 cells as in the first line, found 3",
               rows_of_text("l.csv", "text,label\na,b\nc,d,e\n"));
  EXPECT_ERROR("l.csv, line 4: expected 2 cells as in the first line, found 1",
               rows_of_text("l.csv", "text,label\n\"a\n\",b\nc\n"));
  EXPECT_ERROR("into double quotes", rows_of_text("l.csv", "text,label\na,b,c\n"));
  EXPECT_ERROR("write the file as .csv or .jsonl", rows_of_text("l.tsv", "a b\tx\nc\td\ty\n"));
  EXPECT_EQ(rows_of_text("l.csv", "text,label\na,b,,\n"), (TextRows{{"2", "b", "a"}}));
  std::string many = "text\tlabel\n";
  for (int i = 0; i < 2000; ++i) many += "some text\tx\n";
  EXPECT_ERROR("l.tsv, line 2002: expected 2 cells", rows_of_text("l.tsv", many + "alone\n"));
  for (const char separator : {',', '\t'})
    EXPECT_ERROR("expected at most 10000 columns",
                 rows_of_text(separator == ',' ? "l.csv" : "l.tsv", std::string(70000, separator)));
  EXPECT_ERROR("'c20' and 5 more", [] {
    std::string header = "c1";
    for (int i = 2; i <= 25; ++i) header += ",c" + std::to_string(i);
    rows_of_text("l.csv", header + "\n", {.text_column = "none of these"});
  }());
  EXPECT_ERROR("l.csv, line 3: expected a double quote that ends a quoted cell",
               rows_of_text("l.csv", "text\nfine\n\"open\nfor ever\n"));
}

TEST(TextList, WhatIsNoListOfTextsIsRefused) {
  EXPECT_ERROR("found a file without any", rows_of_text("l.txt", "\n \n"));
  EXPECT_ERROR("found an empty file", rows_of_text("l.csv", ""));
  EXPECT_ERROR("write rows below the header", rows_of_text("l.csv", "text,label\n"));
  EXPECT_ERROR("l.jsonl, line 2: expected a JSON object",
               rows_of_text("l.jsonl", "{\"text\": \"a\"}\nnonsense\n"));
  EXPECT_ERROR("no list around them", rows_of_text("l.jsonl", "[{\"text\": \"a\"}]"));
  EXPECT_ERROR("by semicolons", rows_of_text("l.csv", "text;label\na;b\n"));
  EXPECT_ERROR("columns", rows_of_text("l.txt", "text\tlabel\n", {.text_column = "text"}));
  EXPECT_ERROR("a file 'l.dat' of unknown kind", rows_of_text("l.dat", "a\n"));
  EXPECT_EQ(rows_of_text("l.dat", "a\n", {.kind = DatasetKind::list}), (TextRows{{"1", "", "a"}}));
  EXPECT_ERROR("the model reads texts", rows_of_text("l.csv", "a\n", {.kind = DatasetKind::idx}));
  EXPECT_ERROR("no split 'train'", rows_of_text("l.csv", "a\n", {.split = "train"}));
  for (const std::string_view wide :
       {std::string_view("\xff\xfe"
                         "a\0\n\0",
                         6),
        std::string_view("\xfe\xff\0a\0\n", 6), std::string_view("a\0\n\0b\0", 6),
        std::string_view("\0a\0\n", 4)})
    EXPECT_ERROR("found UTF-16 (save it as UTF-8: 'iconv -f UTF-16", rows_of_text("l.csv", wide));
  EXPECT_ERROR("found UTF-32", rows_of_text("l.csv", {"\xff\xfe\0\0a\0\0\0", 8}));
  EXPECT_ERROR("a binary file: gzip (unpack it first)", rows_of_text("l.csv", "\x1f\x8b\x08 abc"));
  EXPECT_ERROR("a binary file: Parquet", rows_of_text("l.csv", "PAR1\x15 abc"));
  std::string noise;
  for (int i = 0; i < 999; ++i) noise += char(i * 7 % 256);
  EXPECT_ERROR("are control characters", rows_of_text("l.tsv", noise));
  const TemporaryFolder root;
  EXPECT_ERROR("no such file", open_texts(root / "gone.csv"));
  EXPECT_ERROR("found a folder", open_texts(root.path(), {.kind = DatasetKind::list}));
}

TEST(TextList, AFileThatChangesEndsTheRun) {
  const TemporaryFolder root;
  const auto file = root.write("l.csv", "text,label\none,a\ntwo,b\nthree,c\n");
  for (const char* content : {"text,label\nONE,a\ntwo,b\nTHREE,c\n",
                              "text,label\nx,y,z,u,v,a\n0123456", "text,label\n"}) {
    SCOPED_TRACE(content);
    const auto data = open_texts(root.write("l.csv", "text,label\none,a\ntwo,b\nthree,c\n"));
    EXPECT_EQ(text_of(*data, 2), "three");
    root.write("l.csv", content);
    EXPECT_THROW(data->read(2), Exhausted);
  }
  const auto data = open_texts(root.write("l.csv", "text,label\none,a\n"));
  EXPECT_NO_THROW(data->require_present());
  std::filesystem::remove(file);
  EXPECT_EQ(text_of(*data, 0), "one") << "it is still open";
  EXPECT_THROW(data->require_present(), Exhausted);
}

TEST(TextList, ManyThreads) {
  std::string content = "text,label\n";
  for (int i = 0; i < 5000; ++i) content += "text number " + std::to_string(i) + ",x\n";
  const TemporaryFolder root;
  const auto data = open_texts(root.write("l.csv", content));
  std::vector<std::jthread> threads;
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (size_t i = t; i < data->size(); i += 3)
        EXPECT_EQ(text_of(*data, i), "text number " + std::to_string(i));
    });
  threads.clear();
  for (const size_t i : {data->size(), SIZE_MAX}) {
    EXPECT_ERROR("asked for sample", data->read(i));
    EXPECT_ERROR("asked for sample", data->key(i));
  }
}

}  // namespace
}  // namespace fungi
