// SPDX-License-Identifier: Apache-2.0
// Rows that only move, because the data set grew or the shards are others: a run tells of them
// apart from the samples it computes, and stops between their shards.
#include "fungi/feature/project_store.h"
#include "tests/feature/extractor_fixture.h"
#include "tests/support/factor_store.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

using test::Pictures;
using Counts = std::vector<std::pair<size_t, size_t>>;

// What a run told: of rows that move, and of samples that are computed.
struct Told {
  Counts moved, computed;
  std::atomic<bool> stop{false};
  size_t most = size_t(-1);  // rows moved until it stops

  ExtractRun run() {
    ExtractRun r;
    r.stop = &stop;
    r.rewrite_progress = [this](size_t done, size_t total) {
      moved.emplace_back(done, total);
      stop = done >= most;
    };
    r.progress = [this](const ExtractProgress& p) { computed.emplace_back(p.done, p.total); };
    return r;
  }
};

TEST(Rewrite, IsToldOfAndStopsBetweenShards) {
  const test::TemporaryFolder tmp;
  Pool pool(2);
  const Backbone backbone = test::tiny_backbone(pool);
  const auto run = [&](const char* store, size_t pictures, size_t shard, Told& told) {
    ExtractorOptions o;
    o.objectives = {"kl:width=8"};
    o.projection_rows = 20;
    Extractor extractor(backbone, std::move(o), pool);
    StoreWriter writer(tmp / store, extractor.spec(), {.shard_size = shard});
    return extract_to_store(extractor, Pictures(pictures), writer, told.run());
  };
  Told first, stopped, rest, fresh;
  ASSERT_TRUE(run("s", 7, 3, first).complete);
  EXPECT_TRUE(first.moved.empty());
  EXPECT_EQ(first.computed.front(), std::pair(size_t{0}, size_t{7}));

  stopped.most = 4;
  const StoreTotals totals = run("s", 9, 2, stopped);
  EXPECT_EQ(stopped.moved, (Counts{{0, 6}, {2, 6}, {4, 6}}));
  EXPECT_TRUE(stopped.computed.empty());
  EXPECT_FALSE(totals.complete);
  EXPECT_EQ(totals.rows, 4u);
  EXPECT_EQ(totals.waiting, 3u);
  EXPECT_EQ(totals.missing, 2u);
  EXPECT_EQ(Store::open(tmp / "s").rows(), 7u) << "the old one";

  EXPECT_TRUE(run("s", 9, 2, rest).complete);
  EXPECT_EQ(rest.moved, (Counts{{0, 2}, {2, 2}}));
  EXPECT_EQ(rest.computed.front(), std::pair(size_t{0}, size_t{2}));
  EXPECT_EQ(rest.computed.back(), std::pair(size_t{2}, size_t{2}));
  ASSERT_TRUE(run("fresh", 9, 2, fresh).complete);
  EXPECT_EQ(test::contents(tmp / "s"), test::contents(tmp / "fresh"));
}

TEST(Rewrite, OfAProjectedStoreAsWell) {
  const test::TemporaryFolder tmp;
  Pool pool(2);
  test::write_factor_store(tmp / "from", 20, 1);
  const auto project = [&](const char* to, Told& told) {
    return project_store(Store::open(tmp / "from"), tmp / to, {}, pool, told.run());
  };
  Told first, stopped, rest, fresh;
  ASSERT_TRUE(project("p", first).complete);
  EXPECT_TRUE(first.moved.empty());
  EXPECT_EQ(first.computed, (Counts{{0, 20}, {7, 20}, {14, 20}, {20, 20}}));
  test::write_factor_store(tmp / "from", 20, 1, StoreType::float32, 4);
  stopped.most = 8;
  const StoreTotals totals = project("p", stopped);
  EXPECT_EQ(stopped.moved, (Counts{{0, 20}, {4, 20}, {8, 20}}));
  EXPECT_FALSE(totals.complete);
  ASSERT_TRUE(project("p", rest).complete);
  EXPECT_EQ(rest.moved.front(), std::pair(size_t{0}, size_t{12}));
  EXPECT_TRUE(rest.computed.empty());
  ASSERT_TRUE(project("fresh", fresh).complete);
  EXPECT_EQ(test::contents(tmp / "p"), test::contents(tmp / "fresh"));
}

}  // namespace
}  // namespace fungi
