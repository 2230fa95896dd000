// SPDX-License-Identifier: Apache-2.0
// A run that ends early, between shards or within one: nothing is computed twice, what was readable
// stays so, and in the end there are the bytes of an undisturbed run. (Kills:
// crash_test.cpp.)
#include <nlohmann/json.hpp>

#include "fungi/store/store.h"
#include "tests/store/fixture.h"

namespace fungi::test {
namespace {

TEST(StoreStop, InterruptedRunGoesOn) {
  Folder tmp;
  Extraction whole, part;
  whole(tmp / "whole", example_samples(0, 50));
  part.stop_after = 2;
  part(tmp / "part", example_samples(0, 50));
  EXPECT_FALSE(part.totals.complete);
  EXPECT_EQ(part.totals.missing, 34u);
  EXPECT_ERROR("was not finished", Store::open(tmp / "part"));
  EXPECT_EQ(Store::open(tmp / "part", true).rows(), part.totals.rows);
  // Killed instead, it has the manifest of its start.
  auto manifest = nlohmann::json::parse(std::ifstream(tmp / "part" / "manifest.json"));
  ASSERT_EQ(manifest["shards"].size(), 2u);
  manifest["shards"] = nlohmann::json::array(), manifest["failed"] = 0;
  std::ofstream(tmp / "part" / "manifest.json") << manifest;
  const StoreManifest found = describe_store(tmp / "part").manifest;
  EXPECT_EQ(found.rows(), part.totals.rows);
  EXPECT_EQ(found.failed, part.totals.failed);
  part.stop_after = size_t(-1);
  part(tmp / "part", example_samples(0, 50));
  EXPECT_EQ(part.computed, 34u);
  expect_same_bytes(tmp / "whole", tmp / "part", "resumed");
}

TEST(StoreStop, StoppedWithinAShardGoesOn) {
  Folder tmp;
  Extraction whole;
  whole(tmp / "whole", example_samples(0, 50));
  for (const bool grown : {false, true}) {
    const fs::path folder = tmp / (grown ? "grown" : "new");
    if (grown) Extraction()(folder, example_samples(0, 50, 3));
    size_t computed = grown ? 17 : 0;
    for (size_t runs = 0; runs < 50; ++runs) {
      Extraction part;
      part.stop_within = 5;
      part(folder, example_samples(0, 50));
      computed += part.computed;
      const StoreTotals& t = part.totals;
      ASSERT_EQ(t.missing, 50 - computed) << "no sample is computed twice";
      EXPECT_EQ(t.rows + t.failed + t.waiting + t.missing, 50u);
      if (t.complete) break;
      const StoreInfo info = describe_store(folder);
      EXPECT_EQ(Store::open(folder, true).rows(), info.manifest.rows()) << "of whole shards";
      if (grown) continue;  // some of those that wait are old rows
      EXPECT_EQ(info.waiting_rows, t.waiting);
      EXPECT_LE(info.pending_updates, 3u) << "those whose shard is finished go";
    }
    expect_same_bytes(tmp / "whole", folder, "stopped often");
  }
  Extraction nothing;
  nothing.stop_within = 0;
  nothing(tmp / "nothing", example_samples(0, 50));
  EXPECT_EQ(nothing.totals.missing, 50u);
  EXPECT_EQ(describe_store(tmp / "nothing").pending_updates, 0u);
}

TEST(StoreStop, UnfinishedGrowthLeavesTheOldStoreReadable) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 60, 2));
  const size_t rows = run.totals.rows;
  run.stop_after = 1;
  run(tmp / "s", example_samples(0, 60));
  EXPECT_FALSE(run.totals.complete);
  EXPECT_EQ(Store::open(tmp / "s").rows(), rows);
  EXPECT_EQ(describe_store(tmp / "s").pending_updates, 1u);
  // The data set changes once more before the rewrite is done: what it has computed is still used.
  const size_t done = run.computed;
  run.stop_after = size_t(-1);
  run(tmp / "s", example_samples(0, 61));
  EXPECT_EQ(run.computed, 31 - done);
  Extraction fresh;
  fresh(tmp / "fresh", example_samples(0, 61));
  expect_same_bytes(tmp / "fresh", tmp / "s", "grown twice");
}

TEST(StoreStop, RowsThatOnlyMoveAreWrittenByPutAndMayBeStoppedBetween) {
  Folder tmp;
  Extraction run, fresh;
  run(tmp / "s", example_samples(0, 60));
  const size_t rows = run.totals.rows;
  fresh(tmp / "fresh", example_samples(0, 60), {.shard_size = 11});
  size_t shards = 0;
  StoreOptions options{.shard_size = 11};
  options.on_step = [&](const char* step) {
    shards += std::string_view(step).starts_with("write ") &&
              std::string_view(step).find("/rows-") != std::string_view::npos;
  };
  {
    StoreWriter writer(tmp / "s", example_spec(), options);
    size_t copied = 0;
    for (const StoreWork& work : writer.plan(example_samples(0, 60), kClasses)) {
      EXPECT_TRUE(work.samples.empty());
      copied += work.copied;
    }
    EXPECT_EQ(copied, rows);
    EXPECT_EQ(shards, 0u) << "it may take long: plan() leaves it to put()";
    EXPECT_FALSE(writer.finish().complete);
  }
  run.stop_after = 2;
  run(tmp / "s", example_samples(0, 60), options);
  EXPECT_EQ(shards, 2u);
  EXPECT_FALSE(run.totals.complete);
  EXPECT_EQ(run.totals.missing, 0u);
  EXPECT_EQ(run.totals.rows + run.totals.waiting, rows);
  EXPECT_EQ(Store::open(tmp / "s").rows(), rows) << "the old one";
  const StoreInfo info = describe_store(tmp / "s");
  EXPECT_EQ(info.pending_updates, 1u);
  EXPECT_NE(to_text(info).find("a rewrite is not finished: repeat"), std::string::npos);
  run.stop_after = size_t(-1);
  shards = 0;
  run(tmp / "s", example_samples(0, 60), options);
  EXPECT_EQ(shards, 4u) << "it goes on where it was";
  EXPECT_EQ(run.computed, 0u);
  expect_same_bytes(tmp / "fresh", tmp / "s", "rewritten in two runs");
}

TEST(StoreStop, ShardsThatOnlyMoveComeFirst) {
  Folder tmp;
  Extraction run;
  run.fails = [](const std::string&) { return false; };
  run(tmp / "s", example_samples(1, 41));
  StoreWriter writer(tmp / "s", example_spec(), {.shard_size = 8});
  const auto samples = example_samples(0, 41);
  const std::vector<StoreWork> works = writer.plan(samples, kClasses);
  ASSERT_EQ(works.size(), 6u);
  EXPECT_EQ(works[0].shard, 1u);
  EXPECT_EQ(works[0].copied, 8u);
  EXPECT_EQ(works[5].samples, std::vector<size_t>{0});
  EXPECT_EQ(works[5].copied, 7u);
  StoreRows wrong;
  wrong.failures.push_back({0, "decode", ""});
  EXPECT_ERROR("expected 2 blocks, found 0", writer.put(works[0], wrong));
  EXPECT_ERROR("expected 2 blocks, found 0", writer.put(works[5], {}));
  writer.put(works[0], {});
  EXPECT_ERROR("was put already", writer.put(works[0], {}));
}

}  // namespace
}  // namespace fungi::test
