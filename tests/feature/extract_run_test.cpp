// SPDX-License-Identifier: Apache-2.0
// A whole run as a C++ user writes it: extractor, writer, extract_to_store(). It goes on with what
// a store has, grows with its data set, and follows another store.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <utility>

#include "fungi/feature/reopen.h"
#include "tests/feature/extractor_fixture.h"
#include "tests/store/fixture.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

using test::Pictures;
using test::range;
using test::tiny_backbone;
namespace fs = std::filesystem;

class ExtractRunTest : public testing::Test {
 protected:
  ExtractorOptions simclr() const {
    ExtractorOptions o;
    o.objectives = {"kl:width=8", "simclr:width=16,negatives=3"};
    o.projection_rows = 20;
    return o;
  }
  // Everything new, as another program run would have it.
  StoreTotals run(const char* store, const Dataset& data, StoreOptions options = {},
                  const ExtractRun& run = {}) {
    Extractor extractor(backbone_, simclr(), pool_);
    StoreWriter writer(folder_ / store, extractor.spec(), std::move(options));
    return extract_to_store(extractor, data, writer, run);
  }
  Matrix<float> negatives(const char* store) const {
    return Store::open(folder_ / store).state("simclr-negatives");
  }

  test::TemporaryFolder folder_;
  Pool pool_{2};
  Backbone backbone_ = tiny_backbone(pool_);
};

TEST_F(ExtractRunTest, AStoppedRunGoesOnWithTheNegativesItHad) {
  const Pictures data(7);
  EXPECT_TRUE(run("whole", data, {.shard_size = 2}).complete);
  std::atomic<bool> stop{false};
  ExtractRun stopped;
  stopped.stop = &stop;
  stopped.support_progress = [&](size_t done, size_t) { stop = done >= 1; };
  StoreTotals totals = run("parts", data, {.shard_size = 2}, stopped);
  EXPECT_EQ(totals.missing, 7u) << "stopped before there were negatives";
  EXPECT_FALSE(totals.complete);
  stop = false;
  stopped.support_progress = {};
  stopped.progress = [&](const ExtractProgress& p) { stop = p.saved >= 2; };
  totals = run("parts", data, {.shard_size = 2}, stopped);
  EXPECT_FALSE(totals.complete);
  EXPECT_TRUE(run("parts", data, {.shard_size = 2}).complete);
  EXPECT_EQ(test::contents(folder_ / "parts"), test::contents(folder_ / "whole"));
}

TEST_F(ExtractRunTest, AGrownDataSetKeepsTheNegatives) {
  ASSERT_TRUE(run("s", Pictures(6)).complete);
  const Matrix<float> before = negatives("s");
  ASSERT_TRUE(run("s", Pictures(40)).complete);
  EXPECT_EQ(Store::open(folder_ / "s").rows(), 40u);
  EXPECT_TRUE(test::same(before, negatives("s")));
  ASSERT_TRUE(run("fresh", Pictures(40)).complete);
  EXPECT_FALSE(test::same(before, negatives("fresh"))) << "the test would prove nothing";
  // Also where the user has fitted the extractor himself.
  Extractor extractor(backbone_, simclr(), pool_);
  const Pictures more(50);
  extractor.fit(more);
  StoreWriter writer(folder_ / "s", extractor.spec());
  EXPECT_TRUE(extract_to_store(extractor, more, writer).complete);
  EXPECT_TRUE(test::same(before, negatives("s")));
}

TEST_F(ExtractRunTest, ASecondSplitFollowsTheFirst) {
  ASSERT_TRUE(run("train", Pictures(6)).complete);
  ASSERT_TRUE(run("test", Pictures(9), {.like = folder_ / "train"}).complete);
  EXPECT_TRUE(test::same(negatives("train"), negatives("test")));
}

TEST_F(ExtractRunTest, InMemoryAsInAStoreAndBrokenPicturesAreNoRows) {
  const Pictures data(7, true);
  EXPECT_EQ(run("s", data).failed, 1u);
  const FeatureSet stored = Store::open(folder_ / "s").load();
  Extractor extractor(backbone_, simclr(), pool_);
  extractor.fit(data);
  std::vector<StoreFailure> failures;
  const FeatureSet set = extract_to_memory(extractor, data, &failures);
  EXPECT_EQ(set.ids, stored.ids);
  EXPECT_EQ(set.ids.size(), 6u);
  EXPECT_EQ(set.labels, stored.labels);
  EXPECT_EQ(set.classes, stored.classes);
  EXPECT_TRUE(test::same(set.features, stored.features));
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].position, 3u);
  EXPECT_EQ(failures[0].reason, "the file is broken");
}

// A data set whose pictures cannot be read for want of something that is no fault of theirs.
class Starved : public Pictures {
 public:
  Starved() : Pictures(6) {}
  std::vector<uint8_t> read(size_t i) const override {
    fail_reading("cannot open the file", EMFILE, id(i));
  }
};

TEST_F(ExtractRunTest, RunningOutOfOpenFilesEndsTheRunAndIsNoFaultOfThePictures) {
  EXPECT_ERROR("ulimit -n", run("s", Starved()));  // while negatives are looked for
  ASSERT_TRUE(run("s", Pictures(3)).complete);
  EXPECT_ERROR("ulimit -n", run("s", Starved()));  // while rows are computed
  EXPECT_TRUE(run("s", Pictures(6)).complete);
  EXPECT_EQ(Store::open(folder_ / "s").rows(), 6u) << "nothing was recorded as a bad picture";
}

TEST_F(ExtractRunTest, ADataSetThatIsGoneEndsTheRunAndIsNoFaultOfThePictures) {
  const fs::path data = folder_ / "data", away = folder_ / "away";
  fs::create_directory(data);
  for (const char* name : {"filtered.png", "grey.jpg", "progressive.jpg"})
    fs::copy(fs::path(FUNGI_GOLDEN_DIR) / "input/images" / name, data);
  for (const bool empty : {false, true}) {  // as a disk leaves the folder that it was mounted on
    const auto opened = open_dataset(data);
    fs::rename(data, away);
    if (empty) fs::create_directory(data);
    EXPECT_ERROR("no longer where it was opened", run("s", *opened));
    Extractor plain(backbone_, ExtractorOptions{.objectives = {}}, pool_);
    EXPECT_ERROR("no longer where it was opened", plain.extract(*opened, test::range(3)));
    if (empty) fs::remove(data);
    fs::rename(away, data);
  }
  EXPECT_EQ(run("s", *open_dataset(data)).rows, 3u) << "nothing was recorded as a bad picture";
}

// Whatever happened to the list meanwhile: its bytes were there, they are no picture.
TEST_F(ExtractRunTest, ABadPictureOfAReplacedListIsRecorded) {
  fs::copy(fs::path(FUNGI_GOLDEN_DIR) / "input/images/grey.jpg", folder_ / "good.jpg");
  std::ofstream(folder_ / "bad.jpg") << "no picture";
  std::ofstream(folder_ / "list.txt") << "good.jpg\nbad.jpg\n";
  const auto opened = open_dataset(folder_ / "list.txt");
  fs::copy(folder_ / "list.txt", folder_ / "new.txt");
  fs::rename(folder_ / "new.txt", folder_ / "list.txt");
  EXPECT_EQ(run("s", *opened).failed, 1u);
}

size_t resident_bytes() {
  size_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * size_t(::sysconf(_SC_PAGESIZE));
}

// Pictures of 36 MB each, the second of which meets a shortage of memory once.
class LargePictures : public Pictures {
 public:
  LargePictures() : Pictures(8) {}
  Sample decode(size_t i, std::span<const uint8_t>, const DecodeOptions&) const override {
    if (i == 1 && !std::exchange(was_short_, true)) throw std::bad_alloc();
    Image image{4000, 3000, std::vector<uint8_t>(size_t{4000} * 3000 * 3, uint8_t(40 * i))};
    least = std::min(least, resident_bytes()), most = std::max(most, resident_bytes());
    return image;
  }
  mutable size_t least = SIZE_MAX, most = 0;

 private:
  mutable bool was_short_ = false;
};

TEST_F(ExtractRunTest, FewLargePicturesAreHeldAtATime) {
  Pool alone(1);
  Extractor extractor(test::tiny_backbone(alone), ExtractorOptions{.objectives = {}}, alone);
  const LargePictures data;
  const StoreRows rows = extractor.extract(data, test::range(8));
  EXPECT_TRUE(rows.failures.empty()) << "there was memory as soon as the others had left";
  EXPECT_NE(rows.blocks[0](1, 0), rows.blocks[0](2, 0));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which keep what is freed
  EXPECT_LT(data.most - data.least, size_t{3} * 36'000'000);
#endif
}

TEST(ReadFileBytes, SaysWhenThereAreTooManyOpenFiles) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{0, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  bool exhausted = false;
  try {
    read_file_bytes("/proc/self/status");
  } catch (const Exhausted&) {
    exhausted = true;
  }
  ::setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_TRUE(exhausted);
  EXPECT_THROW(read_file_bytes("/nothing/here"), Error);
}

TEST_F(ExtractRunTest, StateOfTheUsersOwnIsNotIgnored) {
  const Pictures data(6);
  ASSERT_TRUE(run("s", data).complete);
  Extractor extractor(backbone_, simclr(), pool_);
  StoreWriter writer(folder_ / "s", extractor.spec());
  std::vector<NamedMatrix> own = extractor.state();
  std::erase_if(own, [](const NamedMatrix& m) { return !m.name.starts_with("kl-head"); });
  ASSERT_EQ(own.size(), 2u) << "weight and bias";
  own[0].values(0, 0) += 1;
  extractor.restore(own);
  EXPECT_ERROR("keeps the state it began with", extract_to_store(extractor, data, writer));
}

}  // namespace
}  // namespace fungi
