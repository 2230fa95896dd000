// SPDX-License-Identifier: Apache-2.0
// Texts that are files of their own, in folders and archives; standard input, pipes and memory.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "fungi/base/descriptor.h"
#include "tests/input/tar_writer.h"
#include "tests/input/text_rows.h"

namespace fungi {
namespace {

using namespace testing;
using test::TemporaryFolder;
using Names = std::vector<std::string>;

TEST(TextFolder, ClassesAreFolders) {
  const TemporaryFolder root;
  for (const char* name : {"train/pos/2_9.txt", "train/pos/10_7.txt", "train/neg/deep/a.txt"})
    root.write(name, std::string("\xef\xbb\xbfwritten in ") + name + "\r\nsecond line\n\n");
  root.write("train/urls.txt", "loose");
  root.write("train/neg/picture.jpg", "x");
  root.write("train/neg/.hidden.txt", "x");
  root.write("test/neg/1.txt", "other");
  const auto data = open_texts(root / "train", {.kind = DatasetKind::classes});
  EXPECT_EQ(data->kind(), DatasetKind::classes);
  EXPECT_EQ(data->samples(), SampleKind::text);
  EXPECT_EQ(text_rows(*data),
            (TextRows{{"neg/deep/a.txt", "neg", "written in train/neg/deep/a.txt\r\nsecond line"},
                      {"pos/10_7.txt", "pos", "written in train/pos/10_7.txt\r\nsecond line"},
                      {"pos/2_9.txt", "pos", "written in train/pos/2_9.txt\r\nsecond line"}}));
  EXPECT_EQ(data->ignored(), (std::map<std::string, size_t>{{"jpg", 1}}));
  EXPECT_EQ(data->notes(), (Names{"1 hidden text(s), whose names begin with a dot, were left out",
                                  "1 text(s) lie outside the class folders and were left out"}));
  EXPECT_EQ(text_rows(*open_texts(root.path(), {.split = "test"})),
            (TextRows{{"neg/1.txt", "neg", "other"}}));
  EXPECT_ERROR("'neg' is not among the 1 given classes",
               open_texts(root / "test", {.class_names = {"pos"}}));
}

TEST(TextFolder, FlatFoldersAndSingleFiles) {
  const TemporaryFolder root;
  root.write("b.txt", "");
  root.write("a.txt", "one\ntwo\n");
  root.write("wide.txt", std::string_view("\xff\xfe"
                                          "a\0",
                                          4));
  root.write("nul.txt", std::string_view("a\0b", 3));
  EXPECT_EQ(text_rows(*open_texts(root.path())),
            (TextRows{{"a.txt", "", "one\ntwo"},
                      {"b.txt", "", ""},
                      {"nul.txt", "", "! expected a text, found a NUL byte behind 1 others"},
                      {"wide.txt", "", "! expected UTF-8 text, found UTF-16"}}));
  EXPECT_EQ(text_rows(*open_texts(root / "a.txt", {.kind = DatasetKind::flat})),
            (TextRows{{"a.txt", "", "one\ntwo"}}));
  EXPECT_EQ(text_rows(*open_texts(root / "a.txt")), (TextRows{{"1", "", "one"}, {"2", "", "two"}}));
  EXPECT_ERROR("expected texts, found only other files (1 .md)", {
    const TemporaryFolder other;
    other.write("a.md", "x");
    open_texts(other.path());
  });
}

TEST(TextFolder, AnEditOfTheSameLengthIsNoticed) {
  const TemporaryFolder root;
  root.write("a/1.txt", "it is now");
  const auto data = open_texts(root.path());
  const std::string before = data->key(0);
  root.write("a/1.txt", "it is not");
  EXPECT_NE(data->key(0), before);
  std::filesystem::remove(root / "a/1.txt");
  EXPECT_EQ(data->key(0), "") << "a row whose file has gone stays";
}

TEST(TextFolder, ListsInsideAreFound) {
  const TemporaryFolder root;
  root.write("train.tsv", "x\ta b\n");
  root.write("classes.txt", "x\n");
  EXPECT_EQ(text_rows(*open_texts(root.path())), (TextRows{{"1", "x", "a b"}}));
  root.write("test.tsv", "x\tc d\n");
  EXPECT_EQ(text_rows(*open_texts(root.path(), {.split = "test"})), (TextRows{{"1", "x", "c d"}}));
  EXPECT_ERROR("expected one list of texts, found 2: test.tsv, train.tsv", open_texts(root.path()));
  EXPECT_ERROR("expected one list 'val', found 0 among test.tsv, train.tsv",
               open_texts(root.path(), {.split = "val"}));
  root.write("test.csv", "text\nc d\n");
  EXPECT_ERROR("expected one list 'test', found 2", open_texts(root.path(), {.split = "test"}));
  EXPECT_EQ(text_rows(*open_texts(root.path(), {.kind = DatasetKind::flat})),
            (TextRows{{"classes.txt", "", "x"}}));
}

TEST(TextTar, MembersBelongTogether) {
  for (const char* name : {"a.tar", "a.tar.gz"}) {
    SCOPED_TRACE(name);
    const TemporaryFolder root;
    {
      TarWriter tar(root / name);
      tar.text("000.txt", "first\n");
      tar.text("000.cls", "b");
      tar.text("sub/001.txt", "caf\xe9");
      tar.text("sub/001.json", R"({"label": "a", "text": "no text of ours"})");
      tar.text("sub/001.jpg", "picture");
    }
    const auto data = open_texts(root / name);
    EXPECT_EQ(data->kind(), DatasetKind::tar);
    EXPECT_EQ(
        text_rows(*data),
        (TextRows{{"000", "b", "first"},
                  {"sub/001", "a", "! expected UTF-8, found the byte 0xe9 behind 3 others"}}));
    EXPECT_EQ(data->ignored(), (std::map<std::string, size_t>{{"jpg", 1}}));
    EXPECT_EQ(open_texts(root.path())->size(), 2u) << "a folder of archives";
    const std::string key = data->key(0);
    {
      TarWriter tar(root / "b.tar");
      tar.text("000.txt", "fires\n");
    }
    EXPECT_NE(open_texts(root / "b.tar")->key(0), key) << "of the same length";
  }
}

TEST(TextStream, APipeIsCopied) {
  const TemporaryFolder root;
  const auto pipe = root / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string content;
  TextRows expected;
  for (int i = 1; i <= 20000; ++i) {
    content += "line " + std::to_string(i) + "\n";
    expected.push_back({std::to_string(i), "", "line " + std::to_string(i)});
  }
  std::jthread writer([&] { test::write_file(pipe, content); });
  EXPECT_EQ(text_rows(*open_texts(pipe)), expected);
}

TEST(TextStream, StandardInputHasLines) {
  const TemporaryFolder root;
  const auto file = root.write("lines",
                               "behind it\n\xef\xbb\xbf"
                               "a,\"b\"\n\nlabel\ttext\n");
  const Descriptor own(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
  const Descriptor given(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::lseek(given.number, 10, SEEK_SET), 10) << "somebody has read some of it";
  ::dup2(given.number, STDIN_FILENO);
  const auto data = open_texts("-");
  if (own.number >= 0)
    ::dup2(own.number, STDIN_FILENO);
  else
    ::close(STDIN_FILENO);
  const TextRows expected{{"1", "", "a,\"b\""}, {"3", "", "label\ttext"}};
  EXPECT_EQ(text_rows(*data), expected);
  EXPECT_EQ(text_rows(*data), expected) << "it may be read again";
  EXPECT_NO_THROW(data->require_present());
  EXPECT_ERROR("no such file", open_dataset("-"));
}

TEST(TextMemory, GivesTheTextsBack) {
  const auto data =
      memory_dataset({"a", "b"}, std::vector<Text>{{"one"}, {""}}, {1, -1}, {"ant", "bee"});
  EXPECT_EQ(text_rows(*data), (TextRows{{"a", "bee", "one"}, {"b", "", ""}}));
  EXPECT_EQ(data->samples(), SampleKind::text);
  EXPECT_ERROR("expected texts, found none", memory_dataset({}, std::vector<Text>{}));
  EXPECT_ERROR("each of 1 texts, found 2 and 2",
               memory_dataset({"a", "b"}, std::vector<Text>{{"x"}}));
  EXPECT_ERROR("b: expected UTF-8, found the byte 0xc3",
               memory_dataset({"a", "b"}, std::vector<Text>{{"x"}, {"\xc3"}}));
  EXPECT_ERROR("a NUL byte", memory_dataset({"a"}, std::vector<Text>{{std::string(1, '\0')}}));
}

}  // namespace
}  // namespace fungi
