// SPDX-License-Identifier: Apache-2.0
// A run that ends early, between shards or within one: nothing is computed twice, what was readable
// stays so, and in the end there are the bytes of an undisturbed run. (Kills:
// store_crash_test.cpp.)
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

}  // namespace
}  // namespace fungi::test
