// SPDX-License-Identifier: Apache-2.0
// One extractor and several threads: calls wait for each other, and callbacks may ask.
#include <gtest/gtest.h>

#include <thread>

#include "tests/feature/extractor_fixture.h"
#include "tests/support/errors.h"

namespace fungi::test {
namespace {

TEST(SharedExtractor, ThreadsGetTheRowsOfOne) {
  Pool pool(2);
  const Backbone backbone = tiny_backbone(pool);
  const Pictures pictures(8);
  Extractor alone(backbone, all_objectives(), pool), shared(backbone, all_objectives(), pool);
  alone.fit(pictures);
  shared.restore(alone.state());
  const StoreRows expected = alone.extract(pictures, range(8));
  std::atomic<size_t> wrong{0}, asked{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 12; ++i) {
        const size_t one[] = {(i + t) % 8};
        const StoreRows rows = shared.extract(pictures, one, [&](size_t, size_t) {
          asked += shared.stages().rows().size() > 0 && shared.notes().size() < 99 &&
                   shared.ready() && shared.spec().blocks.size() == 5 && !shared.state().empty();
        });
        for (size_t b = 0; b < rows.blocks.size(); ++b)
          wrong += !std::equal(rows.blocks[b].row(0), rows.blocks[b].row(0) + rows.blocks[b].cols(),
                               expected.blocks[b].row(one[0]));
        if (i % 4 == t % 4) shared.restore(alone.state());
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(asked, 48u);
  size_t decoded = 0;
  for (const Stages::Row& row : shared.stages().rows())
    if (row.name == "decode") decoded = row.calls;
  EXPECT_EQ(decoded, 48u) << "no worker's times are lost";
}

TEST(SharedExtractor, OneExtractionIsDoneBeforeTheNextBegins) {
  Pool pool(2);
  const Backbone backbone = tiny_backbone(pool);
  ExtractorOptions options{.objectives = {"kl"}};
  options.waiting_bytes = 1;  // groups of two: between them the pool is free for others
  Extractor extractor(backbone, std::move(options), pool);
  const Pictures pictures(12);
  std::vector<size_t> order;  // whose sample was done, guarded by what is tested
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 5; ++i)
        extractor.extract(pictures, range(12), [&](size_t, size_t) { order.push_back(4 * i + t); });
    });
  for (std::thread& thread : threads) thread.join();
  size_t changes = 0;
  for (size_t i = 1; i < order.size(); ++i) changes += order[i] != order[i - 1];
  EXPECT_EQ(changes, 19u);
}

TEST(SharedExtractor, FitTellsWhileItRuns) {
  Pool pool(2);
  const Backbone backbone = tiny_backbone(pool);
  Extractor extractor(backbone, all_objectives(), pool);
  size_t told = 0;
  extractor.fit(Pictures(6), [&](size_t, size_t) {
    extractor.stages(), extractor.state(), extractor.spec();
    told += !extractor.ready() && extractor.notes().size() < 99;
  });
  EXPECT_GT(told, 6u);
  EXPECT_TRUE(extractor.ready());
}

TEST(SharedExtractor, ACallbackThatWouldWaitForItselfIsAnError) {
  Pool pool(3);
  const Backbone backbone = tiny_backbone(pool);
  const Pictures pictures(12);
  Extractor extractor(backbone, ExtractorOptions{.objectives = {"kl"}}, pool);
  EXPECT_ERROR("its own pool", extractor.extract(pictures, range(12), [&](size_t, size_t) {
    extractor.extract(pictures, range(1));
  }));
  EXPECT_ERROR("its own pool", extractor.extract(pictures, range(12), [&](size_t, size_t) {
    extractor.restore(extractor.state());
  }));
  EXPECT_EQ(extractor.extract(pictures, range(12)).failures.size(), 0u);
}

}  // namespace
}  // namespace fungi::test
