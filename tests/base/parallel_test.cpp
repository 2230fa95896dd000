// SPDX-License-Identifier: Apache-2.0
#include "fungi/base/parallel.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <thread>
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
        most.rlim_cur = size_t{1} << 30;  // a hundred stacks or so, whatever `ulimit -s` says
        pthread_attr_t stacks;
        pthread_attr_init(&stacks);
        pthread_attr_setstacksize(&stacks, size_t{8} << 20);
        pthread_setattr_default_np(&stacks);
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

TEST(Pool, CallersFromSeveralThreadsWaitForEachOther) {
  Pool pool(2);
  std::atomic<int> inside = 0, wrong = 0;
  std::vector<std::atomic<int>> visits(4000);
  const auto caller = [&](size_t first) {
    for (size_t call = 0; call < 100; ++call) {
      const size_t base = first + 20 * call;
      pool.parallel_for(20, 1, [&, base](size_t i, size_t, unsigned) {
        wrong += ++inside > 2;
        ++visits[base + i];
        --inside;
      });
    }
  };
  std::thread other(caller, 2000);
  caller(0);
  other.join();
  EXPECT_EQ(wrong, 0) << "two ranges ran at once";
  for (auto& v : visits) EXPECT_EQ(v, 1);
}

TEST(Pool, ABodyThatCallsItsOwnPoolIsAnError) {
  Pool pool(2), another(2);
  const auto nothing = [](size_t, size_t, unsigned) {};
  const auto call = [&](Pool& inner) {
    pool.parallel_for(4, 1, [&](size_t, size_t, unsigned) { inner.parallel_for(4, 1, nothing); });
  };
  EXPECT_THROW(call(pool), Error);
  EXPECT_NO_THROW(call(another));
  Pool alone(1);
  const auto back = [&](size_t, size_t, unsigned) { pool.parallel_for(1, 1, nothing); };
  const auto through = [&](size_t, size_t, unsigned) { alone.parallel_for(1, 1, back); };
  EXPECT_THROW(pool.parallel_for(1, 1, through), Error) << "through another pool";
  pool.parallel_for(4, 1, nothing);
}

TEST(Cpu, TheMemoryOfAContainer) {
  EXPECT_EQ(parse_memory_limit("4294967296"), size_t{1} << 32);
  for (const char* none : {"", "max", "0", "-1", "12 kB", "99999999999999999999999"})
    EXPECT_EQ(parse_memory_limit(none), SIZE_MAX) << none;
  EXPECT_GT(cpu().memory_bytes, size_t{1} << 20);
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
