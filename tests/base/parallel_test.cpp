// SPDX-License-Identifier: Apache-2.0
#include "fungi/base/parallel.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <vector>

#include "fungi/base/cpu.h"
#include "fungi/base/error.h"
#include "fungi/base/matrix.h"

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

TEST(Pool, ThreadsThatCannotBeStartedAreAnError) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need more address space than this test leaves; use another build";
#endif
  // Within a child: the limit stays for the life of a process.
  EXPECT_EXIT(
      {
        rlimit most{};
        getrlimit(RLIMIT_AS, &most);
        most.rlim_cur = size_t{1} << 30;  // a hundred stacks or so
        setrlimit(RLIMIT_AS, &most);
        try {
          const Pool pool(1000);
        } catch (const Error& e) {
          std::_Exit(e.message().find("1000 threads") != std::string::npos ? 7 : 8);
        }
        std::_Exit(9);
      },
      testing::ExitedWithCode(7), "");
}

TEST(Cpu, TheQuotaOfAContainerIsRoundedUp) {
  EXPECT_EQ(parse_quota("max 100000"), 0u);
  EXPECT_EQ(parse_quota("200000 100000"), 2u);
  EXPECT_EQ(parse_quota("150000 100000"), 2u);
  EXPECT_EQ(parse_quota("1000 100000"), 1u);
  for (const char* none : {"", "-1 100000", "0 0", "100000", "x y", "1 0"})
    EXPECT_EQ(parse_quota(none), 0u) << none;
}

TEST(Matrix, WhatWasMovedFromIsEmpty) {
  Matrix<float> a(4, 3), b = std::move(a), c;
  EXPECT_TRUE(a.empty() && a.rows() == 0 && a.view().data == nullptr);
  c = std::move(b);
  EXPECT_TRUE(b.empty() && b.stride() == 0);
  EXPECT_EQ(c.rows(), 4u);
}

TEST(Matrix, SizesBeyondTheAddressSpaceAreNoSmallBuffers) {
  constexpr size_t huge = size_t{1} << 62;
  EXPECT_THROW(Matrix<float>(huge, 4), std::bad_alloc);
  EXPECT_THROW(Matrix<float>(huge, 1), std::bad_alloc);
  EXPECT_THROW(Matrix<double>(SIZE_MAX, SIZE_MAX), std::bad_alloc);
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
