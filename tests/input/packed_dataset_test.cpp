// SPDX-License-Identifier: Apache-2.0
// Tar shards, CIFAR and IDX files.
#include <gtest/gtest.h>
#include <zlib.h>

#include <thread>

#include "fungi/base/error.h"
#include "fungi/input/dataset.h"
#include "tests/input/pattern.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;
using testing::golden_image;

const fs::path kShards = fs::path(FUNGI_GOLDEN_DIR) / "input/shards";

TEST(TarDataset, PlainShard) {
  const auto data = open_dataset(kShards / "plain.tar");
  EXPECT_EQ(data->kind(), DatasetKind::tar);
  ASSERT_EQ(data->size(), 4u);
  EXPECT_EQ(data->id(0), "000");
  EXPECT_EQ(data->id(1), "sub/001");
  EXPECT_EQ(data->id(2).size(), 20 * 7 + 120u);
  EXPECT_EQ(data->id(3), "last");
  EXPECT_EQ(data->label(0), 3);
  EXPECT_EQ(data->label(1), 0);
  EXPECT_EQ(data->label(2), -1);
  EXPECT_EQ(data->ignored(), (std::map<std::string, size_t>{{"seg.png", 1}}));
  EXPECT_EQ(data->read(3), golden_image("ycbcr_420.jpg"));
  EXPECT_EQ(data->read(0), golden_image("rgb8.png"));
  EXPECT_EQ(data->read(2), golden_image("lossy.webp"));
  EXPECT_EQ(data->read(1), golden_image("grey.jpg"));
}

TEST(TarDataset, CompressedShardInAnyOrder) {
  const char* files[] = {"rgb8.png", "grey.jpg", "lossy.webp", "ycbcr_420.jpg"};
  const auto data = open_dataset(kShards / "packed.tar.gz");
  ASSERT_EQ(data->size(), 13u);
  EXPECT_EQ(data->class_names(), (std::vector<std::string>{"cat", "dog"}));
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(data->label(i), i % 3 ? 1 : 0);
  EXPECT_EQ(data->label(12), -1);
  for (const size_t i : {5u, 2u, 2u, 11u, 0u, 6u, 7u, 1u})
    EXPECT_EQ(data->read(i), golden_image(files[i % 4])) << i;
  for (size_t i = 0; i < 12; ++i)
    EXPECT_EQ(data->stored_bytes(i), golden_image(files[i % 4]).size()) << i;
  EXPECT_EQ(data->read(12), golden_image("rgb8.png"));
}

TEST(TarDataset, ManyThreads) {
  const auto data = open_dataset(kShards / "packed.tar.gz");
  std::vector<std::vector<uint8_t>> found(12);
  std::vector<std::jthread> threads;
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (size_t i = t; i < 12; i += 4) found[i] = data->read(i);
    });
  threads.clear();
  const char* files[] = {"rgb8.png", "grey.jpg", "lossy.webp", "ycbcr_420.jpg"};
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(found[i], golden_image(files[i % 4])) << i;
}

TEST(TarDataset, FolderOfShards) {
  const auto data = open_dataset(kShards);
  ASSERT_EQ(data->size(), 13 + 1 + 4u);
  EXPECT_EQ(data->id(0), "p000");
  EXPECT_EQ(data->id(13), "z1");
  EXPECT_EQ(data->id(14), "000");
  EXPECT_EQ(data->read(13), golden_image("rgb8.png"));
  EXPECT_EQ(data->read(14), golden_image("rgb8.png"));
}

TEST(TarDataset, BrokenShards) {
  const TemporaryFolder root;
  const auto whole = read_file_bytes(kShards / "packed.tar.gz");
  root.write("cut.tar.gz", std::vector<uint8_t>(whole.begin(), whole.begin() + 1500));
  EXPECT_THROW(open_dataset(root.path() / "cut.tar.gz"), Error);
  const auto plain = read_file_bytes(kShards / "plain.tar");
  root.write("cut.tar", std::vector<uint8_t>(plain.begin(), plain.begin() + 700));
  EXPECT_THROW(open_dataset(root.path() / "cut.tar"), Error);
  root.write("text.tar", "this is no archive at all");
  EXPECT_THROW(open_dataset(root.path() / "text.tar"), Error);
  root.write("two/a.tar", plain);
  root.write("two/b.tar", plain);
  try {
    open_dataset(root.path() / "two");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("'000' occurs twice"), std::string::npos);
    for (const char* place : {"two/a.tar", "two/b.tar", "'000.png'"})
      EXPECT_NE(error.message().find(place), std::string::npos) << error.message();
  }
}

std::vector<uint8_t> cifar_records(std::vector<std::vector<uint8_t>> heads, uint8_t salt) {
  std::vector<uint8_t> out;
  for (size_t r = 0; r < heads.size(); ++r) {
    out.insert(out.end(), heads[r].begin(), heads[r].end());
    for (size_t i = 0; i < 3072; ++i) out.push_back(uint8_t(i * 7 + r * 31 + salt));
  }
  return out;
}

TEST(CifarDataset, IsFoundOneFolderFurtherDown) {  // as its archive unpacks
  const TemporaryFolder root;
  root.write("cifar-10-batches-bin/data_batch_1.bin", cifar_records({{3}, {9}}, 1));
  root.write("notes.md", "x");
  EXPECT_EQ(open_dataset(root.path())->size(), 2u);
  root.write("cifar-100-python/train", std::vector<uint8_t>(9, 7));  // which of the two is meant?
  EXPECT_THROW(open_dataset(root.path()), Error);
}

TEST(CifarDataset, TenAndHundred) {
  const TemporaryFolder ten, hundred;
  ten.write("data_batch_1.bin", cifar_records({{3}, {9}}, 1));
  ten.write("data_batch_2.bin", cifar_records({{0}}, 2));
  ten.write("test_batch.bin", cifar_records({{7}}, 3));
  ten.write("batches.meta.txt",
            "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n");
  const auto all = open_dataset(ten.path());
  EXPECT_EQ(all->kind(), DatasetKind::cifar);
  ASSERT_EQ(all->size(), 4u);
  EXPECT_EQ(all->id(1), "data_batch_1/00001");
  EXPECT_EQ(all->id(3), "test_batch/00000");
  EXPECT_EQ(all->label(1), 9);
  EXPECT_EQ(all->class_names().at(9), "truck");
  const Image image = all->image(2);
  ASSERT_EQ(image.rgb.size(), 3072u);
  for (size_t p = 0; p < 1024; ++p)
    for (size_t c = 0; c < 3; ++c) ASSERT_EQ(image.rgb[3 * p + c], uint8_t((c * 1024 + p) * 7 + 2));
  EXPECT_EQ(open_dataset(ten.path(), {.split = "train"})->size(), 3u);
  EXPECT_EQ(open_dataset(ten.path(), {.split = "test"})->id(0), "test_batch/00000");
  EXPECT_THROW(open_dataset(ten.path(), {.split = "val"}), Error);

  hundred.write("train.bin", cifar_records({{19, 99}, {3, 5}}, 0));
  const auto fine = open_dataset(hundred.path() / "train.bin");
  EXPECT_EQ(fine->label(0), 99);
  EXPECT_EQ(fine->id(1), "train/00001");
  EXPECT_TRUE(fine->class_names().empty());

  ten.write("bad.bin", std::vector<uint8_t>(100));
  EXPECT_THROW(open_dataset(ten.path() / "bad.bin"), Error);
  ten.write("label.bin", cifar_records({{200}}, 1));
  EXPECT_THROW(open_dataset(ten.path() / "label.bin"), Error);
}

std::string open_error(const fs::path& path, const DatasetOptions& options) {
  return test::error_of([&] { open_dataset(path, options); });
}

TEST(CifarDataset, GivenClassesAreTheirPlaces) {
  using Names = std::vector<std::string>;
  const TemporaryFolder root;
  root.write("data_batch_1.bin", cifar_records({{2}, {0}}, 1));
  const Names swapped = {"cat", "bird", "airplane"};
  const auto numbers = open_dataset(root.path(), {.class_names = swapped});  // no names known
  EXPECT_EQ(numbers->label(0), 2);
  EXPECT_EQ(numbers->class_names(), swapped);
  EXPECT_NE(open_error(root.path(), {.class_names = {"x"}}).find("'2'"), std::string::npos);

  root.write("batches.meta.txt", "airplane\nautomobile\nbird\ncat\n");
  const auto data = open_dataset(root.path(), {.class_names = swapped});
  EXPECT_EQ(data->label(0), 1);
  EXPECT_EQ(data->label(1), 2);
  EXPECT_EQ(data->class_names(), swapped);
  EXPECT_NE(open_error(root.path(), {.class_names = {"cat", "airplane"}}).find("'bird'"),
            std::string::npos);
  root.write("batches.meta.txt", "airplane\nautomobile\n");
  EXPECT_NE(open_error(root.path(), {}).find("label 2 has no name"), std::string::npos);
}

TEST(CifarDataset, ASingleFileHasNoSplit) {
  const TemporaryFolder root;
  root.write("test_batch.bin", cifar_records({{7}}, 3));
  EXPECT_NE(open_error(root.path() / "test_batch.bin", {.split = "train"}).find("no split 'train'"),
            std::string::npos);
}

std::vector<uint8_t> idx(std::vector<uint32_t> shape, size_t bytes) {
  std::vector<uint8_t> out = {0, 0, 8, uint8_t(shape.size())};
  for (const uint32_t n : shape)
    for (int shift = 24; shift >= 0; shift -= 8) out.push_back(uint8_t(n >> shift));
  for (size_t i = 0; i < bytes; ++i) out.push_back(uint8_t(i % 251));
  return out;
}

void write_zipped(const fs::path& path, const std::vector<uint8_t>& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), unsigned(bytes.size()));
  gzclose(file);
}

TEST(IdxDataset, PlainAndZipped) {
  const TemporaryFolder root;
  root.write("train-images-idx3-ubyte", idx({4, 3, 5}, 60));
  root.write("train-labels-idx1-ubyte", idx({4}, 4));
  write_zipped(root.path() / "t10k-images-idx3-ubyte.gz", idx({2, 3, 5}, 30));
  const auto data = open_dataset(root.path());
  EXPECT_EQ(data->kind(), DatasetKind::idx);
  ASSERT_EQ(data->size(), 6u);
  EXPECT_EQ(data->id(0), "t10k/00000");
  EXPECT_EQ(data->id(5), "train/00003");
  EXPECT_EQ(data->label(0), -1);
  EXPECT_EQ(data->label(5), 3);
  const Image image = data->image(3);
  EXPECT_EQ(image.width, 5u);
  EXPECT_EQ(image.height, 3u);
  for (size_t i = 0; i < 45; ++i) EXPECT_EQ(image.rgb[i], 15 + i / 3);
  EXPECT_EQ(data->read(1).front(), 15);
  EXPECT_EQ(open_dataset(root.path(), {.split = "train"})->size(), 4u);
  EXPECT_EQ(open_dataset(root.path(), {.split = "test"})->id(1), "t10k/00001");
}

TEST(IdxDataset, MorePicturesThanTwoBytesCount) {
  const TemporaryFolder root;
  root.write("x-images-idx3-ubyte", idx({65793, 1, 1}, 65793));  // 0x10101
  const auto data = open_dataset(root.path());
  ASSERT_EQ(data->size(), 65793u);
  EXPECT_EQ(data->read(65792).front(), 65792 % 251);
}

// Labels are found whether they are zipped as the images are or not, also where the names lack a
// part; without a name to look for there are none.
TEST(IdxDataset, FindsLabels) {
  const std::pair<const char*, const char*> pairs[] = {
      {"a-images-idx3-ubyte", "a-labels-idx1-ubyte"},
      {"b-images-idx3-ubyte.gz", "b-labels-idx1-ubyte"},
      {"c-images-idx3-ubyte", "c-labels-idx1-ubyte.gz"},
      {"d-images-idx3-ubyte.gz", "d-labels-idx1-ubyte.gz"},
      {"e-images", "e-labels"},
      {"f-images.gz", "f-labels"},
      {"g.idx3-ubyte", "g.idx1-ubyte"},
      {"digits", ""}};
  const TemporaryFolder root;
  const auto write = [&](const std::string& name, const std::vector<uint8_t>& bytes) {
    if (name.ends_with(".gz"))
      write_zipped(root.path() / name, bytes);
    else
      root.write(name, bytes);
  };
  for (const auto& [images, labels] : pairs) {
    SCOPED_TRACE(images);
    write(images, idx({4, 3, 5}, 60));
    const DatasetOptions options{.kind = DatasetKind::idx};
    const auto bare = open_dataset(root.path() / images, options);
    ASSERT_EQ(bare->size(), 4u);
    EXPECT_EQ(bare->label(3), -1);
    ASSERT_EQ(bare->notes().size(), 1u);
    const std::string missing = std::string(labels).substr(0, std::string(labels).find(".gz"));
    for (const std::string& part : {std::string(images), missing})
      EXPECT_NE(bare->notes()[0].find(part), std::string::npos) << bare->notes()[0];
    if (!*labels) continue;
    write(labels, idx({4}, 4));
    const auto labelled = open_dataset(root.path() / images, options);
    EXPECT_EQ(labelled->label(3), 3);
    EXPECT_TRUE(labelled->notes().empty());
  }
  EXPECT_EQ(open_dataset(root.path() / "digits", {.kind = DatasetKind::idx})->id(1),
            "digits/00001");
}

TEST(IdxDataset, OfAPlainAndAZippedCopyOneIsTaken) {
  for (const std::string name : {"x-idx3-ubyte", "x-images-idx3-ubyte"}) {
    const TemporaryFolder root;
    root.write(name, idx({4, 3, 5}, 60));
    write_zipped(root.path() / (name + ".gz"), idx({4, 3, 5}, 60));
    const auto both = open_dataset(root.path());
    EXPECT_EQ(both->size(), 4u);
    const auto& notes = both->notes();
    EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
      return note.find("'" + name + ".gz' is left out") != std::string::npos;
    }));
  }
}

TEST(IdxDataset, SplitsAndGivenClasses) {
  const TemporaryFolder root;
  root.write("train-images-idx3-ubyte", idx({4, 3, 5}, 60));
  root.write("train-labels-idx1-ubyte", idx({4}, 4));
  const fs::path file = root.path() / "train-images-idx3-ubyte";
  EXPECT_NE(open_error(file, {.split = "test"}).find("no split 'test'"), std::string::npos);
  EXPECT_EQ(open_dataset(file, {.class_names = {"a", "b", "c", "d"}})->class_names().size(), 4u);
  EXPECT_NE(open_error(file, {.class_names = {"a", "b"}}).find("given classes"), std::string::npos);
}

TEST(IdxDataset, Broken) {
  const TemporaryFolder root;
  const auto rejected = [&](const std::vector<uint8_t>& bytes) {
    root.write("x-images-idx3-ubyte", bytes);
    EXPECT_THROW(open_dataset(root.path() / "x-images-idx3-ubyte"), Error);
  };
  rejected({});
  rejected(idx({4}, 4));
  rejected(idx({4, 3, 5}, 59));
  rejected(idx({0xffffffff, 0xffffffff, 0xffffffff}, 60));
  rejected(idx({4, 0x80000000, 0x80000000}, 60));  // 2^64 bytes, which is 0
  rejected(idx({0, 3, 5}, 0));
  root.write("y-images-idx3-ubyte", idx({4, 3, 5}, 60));
  root.write("y-labels-idx1-ubyte", idx({3}, 3));
  EXPECT_THROW(open_dataset(root.path() / "y-images-idx3-ubyte"), Error);
}

}  // namespace
}  // namespace fungi
