// SPDX-License-Identifier: Apache-2.0
// What runs that were killed or stopped leave in a store when another command follows, not the same
// one again (crash_test.cpp): files of half a shard, failures of another content, folders.
#include "fungi/store/store.h"
#include "tests/store/fixture.h"

namespace fungi::test {
namespace {

bool never(const std::string&) { return false; }

std::function<bool(const std::string&)> only(std::vector<std::string> ids) {
  return [ids = std::move(ids)](const std::string& id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
}

// Throws before the first step whose text holds `part`: the disk is then as a kill leaves it.
std::function<void(const char*)> killed_at(std::string part) {
  return [part = std::move(part)](const char* step) {
    if (std::string_view(step).find(part) != std::string_view::npos) fail("killed");
  };
}

std::vector<StoreSample> with_keys(std::vector<StoreSample> samples, const std::string& key) {
  for (StoreSample& sample : samples) sample.key = key;
  return samples;
}

TEST(StoreUpdate, HalfAShardOfAKilledRewriteIsNotMovedInPlace) {
  Folder tmp;
  Extraction run;
  run.fails = never;
  auto samples = example_samples(0, 36);
  run(tmp / "s", samples);
  std::swap(samples[0], samples[7]);
  EXPECT_ERROR("killed", run(tmp / "s", samples,
                             {.shard_size = 8, .on_step = killed_at("update-1/kl-00000.npy")}));
  ASSERT_TRUE(fs::exists(tmp / "s/update-1/embedding-00000.npy"));
  // The old order again and two more: shard 0 stays as it is, the last one is rewritten.
  run(tmp / "s", example_samples(0, 38));
  EXPECT_EQ(run.computed, 2u);
  run(tmp / "fresh", example_samples(0, 38));
  expect_same_bytes(tmp / "fresh", tmp / "s", "grown after a killed rewrite");
}

TEST(StoreUpdate, HalfAShardOfAKilledRetryIsNotMovedInPlace) {
  Folder tmp;
  const auto fails = only({example_samples(3, 4)[0].id});
  Extraction run;
  run.fails = fails;
  run(tmp / "s", example_samples(0, 36));
  run.fails = never;
  EXPECT_ERROR(
      "killed",
      run(tmp / "s", example_samples(0, 36),
          {.shard_size = 8, .retry_failed = true, .on_step = killed_at("update-1/kl-00000.npy")}));
  ASSERT_TRUE(fs::exists(tmp / "s/update-1/embedding-00000.npy"));
  run(tmp / "s", example_samples(0, 38));
  run.fails = fails;
  run(tmp / "fresh", example_samples(0, 38));
  expect_same_bytes(tmp / "fresh", tmp / "s", "grown after a killed retry");
}

TEST(StoreUpdate, HalfAShardBeyondTheEndGoes) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 16));
  const auto before = contents(tmp / "s");
  EXPECT_ERROR("killed", run(tmp / "s", example_samples(0, 24),
                             {.shard_size = 8, .on_step = killed_at("kl-00002.npy")}));
  ASSERT_TRUE(fs::exists(tmp / "s/embedding-00002.npy"));
  run(tmp / "s", example_samples(0, 16));
  EXPECT_EQ(contents(tmp / "s"), before);
}

TEST(StoreUpdate, AFailureOfAnotherContentDoesNotReplaceTheRecordedOne) {
  Folder tmp;
  Extraction run;
  auto samples = with_keys(example_samples(0, 36), "100");
  run.fails = only({samples[3].id});
  run(tmp / "s", samples);
  const auto before = contents(tmp / "s");
  samples[3].key = "200";  // another file, broken as well
  EXPECT_ERROR("killed",
               run(tmp / "s", samples, {.shard_size = 8, .on_step = killed_at("commit.json")}));
  samples[3].key = "100";
  run(tmp / "s", samples);
  EXPECT_EQ(run.computed, 0u);
  EXPECT_TRUE(run.totals.complete);
  EXPECT_EQ(contents(tmp / "s"), before);
}

TEST(StoreUpdate, RetriesThatFailAgainDoNotPileUpFolders) {
  Folder tmp;
  const auto samples = example_samples(0, 36);
  Extraction run;
  run.fails = only({samples[3].id, samples[5].id, samples[20].id});
  run(tmp / "s", samples);
  const size_t rows = run.totals.rows;
  run.fails = only({samples[3].id, samples[20].id});
  run.stop_after = 1;  // as --strict: after the shard with the first failure
  for (size_t repeated = 0; repeated < 5; ++repeated) {
    run(tmp / "s", samples, {.shard_size = 8, .retry_failed = true});
    EXPECT_EQ(run.computed, repeated == 0 ? 2u : 1u) << "what was mended once is kept";
    EXPECT_LE(describe_store(tmp / "s").pending_updates, 2u);
    EXPECT_EQ(Store::open(tmp / "s").rows(), rows);
  }
  run.fails = never;
  run.stop_after = size_t(-1);
  run(tmp / "s", samples, {.shard_size = 8, .retry_failed = true});
  EXPECT_EQ(run.computed, 2u);
  run(tmp / "fresh", samples);
  expect_same_bytes(tmp / "fresh", tmp / "s", "mended at last");
}

TEST(StoreUpdate, ARewriteThatIsNotWantedAnyMoreGoes) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 60, 2));
  const auto before = contents(tmp / "s");
  run.stop_after = 1;
  run(tmp / "s", example_samples(0, 60));
  ASSERT_TRUE(fs::exists(tmp / "s/update-1"));
  run.stop_after = size_t(-1);
  run(tmp / "s", example_samples(0, 60, 2), {.shard_size = 8, .prune = true});
  EXPECT_EQ(contents(tmp / "s"), before);
}

// As `--limit` does after a growth that was stopped.
TEST(StoreUpdate, RowsOfAnUnfinishedGrowthAreNotDroppedUnasked) {
  Folder tmp;
  Extraction run;
  run.fails = never;
  run(tmp / "s", example_samples(0, 4));  // half a shard: what grows it is a rewrite
  run.stop_after = 9;
  run(tmp / "s", example_samples(0, 150));
  run.stop_after = size_t(-1);
  ASSERT_TRUE(fs::exists(tmp / "s/update-1"));
  const auto before = contents(tmp / "s");
  EXPECT_ERROR(
      "the store holds 52 samples that are not among the 20 asked for, e.g. "
      "'images/0020.jpg'",
      run(tmp / "s", example_samples(0, 20)));
  EXPECT_EQ(contents(tmp / "s"), before);
  run(tmp / "s", example_samples(0, 150));
  EXPECT_EQ(run.computed, 78u);
  run(tmp / "fresh", example_samples(0, 150));
  expect_same_bytes(tmp / "fresh", tmp / "s", "grown in two runs");
}

TEST(StoreUpdate, AnOlderRewriteGoesWithTheOneThatIsFinished) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 60, 2));
  auto samples = example_samples(0, 60);
  std::reverse(samples.begin(), samples.end());
  run.stop_after = 1;
  run(tmp / "s", samples);
  const size_t done = run.computed;
  ASSERT_TRUE(fs::exists(tmp / "s/update-1"));
  run.stop_after = size_t(-1);
  run(tmp / "s", example_samples(0, 60));
  EXPECT_EQ(run.computed, 30 - done) << "its rows are used";
  run(tmp / "fresh", example_samples(0, 60));
  expect_same_bytes(tmp / "fresh", tmp / "s", "after two rewrites");
}

TEST(StoreUpdate, ACompleteStoreStaysSoWhileItGrowsInPlace) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 16));
  const size_t rows = run.totals.rows;
  run.stop_after = 1;
  run(tmp / "s", example_samples(0, 60));
  EXPECT_FALSE(run.totals.complete);
  ASSERT_TRUE(fs::exists(tmp / "s/rows-00002.jsonl")) << "the test would prove nothing";
  EXPECT_EQ(Store::open(tmp / "s").rows(), rows);
}

TEST(StoreUpdate, FailuresAreNotGluedToALineThatAKillCut) {
  Folder tmp;
  Extraction run;
  run.fails = [](const std::string&) { return true; };
  run.stop_after = 1;
  run(tmp / "s", example_samples(0, 30));
  std::ofstream(tmp / "s/failed.jsonl", std::ios::app) << R"({"id":"ima)";
  run(tmp / "s", example_samples(0, 30));  // appends more, and stops without writing it anew
  run.stop_after = size_t(-1);
  run(tmp / "s", example_samples(0, 30));
  EXPECT_EQ(run.computed, 14u);
  run(tmp / "fresh", example_samples(0, 30));
  expect_same_bytes(tmp / "fresh", tmp / "s", "after a cut line");
}

TEST(StoreUpdate, InfoAndReadersSeeTheFailuresOfARewriteThatWaits) {
  Folder tmp;
  const auto samples = example_samples(0, 36);
  Extraction run;
  run.fails = only({samples[3].id, samples[20].id});
  run(tmp / "s", samples);
  run.fails = only({samples[20].id});
  EXPECT_ERROR("killed",
               run(tmp / "s", samples,
                   {.shard_size = 8, .retry_failed = true, .on_step = killed_at("move ")}));
  const StoreInfo info = describe_store(tmp / "s");
  EXPECT_EQ(info.manifest.failed, 1u);
  ASSERT_EQ(info.first_failed.size(), 1u);
  EXPECT_EQ(info.first_failed[0].id, samples[20].id);
  EXPECT_EQ(Store::open(tmp / "s").failed().size(), 1u);
}

}  // namespace
}  // namespace fungi::test
