// SPDX-License-Identifier: Apache-2.0
// Progress of the extractor, and what it does when it is asked to stop.
#include <gtest/gtest.h>

#include "tests/feature/extractor_fixture.h"

namespace fungi {
namespace {

using test::all_objectives;
using test::Pictures;
using test::range;
using test::tiny_backbone;

TEST(ExtractorStop, ProgressCountsSamplesAndFitStopsWhenAsked) {
  Pool pool(3);
  const Backbone backbone = tiny_backbone(pool);
  Extractor extractor(backbone, all_objectives(), pool);
  const Pictures data(20, true);
  std::atomic<bool> stop{false};
  size_t seen = 0;
  EXPECT_FALSE(extractor.fit(
      data,
      [&](size_t done, size_t) {
        seen = done;
        stop = done >= 2;
      },
      &stop));
  EXPECT_GE(seen, 2u);
  EXPECT_LT(seen, 2u + pool.threads());
  EXPECT_FALSE(extractor.ready());
  std::vector<size_t> counts;
  ASSERT_TRUE(extractor.fit(data, [&](size_t done, size_t) { counts.push_back(done); }));
  EXPECT_EQ(counts.front(), 0u) << "shown before the first sample";
  EXPECT_EQ(counts[1], 1u);

  size_t calls = 0, last = 0, failed = 0;
  extractor.extract(data, range(20), [&](size_t done, size_t bad) {
    EXPECT_GT(done, last);
    ++calls, last = done, failed = bad;
  });
  EXPECT_EQ(last, 20u);
  EXPECT_EQ(failed, 1u);
  EXPECT_GE(calls, 3u) << "at least once per thread";
}

TEST(ExtractorStop, AStopLeavesTheRestUndone) {
  Pool pool(2);
  const Backbone backbone = tiny_backbone(pool);
  ExtractorOptions options = all_objectives();
  options.objectives.resize(1);
  options.waiting_bytes = 1;  // groups of two samples
  Extractor extractor(backbone, std::move(options), pool);
  const Pictures data(40);
  const StoreRows whole = extractor.extract(data, range(40));
  ASSERT_TRUE(whole.undone.empty());
  std::atomic<bool> stop = false;
  const StoreRows part = extractor.extract(
      data, range(40), [&](size_t, size_t) { stop = true; }, &stop);
  EXPECT_GT(part.undone.size(), 0u);
  EXPECT_LT(part.undone.size(), 40u);
  std::vector<bool> undone(40, false);
  for (const size_t p : part.undone) undone[p] = true;
  for (size_t i = 0; i < 40; ++i)
    for (size_t b = 0; !undone[i] && b < whole.blocks.size(); ++b)
      EXPECT_TRUE(std::equal(whole.blocks[b].row(i),
                             whole.blocks[b].row(i) + whole.blocks[b].cols(),
                             part.blocks[b].row(i)));
  EXPECT_EQ(extractor.extract(data, range(40), {}, &stop).undone.size(), 40u);
}

}  // namespace
}  // namespace fungi
