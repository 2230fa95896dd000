// SPDX-License-Identifier: Apache-2.0
// Data sets of sounds: folders, lists with folds, ESC-50, SpeechCommands, archives, windows.
#include <gtest/gtest.h>

#include "fungi/input/dataset.h"
#include "fungi/input/sound.h"
#include "tests/input/tar_writer.h"
#include "tests/input/wav_writer.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<std::string>;
using Labels = std::vector<int>;

// So many samples, each with the number of its place.
std::vector<uint8_t> clip(size_t samples, uint32_t rate = 100) {
  std::vector<int16_t> values(samples);
  for (size_t i = 0; i < samples; ++i) values[i] = int16_t(i);
  return test::wav({.rate = rate}, values);
}

class SoundDatasets : public ::testing::Test {
 protected:
  void SetUp() override {
    if (sound_formats().empty()) GTEST_SKIP() << "built without libsndfile";
  }
  void write(const std::string& name, size_t samples = 4) { folder.write(name, clip(samples)); }
  std::unique_ptr<Dataset> open(DatasetOptions options = {}, const std::string& inside = "") {
    options.samples = SampleKind::sound;
    return open_dataset(inside.empty() ? folder.path() : folder / inside, options);
  }
  static Ids ids(const Dataset& data) {
    Ids all;
    for (size_t i = 0; i < data.size(); ++i) all.push_back(data.id(i));
    return all;
  }
  static Labels labels(const Dataset& data) {
    Labels all;
    for (size_t i = 0; i < data.size(); ++i) all.push_back(data.label(i));
    return all;
  }
  static Sound sound(const Dataset& data, size_t i) {
    return sound_of(data.decode(i, data.read(i)));
  }
  static bool notes(const Dataset& data, const std::string& part) {
    for (const std::string& note : data.notes())
      if (note.find(part) != std::string::npos) return true;
    return false;
  }
  test::TemporaryFolder folder;
};

TEST_F(SoundDatasets, FoldersOfClassesAndFlatOnes) {
  write("dog/b.wav"), write("dog/a.flac.wav"), write("cat/c.WAV", 7);
  folder.write("cat/readme.md", "x");
  const auto data = open();
  EXPECT_EQ(data->kind(), DatasetKind::classes);
  EXPECT_EQ(ids(*data), (Ids{"cat/c.WAV", "dog/a.flac.wav", "dog/b.wav"}));
  EXPECT_EQ(labels(*data), (Labels{0, 1, 1}));
  EXPECT_EQ(data->ignored().at("md"), 1u);
  EXPECT_EQ(sound(*data, 0).samples.size(), 7u);
  EXPECT_EQ(sound(*data, 0).rate, 100);
  const auto flat = open({}, "dog");
  EXPECT_EQ(labels(*flat), (Labels{-1, -1}));
  const auto single = open({}, "dog/b.wav");
  EXPECT_EQ(ids(*single), Ids{"b.wav"});
  EXPECT_EQ(sound(*single, 0).samples.size(), 4u);
}

TEST_F(SoundDatasets, WhatIsNoneIsRefused) {
  folder.write("a.jpg", "x");
  EXPECT_ERROR("expected sounds", open());
  EXPECT_ERROR("unknown kind", open({}, "a.jpg"));
  write("b.wav");
  EXPECT_ERROR("hold pictures", open({.kind = DatasetKind::cifar}));
  EXPECT_ERROR("only lists of sounds have folds", open({.fold = "1"}));
  EXPECT_ERROR("no length", open({.hop = 1}));
  EXPECT_ERROR("expected seconds", open({.window = -1}));
  EXPECT_ERROR("only sounds are cut", open_dataset(folder.path(), {.window = 1}));
}

TEST_F(SoundDatasets, ListsHaveFolds) {
  for (const char* file : {"a.wav", "b.wav", "c.wav", "d.wav"}) write(std::string("x/") + file);
  const std::string csv = "file,label,fold\nx/a.wav,dog,1\nx/b.wav,cat,2\nx/c.wav,emu,2\nx/d.wav,dog,3\n";
  folder.write("list.csv", csv);
  EXPECT_EQ(open({}, "list.csv")->size(), 4u);
  const auto first = open({.fold = "1"}, "list.csv"), others = open({.fold = "!1"}, "list.csv");
  EXPECT_EQ(ids(*first), Ids{"x/a.wav"});
  EXPECT_EQ(ids(*others), (Ids{"x/b.wav", "x/c.wav", "x/d.wav"}));
  // The same number means the same class in both.
  EXPECT_EQ(first->class_names(), (Ids{"cat", "dog", "emu"}));
  EXPECT_EQ(others->class_names(), first->class_names());
  EXPECT_EQ(labels(*first), Labels{1});
  EXPECT_EQ(labels(*others), (Labels{0, 2, 1}));
  EXPECT_ERROR("there is no fold '7'; there are 1, 2, 3", open({.fold = "7"}, "list.csv"));
  folder.write("list.jsonl",
               "{\"file\": \"x/a.wav\", \"label\": \"dog\", \"fold\": 1}\n"
               "{\"audio\": \"x/b.wav\", \"label\": \"cat\", \"split\": \"test\"}\n");
  EXPECT_EQ(ids(*open({.fold = "1"}, "list.jsonl")), Ids{"x/a.wav"});
  EXPECT_EQ(ids(*open({.fold = "!1"}, "list.jsonl")), Ids{"x/b.wav"});
  folder.write("plain.csv", "x/a.wav,dog\nx/b.wav,cat\n");
  EXPECT_EQ(labels(*open({}, "plain.csv")), (Labels{1, 0}));
  EXPECT_ERROR("the list has no folds", open({.fold = "1"}, "plain.csv"));
}

TEST_F(SoundDatasets, Esc50) {
  write("audio/1-100032-A-0.wav"), write("audio/2-1.wav"), write("audio/2-2.wav");
  folder.write("meta/esc50.csv",
               "filename,fold,target,category,esc10,src_file,take\n"
               "1-100032-A-0.wav,1,0,dog,True,100032,A\n2-1.wav,2,14,chirping_birds,False,1,A\n"
               "2-2.wav,2,36,vacuum_cleaner,False,2,A\n");
  for (const char* inside : {"", "meta/esc50.csv"}) {
    const auto test = open({.fold = "1"}, inside), train = open({.fold = "!1"}, inside);
    EXPECT_EQ(ids(*test), Ids{"1-100032-A-0.wav"});
    EXPECT_EQ(ids(*train), (Ids{"2-1.wav", "2-2.wav"}));
    EXPECT_EQ(test->class_names(), (Ids{"chirping_birds", "dog", "vacuum_cleaner"}));
    EXPECT_EQ(labels(*test), Labels{1});
    EXPECT_EQ(sound(*train, 1).samples.size(), 4u);
    EXPECT_EQ(ids(*open({.split = "test"}, inside)), Ids{"1-100032-A-0.wav"}) << "the paper's";
    EXPECT_EQ(ids(*open({.split = "train"}, inside)), (Ids{"2-1.wav", "2-2.wav"}));
  }
}

TEST_F(SoundDatasets, SpeechCommandsListsDecide) {
  for (const char* file : {"yes/a.wav", "yes/b.wav", "no/c.wav", "no/d.wav", "_background_noise_/n.wav"})
    write(file);
  folder.write("testing_list.txt", "no/c.wav\n");
  folder.write("validation_list.txt", "yes/b.wav\r\n");
  EXPECT_EQ(ids(*open({.split = "train"})), (Ids{"no/d.wav", "yes/a.wav"}));
  EXPECT_EQ(ids(*open({.split = "test"})), Ids{"no/c.wav"});
  const auto validation = open({.split = "validation"});
  EXPECT_EQ(ids(*validation), Ids{"yes/b.wav"});
  EXPECT_EQ(validation->class_names(), (Ids{"no", "yes"}));  // also of words that it lacks
  EXPECT_EQ(labels(*validation), Labels{1});
  EXPECT_TRUE(notes(*validation, "_background_noise_"));
  const auto all = open();
  EXPECT_EQ(all->size(), 4u);
  EXPECT_TRUE(notes(*all, "testing_list.txt"));
  EXPECT_ERROR("there is no split 'dev'", open({.split = "dev"}));
}

TEST_F(SoundDatasets, Archives) {
  {
    testing::TarWriter tar(folder / "a.tar");
    tar.file("x/1.wav", clip(5));
    tar.text("x/1.cls", "3");
    tar.file("x/2.wav", clip(6));
    tar.text("x/2.cls", "0");
  }
  const auto data = open({}, "a.tar");
  EXPECT_EQ(ids(*data), (Ids{"x/1", "x/2"}));
  EXPECT_EQ(labels(*data), (Labels{3, 0}));
  EXPECT_EQ(sound(*data, 1).samples.size(), 6u);
  const auto windows = open({.window = 0.04, .hop = 0.02}, "a.tar");
  EXPECT_EQ(ids(*windows), (Ids{"x/1@0.0", "x/1@0.02", "x/2@0.0", "x/2@0.02"}));
  EXPECT_EQ(labels(*windows), (Labels{3, 3, 0, 0}));
}

TEST_F(SoundDatasets, WindowsAreSamplesOfTheirOwn) {
  write("long.wav", 250), write("short.wav", 30);
  folder.write("none.wav", "no sound");
  const auto data = open({.window = 1, .hop = 0.5});
  EXPECT_EQ(ids(*data), (Ids{"long.wav@0.0", "long.wav@0.5", "long.wav@1.0", "long.wav@1.5",
                             "none.wav@0.0", "short.wav@0.0"}));
  for (size_t i = 0; i < 4; ++i) {
    const Sound part = sound(*data, i);
    ASSERT_EQ(part.samples.size(), 100u) << i;
    EXPECT_FLOAT_EQ(part.samples[0], float(50 * i) / 32768) << i;
  }
  EXPECT_ERROR("none.wav", sound(*data, 4));
  EXPECT_EQ(sound(*data, 5).samples.size(), 30u);
  EXPECT_EQ(data->stored_bytes(0), 44u + 500u);
  // Far apart they leave out what is between.
  EXPECT_EQ(ids(*open({.window = 0.5, .hop = 2}, "long.wav")),
            (Ids{"long.wav@0.0", "long.wav@2.0"}));
  EXPECT_EQ(open({.window = 0.1, .hop = 2.5}, "long.wav")->size(), 1u);
  // Without a hop they stand side by side; the last one is what is left.
  const auto beside = open({.window = 1});
  EXPECT_EQ(beside->size(), 5u);
  EXPECT_EQ(sound(*beside, 2).samples.size(), 50u);
}

TEST_F(SoundDatasets, OnlyTheBeginningIsDecodedWhereThatIsEnough) {
  write("long.wav", 1000);
  EXPECT_EQ(sound(*open({.seconds = 2}), 0).samples.size(), 200u);
  EXPECT_EQ(sound(*open(), 0).samples.size(), 1000u);
}

// Files that are not held in memory are read where they are decoded.
TEST_F(SoundDatasets, LargeFilesAreNotHeldInMemory) {
  const uint32_t bytes = 17 << 20;
  const std::vector<uint8_t> header = test::wav({.rate = 48000, .data_bytes = bytes}, {});
  folder.write("large.wav", header);
  fs::resize_file(folder / "large.wav", header.size() + bytes);
  const auto data = open({.seconds = 1});
  EXPECT_TRUE(data->read(0).empty());
  EXPECT_EQ(sound(*data, 0).samples.size(), 48000u);
  EXPECT_EQ(data->key(0), std::to_string(header.size() + bytes));
}

TEST(SoundsInMemory, AreADataSet) {
  const auto data = memory_dataset({"a", "b"}, std::vector<Sound>{{{0.5f}, 8000}, {{0, 1}, 16000}},
                                   {1, 0}, {"x", "y"});
  EXPECT_EQ(data->samples(), SampleKind::sound);
  EXPECT_EQ(sound_of(data->decode(1, data->read(1))).samples.size(), 2u);
  EXPECT_NE(data->key(0), data->key(1));
  EXPECT_ERROR("no samples", memory_dataset({"a"}, std::vector<Sound>{{{}, 8000}}));
}

}  // namespace
}  // namespace fungi
