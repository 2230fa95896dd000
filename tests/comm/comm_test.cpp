// SPDX-License-Identifier: Apache-2.0
// What is made of messages: collectives on any number of ranks, alone included.
#include "fungi/comm/comm.h"

#include "fungi/comm/bytes.h"
#include "tests/support/errors.h"
#include "tests/support/ranks.h"

namespace fungi::test {
namespace {

TEST(Comm, CollectivesOnAnyNumberOfRanks) {
  for (const size_t size : {1, 2, 3, 4, 5, 8, 13}) {
    on_ranks(size, [&](Comm& comm) {
      const std::string name = std::string(comm.rank() * 1000, 'x') + std::to_string(comm.rank());
      EXPECT_EQ(comm.broadcast(comm.first() ? "all" : "none"), "all");
      const std::vector<std::string> there = comm.gather(name);
      EXPECT_EQ(there.size(), comm.first() ? size : 0);
      const std::vector<std::string> all = comm.all_gather(name);
      ASSERT_EQ(all.size(), size);
      for (size_t r = 0; r < size; ++r)
        EXPECT_EQ(all[r].size(), r * 1000 + std::to_string(r).size());
      if (comm.first()) {
        EXPECT_EQ(there, all);
      }
      comm.barrier();
    });
  }
}

// Sums of floating-point numbers depend on their order, which is that of the ranks.
TEST(Comm, SumsAreInTheOrderOfTheRanks) {
  const std::vector<double> parts{1e16, 1, -1e16, 1};
  on_ranks(4, [&](Comm& comm) {
    for (int again = 0; again < 3; ++again) {
      std::vector<double> sum{parts[comm.rank()], double(comm.rank())};
      comm.all_reduce(sum);
      EXPECT_EQ(sum, (std::vector<double>{1, 6}));
    }
  });
}

TEST(Comm, AFailureEndsTheWaitOfAll) {
  const std::vector<std::string> errors = ThreadRanks(3).run([](Comm& comm) {
    if (comm.rank() == 2) fail("the disk is full", "/data", "make room");
    comm.barrier();
  });
  for (size_t r = 0; r < 2; ++r)
    EXPECT_EQ(errors[r], "/data: rank 2 on here: the disk is full (make room)");
}

TEST(Comm, ValuesAreWhatTheyWere) {
  Matrix<float> matrix(3, 5);
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < 5; ++j) matrix(i, j) = float(i) - 0.25f * float(j);
  ByteWriter out;
  out.number(int64_t(-7)), out.string("a\0b"), out.strings({"", "x"}), out.numbers<double>({});
  out.matrix<float>(matrix);
  const std::string bytes = out.take();
  ByteReader in(bytes);
  EXPECT_EQ(in.number<int64_t>(), -7);
  EXPECT_EQ(in.string(), "a");
  EXPECT_EQ(in.strings(), (std::vector<std::string>{"", "x"}));
  EXPECT_TRUE(in.numbers<double>().empty());
  const Matrix<float> back = in.matrix<float>();
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < 5; ++j) EXPECT_EQ(back(i, j), matrix(i, j));
  EXPECT_TRUE(in.done());
  EXPECT_THROW(in.number<char>(), std::logic_error);
}

TEST(Comm, AProcessThatIsAloneNeedsNoOthers) {
  const auto comm = make_single();
  EXPECT_TRUE(comm->alone() && comm->first());
  EXPECT_EQ(comm->all_gather("me"), std::vector<std::string>{"me"});
  std::vector<double> sum{2.5};
  comm->all_reduce(sum);
  EXPECT_EQ(sum[0], 2.5);
}

}  // namespace
}  // namespace fungi::test
