// SPDX-License-Identifier: Apache-2.0
// Pictures with masks in every layout, and all that can be wrong with them.
#include "fungi/input/mask_dataset.h"

#include <gtest/gtest.h>

#include "fungi/input/png_write.h"
#include "tests/input/pattern.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

using test::TemporaryFolder;
using Options = MaskDatasetOptions;
using Names = std::vector<std::string>;

std::vector<uint8_t> picture(size_t width = 6, size_t height = 4) {
  return encode_png(testing::pattern(width, height, 1));
}

std::vector<uint8_t> mask(std::vector<uint8_t> values, size_t width = 6, size_t height = 4) {
  values.resize(width * height, 0);
  return encode_mask({width, height, std::move(values)});
}

Names ids(const MaskDataset& data) {
  Names out;
  for (size_t i = 0; i < data.size(); ++i) out.push_back(data.id(i));
  return out;
}

TEST(MaskDataset, FoldersPairFilesOfTheSameName) {
  const TemporaryFolder root;
  root.write("images/b.jpg", picture());
  root.write("images/a.png", picture());
  root.write("images/deep/c.png", picture());
  root.write("images/alone.png", picture());
  root.write("masks/a.png", mask({0, 3, 255}));
  root.write("masks/b.png", mask({1}));
  root.write("masks/deep/c.png", mask({2}));
  root.write("masks/lost.png", mask({2}));
  const auto data = open_mask_dataset(root.path());
  EXPECT_EQ(ids(*data), (Names{"a", "b", "deep/c"}));
  ASSERT_EQ(data->notes().size(), 2u);
  EXPECT_EQ(data->notes()[0], "1 picture(s) without a mask are left out: alone.png");
  EXPECT_EQ(data->notes()[1], "1 mask(s) without a picture are left out: lost.png");
  EXPECT_EQ(data->classes(), 0u);
  data->find_classes();
  EXPECT_EQ(data->classes(), 4u);
  const auto pair = data->pair(0);
  EXPECT_EQ(pair.mask.values[1], 3);
  EXPECT_EQ(pair.mask.values[2], 255);
  EXPECT_EQ(pair.image.width, 6u);
  EXPECT_ERROR("asked for pair 3 of 3", data->id(3));
}

TEST(MaskDataset, ASplitIsAFolder) {
  const TemporaryFolder root;
  root.write("train/images/a.png", picture());
  root.write("train/masks/a.png", mask({1}));
  EXPECT_EQ(ids(*open_mask_dataset(root.path(), {.split = "train"})), Names{"a"});
  EXPECT_ERROR("found no images/", open_mask_dataset(root.path()));
  EXPECT_ERROR("found no images/", open_mask_dataset(root.path(), {.split = "val"}));
}

TEST(MaskDataset, OddValuesAreNamed) {
  const TemporaryFolder root;
  root.write("images/a.png", picture());
  root.write("masks/a.png", mask({0, 1, 1, 1, 1, 1, 1, 200}));
  const Options two{.class_names = {"ground", "thing"}};
  EXPECT_ERROR("the mask holds the value 200 at (1, 1): expected a class of 0 to 1, or 255",
               open_mask_dataset(root.path(), two)->pair(0));
  Options other = two;
  other.ignore = 200;
  EXPECT_EQ(open_mask_dataset(root.path(), other)->pair(0).mask.values[7], 200);
  other.ignore = -1;
  EXPECT_ERROR("expected a class of 0 to 1", open_mask_dataset(root.path(), other)->pair(0));
  other.ignore = 256;
  EXPECT_ERROR("expected a value of 0 to 255, found 256", open_mask_dataset(root.path(), other));
}

TEST(MaskDataset, SizesMustAgree) {
  const TemporaryFolder root;
  root.write("images/a.png", picture(6, 4));
  root.write("masks/a.png", mask({1}, 4, 6));
  const auto data = open_mask_dataset(root.path(), {.class_names = {"a", "b"}});
  EXPECT_ERROR("expected a mask of the picture's 6x4 pixels, found 4x6", data->pair(0));
}

TEST(MaskDataset, WhatCannotBePairedIsSaid) {
  const TemporaryFolder root;
  EXPECT_ERROR("there is no such file", open_mask_dataset(root / "nowhere"));
  root.write("images/a.png", picture());
  EXPECT_ERROR("found no masks/", open_mask_dataset(root.path()));
  root.write("masks/b.png", mask({1}));
  EXPECT_ERROR("found no picture with a mask", open_mask_dataset(root.path()));
  root.write("images/b.png", picture());
  root.write("images/b.jpg", picture());
  EXPECT_ERROR("two files are called 'b'", open_mask_dataset(root.path()));
  root.write("words.txt", "hello");
  EXPECT_ERROR("found another file", open_mask_dataset(root / "words.txt"));
}

TEST(MaskDataset, ClassesAreFoundWhereNobodyNamesThem) {
  const TemporaryFolder root;
  for (const char* name : {"a", "b"}) root.write(std::string("images/") + name + ".png", picture());
  root.write("masks/a.png", mask(std::vector<uint8_t>(24, 255)));
  root.write("masks/b.png", mask(std::vector<uint8_t>(24, 255)));
  EXPECT_ERROR("hold nothing but the value 255", open_mask_dataset(root.path())->find_classes());
  const auto all = open_mask_dataset(root.path(), {.ignore = -1});
  all->find_classes();
  EXPECT_EQ(all->classes(), 256u);
  root.write("masks/b.png", "no picture at all");
  root.write("masks/a.png", mask({5}));
  const auto some = open_mask_dataset(root.path());
  some->find_classes();
  EXPECT_EQ(some->classes(), 6u);
  root.write("masks/a.png", "nor this");
  EXPECT_ERROR("none of the masks can be read", open_mask_dataset(root.path())->find_classes());
}

TEST(MaskDataset, TestPicturesHaveTheClassesOfTraining) {
  const TemporaryFolder root;
  root.write("images/a.png", picture());
  root.write("masks/a.png", mask({1}));
  const auto train = open_mask_dataset(root.path(), {.class_names = {"x", "y", "z"}});
  const auto test = open_mask_dataset(root.path());
  test->use_classes(*train);
  EXPECT_EQ(test->classes(), 3u);
  const auto other = open_mask_dataset(root.path(), {.class_names = {"x", "z"}});
  EXPECT_ERROR("the classes are not those of the training pictures", other->use_classes(*train));
}

TEST(MaskDataset, PascalVoc) {
  const TemporaryFolder root;
  for (const char* name : {"1", "2", "3"}) {
    root.write(std::string("JPEGImages/") + name + ".jpg", picture());
    root.write(std::string("SegmentationClass/") + name + ".png", mask({20}));
  }
  root.write("ImageSets/Segmentation/train.txt", "1\n2\n");
  root.write("ImageSets/Segmentation/val.txt", "3\n");
  const auto train = open_mask_dataset(root.path());
  EXPECT_EQ(ids(*train), (Names{"1", "2"}));
  EXPECT_EQ(train->classes(), 21u);
  EXPECT_EQ(train->class_names()[15], "person");
  EXPECT_EQ(train->ignore(), 255);
  EXPECT_EQ(ids(*open_mask_dataset(root.path(), {.role = Options::Role::test})), Names{"3"});
  root.write("ImageSets/Segmentation/trainaug.txt",
             "/JPEGImages/3.jpg /SegmentationClassAug/3.png\n/JPEGImages/9.jpg x\n");
  EXPECT_ERROR("2 of the files that the list 'trainaug' names (2 pictures) are missing",
               open_mask_dataset(root.path()));
  root.write("JPEGImages/9.jpg", picture());
  for (const char* name : {"3", "9"})
    root.write(std::string("SegmentationClassAug/") + name + ".png", mask({1}));
  EXPECT_EQ(ids(*open_mask_dataset(root.path())), (Names{"3", "9"}));
  EXPECT_ERROR("there is no split 'all', found train, trainaug, val",
               open_mask_dataset(root.path(), {.split = "all"}));
}

TEST(MaskDataset, Ade20k) {
  const TemporaryFolder root;
  root.write("images/training/a.jpg", picture());
  root.write("annotations/training/a.png", mask({0, 150}));
  root.write("images/validation/b.jpg", picture());
  root.write("annotations/validation/b.png", mask({3}));
  const auto train = open_mask_dataset(root.path());
  EXPECT_EQ(train->classes(), 151u);
  EXPECT_EQ(train->unmeasured(), std::optional<uint8_t>(0));
  EXPECT_EQ(train->pair(0).mask.values[1], 150);
  root.write("objectInfo150.txt",
             "Idx\tRatio\tTrain\tVal\tStuff\tName\n1\t0.1\t1\t1\t1\twall\n"
             "2\t0.1\t1\t1\t1\tbuilding, edifice\n3\t0\t1\t1\t1\twall\n");
  const auto test = open_mask_dataset(root.path(), {.role = Options::Role::test});
  EXPECT_EQ(ids(*test), Names{"b"});
  EXPECT_EQ(test->class_names(), (Names{"other", "wall", "building", "wall (2)"}));
}

TEST(MaskDataset, CamVidInBothItsLayouts) {
  const TemporaryFolder segnet;
  segnet.write("train/a.png", picture());
  segnet.write("trainannot/a.png", mask({0, 11}));
  segnet.write("test/b.png", picture());
  segnet.write("testannot/b.png", mask({3}));
  const auto data = open_mask_dataset(segnet.path());
  EXPECT_EQ(data->classes(), 12u);
  EXPECT_EQ(data->ignore(), 11);
  EXPECT_EQ(ids(*open_mask_dataset(segnet.path(), {.role = Options::Role::test})), Names{"b"});
  const TemporaryFolder flat;
  flat.write("images/a.png", picture());
  flat.write("labels/a_P.png", mask({2}));
  flat.write("codes.txt", "Animal\nVoid\nWall\n");
  const auto other = open_mask_dataset(flat.path());
  EXPECT_EQ(ids(*other), Names{"a"});
  EXPECT_EQ(other->class_names(), (Names{"Animal", "Void", "Wall"}));
  EXPECT_EQ(other->ignore(), 1);
  EXPECT_EQ(open_mask_dataset(flat.path(), {.ignore = 255})->ignore(), 255);
}

TEST(MaskDataset, ListsOfPairs) {
  const TemporaryFolder root;
  root.write("x/a.png", picture());
  root.write("y/m.png", mask({4}));
  root.write("l.csv", "mask,split,image\ny/m.png,train,\"x/a.png\"\n");
  EXPECT_EQ(ids(*open_mask_dataset(root / "l.csv")), Names{"x/a"});
  root.write("l.tsv", "x/a.png\ty/m.png\n");
  EXPECT_EQ(open_mask_dataset(root / "l.tsv")->mask(0).values[0], 4);
  root.write("l.csv", "x/a.png\n");
  EXPECT_ERROR("expected a picture and a mask in each row", open_mask_dataset(root / "l.csv"));
  root.write("l.csv", "image,label_id\nx/a.png,3\n");
  EXPECT_ERROR("names no column", open_mask_dataset(root / "l.csv"));
  root.write("l.csv", "x/a.png,y/m.png\nx/a.jpg,y/m.png\n");
  EXPECT_ERROR("the pair 'x/a' occurs twice", open_mask_dataset(root / "l.csv"));
}

TEST(MaskDataset, NamesOfClasses) {
  const TemporaryFolder root;
  EXPECT_EQ(read_class_names(root.write("n.txt", "ground\r\nsky\r\n\r\n")),
            (Names{"ground", "sky"}));
  EXPECT_ERROR("line 2 is empty", read_class_names(root.write("n.txt", "a\n\nb\n")));
  EXPECT_ERROR("'a' occurs twice, in line 3", read_class_names(root.write("n.txt", "a\nb\na\n")));
  EXPECT_ERROR("found none", read_class_names(root.write("n.txt", "\n\n")));
  std::string many;
  for (int i = 0; i < 257; ++i) many += std::to_string(i) + "\n";
  EXPECT_ERROR("at most 256 classes, found 257 lines", read_class_names(root.write("n.txt", many)));
}

TEST(MaskDataset, LayoutsByName) {
  for (const char* name : {"auto", "folders", "voc", "ade20k", "camvid", "list"})
    EXPECT_STREQ(to_string(parse_mask_layout(name)), name);
  EXPECT_ERROR("expected one of auto, folders", parse_mask_layout("coco"));
}

}  // namespace
}  // namespace fungi
