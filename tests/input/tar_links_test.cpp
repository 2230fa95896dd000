// SPDX-License-Identifier: Apache-2.0
// Members of archives that have their content elsewhere, or none that can be read, and names with
// dots: none vanishes.
#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "fungi/base/error.h"
#include "fungi/input/dataset.h"
#include "tests/input/pattern.h"
#include "tests/input/tar_writer.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;
using testing::golden_image;
using testing::TarWriter;

TEST(TarLinks, HaveTheContentOfTheirTarget) {
  const auto png = golden_image("rgb8.png"), grey = golden_image("grey.jpg"),
             colour = golden_image("ycbcr_420.jpg");
  const TemporaryFolder root;
  for (const char* name : {"links.tar", "links.tar.gz"}) {
    SCOPED_TRACE(name);
    {
      TarWriter tar(root.path() / name);
      tar.file("blob", png);
      tar.file("./a/0.jpg", grey);
      tar.text("./a/0.cls", "cat");
      tar.hard("./a/1.jpg", "./a/0.jpg");
      tar.hard("./a/1.cls", "./a/0.cls");
      tar.hard("b/2.png", "blob");
      tar.soft("b/3.jpg", "../a/1.jpg");  // a link to a link
      tar.soft("b/4.jpg", "later.jpg");   // to a member behind it
      tar.soft("b/4.json", "label");
      tar.file("b/later.jpg", colour);
      tar.text("b/label", "{\"label\": \"dog\"}");
      tar.soft("latest", "b");  // a folder
      tar.hard("copy", "blob");
    }
    const auto data = open_dataset(root.path() / name);
    const std::vector<std::pair<std::string, const std::vector<uint8_t>*>> expected = {
        {"a/0", &grey}, {"a/1", &grey},   {"b/2", &png},
        {"b/3", &grey}, {"b/4", &colour}, {"b/later", &colour}};
    ASSERT_EQ(data->size(), expected.size());
    EXPECT_EQ(data->class_names(), (std::vector<std::string>{"cat", "dog"}));
    const int labels[] = {0, 0, -1, -1, 1, -1};
    for (size_t i = 0; i < data->size(); ++i) {
      EXPECT_EQ(data->id(i), expected[i].first);
      EXPECT_EQ(data->label(i), labels[i]) << i;
      EXPECT_EQ(data->stored_bytes(i), expected[i].second->size()) << i;
    }
    for (const size_t i : {0u, 1u, 2u, 3u, 4u, 5u, 5u, 4u, 3u, 2u, 1u, 0u, 2u})
      EXPECT_EQ(data->read(i), *expected[i].second) << i;
    EXPECT_EQ(data->ignored(), (std::map<std::string, size_t>{{"", 3}}));
  }
}

TEST(TarLinks, ThatLeadNowhereFailOneByOne) {
  const TemporaryFolder root;
  for (const char* name : {"links.tar", "links.tar.gz"}) {
    SCOPED_TRACE(name);
    {
      TarWriter tar(root.path() / name);
      tar.soft("0.jpg", "/data/outside.jpg");
      tar.hard("1.jpg", "gone.jpg");
      tar.soft("2.jpg", "2.jpg");
      tar.soft("3.jpg", "../3.jpg");
      tar.file("4.png", golden_image("rgb8.png"));
    }
    const auto data = open_dataset(root.path() / name);
    ASSERT_EQ(data->size(), 5u);
    const char* targets[] = {"'/data/outside.jpg'", "'gone.jpg'", "'2.jpg'", "'../3.jpg'"};
    for (size_t i = 0; i < 4; ++i) {
      const std::string text = test::error_of([&] { data->read(i); });
      EXPECT_NE(text.find("link to " + std::string(targets[i])), std::string::npos) << text;
      EXPECT_EQ(data->stored_bytes(i), std::nullopt);
    }
    EXPECT_EQ(data->image(4).width, 23u);
  }
  {
    TarWriter tar(root.path() / "label.tar");
    tar.file("0.png", golden_image("rgb8.png"));
    tar.soft("0.cls", "gone.cls");
  }
  EXPECT_THROW(open_dataset(root.path() / "label.tar"), Error);
}

TEST(TarNames, OfEveryCompression) {
  const auto png = golden_image("rgb8.png");
  const std::pair<const char*, const char*> cases[] = {
      {".tar.bz2", "bzip2"}, {".tbz", "bzip2"}, {".tbz2", "bzip2"},     {".tar.xz", "xz"},
      {".txz", "xz"},        {".tzst", "zstd"}, {".tar.zst", "zstd"},   {".tar.lz4", "lz4"},
      {".tgz", "gzip"},      {".TGZ", "gzip"},  {".tar.Z", "compress"}, {".TAR.GZ", "gzip"}};
  for (const auto& [ending, filter] : cases) {
    SCOPED_TRACE(ending);
    const TemporaryFolder root;
    const auto file = root.path() / (std::string("a") + ending);
    TarWriter(file, filter).file("0.png", png);
    for (const auto& path : {file, root.path()}) {
      const auto data = open_dataset(path);
      EXPECT_EQ(data->kind(), DatasetKind::tar);
      EXPECT_EQ(data->read(0), png);
    }
  }
}

TEST(TarNames, AnImageIsToldByItsLastExtension) {
  const auto png = golden_image("rgb8.png");
  const TemporaryFolder root;
  {
    TarWriter tar(root.path() / "photos.tar");
    for (const char* name : {"v1.0/IMG_2020.01.02.png", "v1.0/IMG_2020.01.03.png", "a.left.png",
                             "a.right.png", "b.seg.png", "b.png", "v1.0/readme"})
      tar.file(name, png);
    tar.text("v1.0/IMG_2020.01.03.cls", "1");
    tar.text("a.cls", "2");
  }
  const auto data = open_dataset(root.path() / "photos.tar");
  const std::vector<std::pair<std::string, int>> expected = {{"v1.0/IMG_2020.01.02", -1},
                                                             {"v1.0/IMG_2020.01.03", 1},
                                                             {"a.left", 2},
                                                             {"a.right", 2},
                                                             {"b", -1}};
  ASSERT_EQ(data->size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(data->id(i), expected[i].first);
    EXPECT_EQ(data->label(i), expected[i].second) << i;
    EXPECT_EQ(data->read(i), png);
  }
  EXPECT_EQ(data->ignored(), (std::map<std::string, size_t>{{"", 1}, {"seg.png", 1}}));
}

TEST(TarNames, FoldersAreClassesWhereNothingElseGivesLabels) {
  const auto png = golden_image("rgb8.png");
  const TemporaryFolder root;
  {
    TarWriter tar(root.path() / "classes.tar"), one(root.path() / "one.tar");
    for (const char* name : {"./dog/1.png", "./cat/1.png", "./cat/old/2.png", "./loose.png"})
      tar.file(name, png);
    for (const char* name : {"all/1.png", "all/2.png"}) one.file(name, png);
  }
  const auto data = open_dataset(root.path() / "classes.tar");
  EXPECT_EQ(data->class_names(), (std::vector<std::string>{"cat", "dog"}));
  const int labels[] = {1, 0, 0, -1};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(data->label(i), labels[i]) << i;
  ASSERT_EQ(data->notes().size(), 1u);
  EXPECT_NE(data->notes()[0].find("the 2 top folders are the classes"), std::string::npos);
  const auto all = open_dataset(root.path() / "one.tar");
  EXPECT_EQ(all->label(0), -1);
  EXPECT_TRUE(all->notes().empty());
}

TEST(TarNames, OneKeyForTwoImagesNamesBoth) {
  const TemporaryFolder root;
  {
    TarWriter tar(root.path() / "same.tar");
    tar.file("same.jpg", golden_image("grey.jpg"));
    tar.file("same.png", golden_image("rgb8.png"));
  }
  try {
    open_dataset(root.path() / "same.tar");
    FAIL();
  } catch (const Error& error) {
    for (const char* name : {"'same.jpg'", "'same.png'"})
      EXPECT_NE(error.message().find(name), std::string::npos) << error.message();
    EXPECT_EQ(error.hint(), "ids name rows of the result: rename one of them");
  }
}

TEST(TarNames, OneKeyInTwoArchivesMayGoIntoTwoStores) {
  const TemporaryFolder root;
  for (const char* name : {"a.tar", "b.tar"})
    TarWriter(root.path() / name).file("same.jpg", golden_image("grey.jpg"));
  EXPECT_ERROR("or extract the archives into stores of their own", open_dataset(root.path()));
}

// Makes the first header say another size, in eleven octal digits.
void claim(std::vector<uint8_t>& tar, const std::string& size) {
  std::copy(size.begin(), size.end(), tar.begin() + 124);
  std::fill_n(tar.begin() + 148, 8, uint8_t(' '));
  unsigned sum = 0;
  for (size_t i = 0; i < 512; ++i) sum += tar[i];
  for (int i = 0; i < 6; ++i) tar[size_t(148 + i)] = uint8_t('0' + (sum >> 3 * (5 - i) & 7));
  tar[154] = 0;
}

// A header alone says how large a member is; the bytes are a hole.
TEST(TarLinks, AMemberBeyondTheLimitFailsAlone) {
  const TemporaryFolder root;
  {
    TarWriter tar(root.path() / "huge.tar");
    tar.file("huge.jpg", {});
    tar.file("small.png", golden_image("rgb8.png"));
  }
  auto bytes = read_file_bytes(root.path() / "huge.tar");
  claim(bytes, "10000000001");  // 1 GiB and one byte
  const fs::path file = root.path() / "huge.tar";
  root.write("huge.tar", std::vector<uint8_t>(bytes.begin(), bytes.begin() + 512));
  fs::resize_file(file, 512 + (uint64_t(1) << 30) + 512);
  std::ofstream(file, std::ios::binary | std::ios::app)
      .write(reinterpret_cast<const char*>(bytes.data()) + 512,
             std::streamsize(bytes.size() - 512));
  const auto data = open_dataset(file);
  ASSERT_EQ(data->size(), 2u);
  const std::string text = test::error_of([&] { data->read(0); });
  EXPECT_NE(text.find("'huge.jpg' of 1073741825 bytes"), std::string::npos) << text;
  EXPECT_EQ(data->image(1).width, 23u);
}

// Found by fuzzing: a few bytes took most of a GiB.
TEST(TarDataset, MemoryFollowsWhatIsThereNotWhatAHeaderSays) {
  const auto peak = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;  // KiB
  };
  const TemporaryFolder root;
  {
    TarWriter tar(root.path() / "label.tar");
    tar.text("0.cls", "cat");
  }
  auto bytes = read_file_bytes(root.path() / "label.tar");
  for (const bool sparse : {false, true}) {  // all of its content in holes
    if (sparse) bytes[156] = 'S';
    claim(bytes, "05000000000");  // 640 MiB
    root.write("label.tar", bytes);
    {
      archive* zipped = archive_write_new();
      archive_write_set_format_raw(zipped);
      archive_write_add_filter_gzip(zipped);
      EXPECT_EQ(archive_write_open_filename(zipped, (root.path() / "label.tar.gz").c_str()),
                ARCHIVE_OK);
      archive_entry* entry = archive_entry_new();
      archive_entry_set_filetype(entry, AE_IFREG);
      archive_write_header(zipped, entry);
      archive_write_data(zipped, bytes.data(), bytes.size());
      archive_entry_free(entry);
      archive_write_free(zipped);
    }
    for (const char* name : {"label.tar", "label.tar.gz"}) {
      SCOPED_TRACE(std::string(name) + (sparse ? ", sparse" : ""));
      if (sparse && fs::path(name).extension() == ".gz") continue;  // may really hold so much
      const auto before = peak();
      EXPECT_THROW(open_dataset(root.path() / name), Error);
      EXPECT_LT(peak() - before, 64 << 10);
    }
  }
}

}  // namespace
}  // namespace fungi
