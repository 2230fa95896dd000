// SPDX-License-Identifier: Apache-2.0
// An index of codes: its files do not depend on how much memory there was to build it in, nor on
// threads. What it finds is tested with the bank that it is made for.
#include "fungi/search/code_index.h"

#include <gtest/gtest.h>

#include "fungi/base/random.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

TEST(CodeIndex, IsTheSameHoweverManyPassesAndThreadsBuiltIt) {
  Matrix<float> rows(700, 30);
  const RandomStream random(3, "rows");
  for (size_t i = 0; i < rows.rows() * rows.cols(); ++i) rows.data()[i] = float(random.normal(i));
  const test::TemporaryFolder root;
  Pool one(1), two(2);
  CodeIndex::build(rows, root / "whole", {.lists = 9}, one);
  const auto expected = test::contents(root / "whole");
  // 700 rows of 64 codes: a pass for each list, then two or three lists together.
  for (size_t held : {size_t(1), size_t(16000)}) {
    const auto folder = root / std::to_string(held);
    CodeIndex::build(rows, folder, {.lists = 9, .held_bytes = held}, two);
    EXPECT_TRUE(test::contents(folder) == expected) << held;
  }
}

}  // namespace
}  // namespace fungi
