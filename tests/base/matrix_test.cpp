// SPDX-License-Identifier: Apache-2.0
#include "fungi/base/matrix.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "fungi/base/parallel.h"
#include "fungi/base/stages.h"
#include "tests/support/errors.h"

namespace fungi {
namespace {

TEST(Matrix, RefusesSizesThatCannotBe) {
  EXPECT_THROW(Matrix<float>(SIZE_MAX, 2), std::bad_alloc);
  EXPECT_THROW(Matrix<float>(1, SIZE_MAX / 4), std::bad_alloc) << "wraps when it is rounded up";
  EXPECT_THROW(Matrix<float>(1, SIZE_MAX / 8 + 1), std::bad_alloc);
  EXPECT_ERROR("stride", Matrix<float>(1, 4, 2));
}

TEST(Matrix, GathersRowsThatThereAre) {
  Matrix<float> m(3, 2);
  m(2, 1) = 5;
  EXPECT_EQ(gather(m, std::vector<size_t>{2, 0})(0, 1), 5.0f);
  EXPECT_ERROR("asked for row 3 of 3", gather(m, std::vector<size_t>{2, 3}));
}

TEST(Stages, RowsOfATemporaryLiveAsLongAsALoopOverThem) {
  const auto timed = [] {
    Stages stages;
    for (const char* name : {"one", "two"}) const Stages::Scope scope(stages, name);
    return stages;
  };
  static_assert(!std::is_reference_v<decltype(timed().rows())>);
  size_t calls = 0;
  for (const Stages::Row& row : timed().rows()) calls += row.calls;
  EXPECT_EQ(calls, 2u);
}

TEST(Pool, WantsAFunction) {
  Pool pool(1);
  EXPECT_ERROR("expected a function", pool.parallel_for(1, 1, nullptr));
}

}  // namespace
}  // namespace fungi
