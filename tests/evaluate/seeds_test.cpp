// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/seeds.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace fungi {
namespace {

TEST(Seeds, MeanAndDeviationAreNumpys) {
  // numpy.mean, numpy.std of [0.5, 0.25, 0.75, 1.0]
  const Spread spread = spread_of({0.5, 0.25, 0.75, 1.0});
  EXPECT_EQ(spread.mean, 0.625);
  EXPECT_DOUBLE_EQ(spread.deviation, 0.2795084971874737);
  EXPECT_EQ(spread_of({0.5}).deviation, 0);
}

TEST(Seeds, StandInNamesOfStores) {
  EXPECT_EQ(with_seed("a-{seed}/{seed}", 12), "a-12/12");
  EXPECT_EQ(with_seed("plain", 12), "plain");
  EXPECT_TRUE(names_seed("a-{seed}"));
  EXPECT_FALSE(names_seed("a-seed"));
}

TEST(Seeds, WithoutAnEffectAreMistakes) {
  check_seeds({1, 2}, {.stores = true});
  check_seeds({1, 2}, {.draws = true});
  check_seeds({}, {.draws = true});
  EXPECT_ERROR("{seed}", check_seeds({1, 2}, {}));
  EXPECT_ERROR("there are no seeds", check_seeds({}, {.stores = true}));
  EXPECT_ERROR("twice", check_seeds({1, 2, 1}, {.draws = true}));
}

}  // namespace
}  // namespace fungi
