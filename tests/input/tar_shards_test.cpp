// SPDX-License-Identifier: Apache-2.0
// Many compressed shards: what stays open and in memory is bounded, and every order and thread gets
// the same bytes.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <numeric>
#include <random>
#include <thread>

#include "fungi/input/dataset.h"
#include "fungi/input/tar_shard.h"
#include "tests/input/pattern.h"
#include "tests/input/tar_writer.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;
using testing::TarWriter;

std::vector<uint8_t> content(size_t shard, size_t member) {
  std::vector<uint8_t> bytes(1000, uint8_t(member));
  bytes[0] = uint8_t(shard);
  return bytes;
}

fs::path write_shard(const TemporaryFolder& root, size_t shard, size_t members) {
  const fs::path file = root.path() / fmt::format("{:03}.tar.gz", shard);
  TarWriter tar(file);
  for (size_t m = 0; m < members; ++m)
    tar.file(fmt::format("{:03}-{}.png", shard, m), content(shard, m));
  return file;
}

size_t open_files() {
  const fs::directory_iterator files("/proc/self/fd");
  return size_t(std::distance(begin(files), end(files)));
}

TEST(TarShards, AShardIsClosedBehindItsLastPicture) {
  const TemporaryFolder root;
  for (size_t s = 0; s < 4; ++s) write_shard(root, s, 3);
  const auto data = open_dataset(root.path());
  const size_t before = open_files();
  for (const size_t m : {0u, 1u, 2u}) {
    for (size_t s = 0; s < 4; ++s) EXPECT_EQ(data->read(3 * s + m), content(s, m));
    EXPECT_EQ(open_files(), before + (m < 2 ? 4 : 0)) << m;
  }
  for (const size_t m : {2u, 1u, 0u}) {  // those in front of it are kept
    for (size_t s = 0; s < 4; ++s) EXPECT_EQ(data->read(3 * s + m), content(s, m));
    EXPECT_EQ(open_files(), before) << m;
  }
}

TEST(TarShards, OnlyAFewAreOpenAtOnce) {
  const TemporaryFolder root;
  for (size_t s = 0; s < 40; ++s) write_shard(root, s, 3);
  const auto data = open_dataset(root.path());
  const size_t before = open_files();
  for (const size_t m : {0u, 1u, 2u, 0u})  // each is closed before its next picture
    for (size_t s = 0; s < 40; ++s) {
      EXPECT_EQ(data->read(3 * s + m), content(s, m)) << s << ", " << m;
      EXPECT_LE(open_files(), before + dataset::Holdings().most_readers);
    }
}

// Another run may have them: no picture is to be recorded as bad.
TEST(TarShards, NoFileLeftToOpenIsNotTheArchivesFault) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer opens files to look at an exception; use another build";
#endif
  const TemporaryFolder root;
  write_shard(root, 0, 3);
  const auto data = open_dataset(root.path());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{3, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_THROW(data->read(0), Exhausted);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(data->read(0), content(0, 0));
}

class Shards : public ::testing::Test {
 protected:
  static constexpr size_t kShards = 6, kMembers = 9;

  Shards() {
    for (size_t s = 0; s < kShards; ++s) {
      shards_.push_back(std::make_unique<dataset::Shard>(write_shard(root_, s, kMembers), held_));
      shards_[s]->set_compressed(true);
      for (size_t m = 0; m < kMembers; ++m) shards_[s]->add(member(m));
    }
  }
  static dataset::Member member(size_t m) { return {m + 1, 0, 1000}; }
  void expect_member(size_t s, size_t m) {
    EXPECT_EQ(shards_[s]->read(member(m)), content(s, m)) << s << ", " << m;
  }

  const TemporaryFolder root_;
  dataset::Holdings held_;
  std::vector<std::unique_ptr<dataset::Shard>> shards_;
};

TEST_F(Shards, ShareOneBudgetForWhatIsReadAhead) {
  held_.most_bytes = 20'000;
  for (size_t s = 0; s < kShards; ++s) {
    expect_member(s, kMembers - 1);
    EXPECT_EQ(held_.bytes, std::min<size_t>(8000 * (s + 1), 20'000));
  }
  // What was read last is still there, the first of the shards has nothing left.
  std::vector<const dataset::Shard*> holding(held_.shards.begin(), held_.shards.end());
  EXPECT_EQ(holding, (std::vector<const dataset::Shard*>{shards_[5].get(), shards_[4].get(),
                                                         shards_[3].get()}));
  for (size_t m = 0; m < kMembers - 1; ++m) expect_member(5, m);
  EXPECT_EQ(held_.bytes, 12'000u) << "taken, and nothing read again";
  for (size_t s = 0; s < kShards; ++s) {
    for (size_t m = 0; m < kMembers; ++m) expect_member(s, m);
    EXPECT_LE(held_.bytes, 20'000u);
  }
}

TEST_F(Shards, HoldNothingAfterAWalkInOrder) {
  for (size_t s = 0; s < kShards; ++s)
    for (size_t m = 0; m < kMembers; ++m) {
      expect_member(s, m);
      EXPECT_EQ(held_.bytes, 0u);
    }
}

TEST_F(Shards, KeepWhatLinksWillAskForUntilAllHaveIt) {
  for (int link = 0; link < 2; ++link) shards_[0]->add(member(3));
  for (size_t m = 0; m < 3; ++m) expect_member(0, m);
  for (const size_t expected : {1000u, 1000u, 0u}) {
    expect_member(0, 3);
    EXPECT_EQ(held_.bytes, expected);
  }
}

TEST_F(Shards, GiveTheSameBytesInAnyOrderToAnyThread) {
  held_.most_bytes = 5'000;
  held_.most_readers = 2;
  std::vector<std::jthread> threads;
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<size_t> order(kShards * kMembers);
      std::iota(order.begin(), order.end(), size_t{0});
      std::shuffle(order.begin(), order.end(), std::mt19937(t));
      for (const size_t i : order) expect_member(i / kMembers, i % kMembers);
    });
  threads.clear();
  EXPECT_LE(held_.bytes, 5'000u);
}

}  // namespace
}  // namespace fungi
