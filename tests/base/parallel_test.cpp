// SPDX-License-Identifier: Apache-2.0
#include "fungi/base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace fungi {
namespace {

TEST(Pool, VisitsEveryIndexOnce) {
  for (unsigned threads : {1u, 2u, 5u}) {
    Pool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (size_t count : {0u, 1u, 7u, 1000u}) {
      std::vector<std::atomic<int>> visits(count);
      pool.parallel_for(count, 3, [&](size_t begin, size_t end, unsigned worker) {
        EXPECT_LT(worker, threads);
        EXPECT_LE(end - begin, 3u);
        for (size_t i = begin; i < end; ++i) ++visits[i];
      });
      for (auto& v : visits) EXPECT_EQ(v, 1);
    }
  }
}

TEST(Pool, RethrowsAndStaysUsable) {
  Pool pool(3);
  EXPECT_THROW(pool.parallel_for(100, 1,
                                 [](size_t i, size_t, unsigned) {
                                   if (i == 5) throw std::runtime_error("x");
                                 }),
               std::runtime_error);
  std::atomic<int> sum = 0;
  pool.parallel_for(10, 1, [&](size_t i, size_t, unsigned) { sum += int(i); });
  EXPECT_EQ(sum, 45);
}

}  // namespace
}  // namespace fungi
