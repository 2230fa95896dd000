// SPDX-License-Identifier: Apache-2.0
// Oracle: SPEC 7.1, confirmed with torch.
#include "fungi/base/random.h"

#include <gtest/gtest.h>

namespace fungi {
namespace {

TEST(TorchRandom, FirstUniforms) {
  TorchRandom r42(42), r0(0);
  for (float expected : {0.88226926f, 0.91500396f, 0.38286376f, 0.95930564f, 0.39044821f,
                         0.60089535f, 0.25657248f, 0.79364133f, 0.94077146f, 0.13318592f})
    EXPECT_FLOAT_EQ(r42.uniform(), expected);
  for (float expected :
       {0.49625659f, 0.76822180f, 0.08847743f, 0.13203049f, 0.30742282f, 0.63407868f})
    EXPECT_FLOAT_EQ(r0.uniform(), expected);
}

TEST(TorchRandom, Permutations) {
  using V = std::vector<uint32_t>;
  EXPECT_EQ(TorchRandom(42).permutation(10), (V{2, 6, 1, 8, 4, 5, 0, 9, 3, 7}));
  EXPECT_EQ(TorchRandom(0).permutation(10), (V{4, 1, 7, 5, 3, 9, 0, 8, 6, 2}));
  const V big = TorchRandom(42).permutation(1020);
  EXPECT_EQ(V(big.begin(), big.begin() + 8), (V{642, 684, 312, 925, 966, 470, 574, 729}));
}

TEST(RandomStream, IsAFunctionOfItsKeyAlone) {
  const RandomStream a(1, "crops", 7), b(1, "crops", 7), c(1, "crops", 8), d(1, "heads", 7);
  EXPECT_EQ(a.bits(3), b.bits(3));
  EXPECT_NE(a.bits(3), c.bits(3));
  EXPECT_NE(a.bits(3), d.bits(3));
}

TEST(RandomStream, Moments) {
  const RandomStream s(5, "moments");
  double mean = 0, square = 0, uniform = 0;
  constexpr int n = 200000;
  for (int i = 0; i < n; ++i) {
    const double x = s.normal(i);
    mean += x / n, square += x * x / n, uniform += s.uniform(i) / n;
  }
  EXPECT_NEAR(mean, 0, 0.01);
  EXPECT_NEAR(square, 1, 0.02);
  EXPECT_NEAR(uniform, 0.5, 0.005);
}

}  // namespace
}  // namespace fungi
