// SPDX-License-Identifier: Apache-2.0
// Oracles: SPEC 7.1 (the references' sign matrices) and SPEC 7.3 (a projected gradient).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include "fungi/base/cpu.h"
#include "fungi/base/random.h"
#include "fungi/projection/projection.h"
#include "fungi/projection/rows.h"

namespace fungi {
namespace {

std::unique_ptr<ProjectionRows> reference_rows(size_t rows, size_t length) {
  ProjectionOptions options;
  options.kind = ProjectionKind::sign_reference;
  options.rows = rows;
  return make_projection_rows(std::move(options), length);
}

TEST(ReferenceSigns, FirstSixtyFour) {
  float row[64];
  reference_rows(1, 64)->fill(0, 0, 64, row);
  const std::string expected = "++-+-+-++-+++++-++-+---+----+-+-++-++++-+-+++-+++----++++-+-+-+-";
  for (size_t j = 0; j < 64; ++j) EXPECT_EQ(row[j], expected[j] == '+' ? 1.0f : -1.0f) << j;
}

struct WholeMatrix {
  size_t rows, length;
  uint64_t ones, ones_in_row_0, hash;
  double y[4], y_last;
  friend void PrintTo(const WholeMatrix& m, std::ostream* out) {
    *out << m.rows << "x" << m.length;
  }
};

class ReferenceMatrix : public testing::TestWithParam<WholeMatrix> {};

TEST_P(ReferenceMatrix, HasThePublishedChecksum) {
  const WholeMatrix& expected = GetParam();
  const auto source = reference_rows(expected.rows, expected.length);
  std::vector<float> row(expected.length), v(expected.length);
  for (size_t j = 0; j < expected.length; ++j) v[j] = static_cast<float>(j % 7) - 3;
  std::string packed(expected.length / 8, '\0');  // all lengths here are multiples of 8
  // The published hashes begin with this number, one digit short of FNV's own offset.
  uint64_t ones = 0, ones_in_row_0 = 0, hash = 1469598103934665603u;
  std::vector<double> y;
  for (size_t r = 0; r < expected.rows; ++r) {
    source->fill(r, 0, expected.length, row.data());
    float sums[8] = {};  // of whole numbers below 2^24: exact
    for (size_t j = 0; j < expected.length; j += 8) {
      unsigned byte = 0;
      for (size_t bit = 0; bit < 8; ++bit) {
        byte |= unsigned{row[j + bit] > 0} << bit;
        sums[bit] += row[j + bit] * v[j + bit];
      }
      ones += static_cast<unsigned>(std::popcount(byte));
      packed[j / 8] = static_cast<char>(byte);
    }
    if (r == 0) ones_in_row_0 = ones;
    hash = fnv1a64(packed, hash);
    y.push_back(std::accumulate(sums, sums + 8, 0.0));
  }
  EXPECT_EQ(ones, expected.ones);
  EXPECT_EQ(ones_in_row_0, expected.ones_in_row_0);
  EXPECT_EQ(hash, expected.hash);
  for (size_t r = 0; r < 4; ++r) EXPECT_EQ(y[r], expected.y[r]);
  EXPECT_EQ(y.back(), expected.y_last);
}

INSTANTIATE_TEST_SUITE_P(
    Specification, ReferenceMatrix,
    testing::Values(
        WholeMatrix{384, 147840, 28382128, 74141, 0xfc6cc15e2e36cc94, {102, -1448, 404, 364}, 1284},
        WholeMatrix{
            512, 262144, 67102985, 131069, 0x1d984c6e4d1e87ca, {-941, -719, 793, 1311}, -687},
        WholeMatrix{
            768, 590592, 226771842, 295306, 0xc8943b0b024751be, {-523, 2073, -3757, -1241}, -189}),
    [](const auto& p) { return fmt::format("{}x{}", p.param.rows, p.param.length); });

TEST(Projection, OfTheMiniTransformersKlGradient) {
  const float a[] = {1.35466837f,    -0.267734552f, 0.233711676f,   -0.15212028f,
                     -0.0217032776f, -0.773031673f, -0.0030605807f, -0.0689254825f};
  const float b[] = {7.31197522e-06f, 1.52673477e-06f,  -3.05305299e-06f, 7.98551358e-06f,
                     4.11638027e-06f, -9.84767703e-06f, 2.91697639e-07f,  -8.33157145e-06f};
  ProjectionOptions options;
  options.kind = ProjectionKind::sign_reference;
  options.rows = 4;
  const auto projection = Projection::make(std::move(options), {8, 8, true});
  const GradientFactors sample = {{b, 1, 8}, {a, 1, 8}};
  Matrix<float> y(1, 4);
  Pool pool(1);
  projection->project({&sample, 1}, y, pool);
  const double expected[] = {7.09051723e-06, 8.70909262e-06, -2.47106738e-05, 6.31972366e-06};
  for (size_t r = 0; r < 4; ++r) EXPECT_NEAR(y(0, r), expected[r], 1e-11);
  normalise({y.data(), 4});
  const double unit[] = {0.254423279, 0.312501307, -0.886673067, 0.226765518};
  for (size_t r = 0; r < 4; ++r) EXPECT_NEAR(y(0, r), unit[r], 1e-6);
}

TEST(Projection, AnF32RunIsF32Throughout) {
  EXPECT_EQ(projection_precision(Precision::f32), Precision::f32);
  EXPECT_EQ(projection_precision(Precision::bf16),
            kernel::fastest_precision(best_isa()));
  EXPECT_EQ(projection_precision(Precision::int8), kernel::fastest_precision(best_isa()));
}

}  // namespace
}  // namespace fungi
