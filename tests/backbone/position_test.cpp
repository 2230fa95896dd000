// SPDX-License-Identifier: Apache-2.0
// Position tables: the printed rows of SPEC 7.4 for the families' own bicubic (kernel D), what
// every kind of resize has in common, and T5's buckets.
#include "fungi/backbone/position.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/print.h"

namespace fungi {
namespace {

// sin(0.5 i), brought from `from` to `to` places.
std::vector<double> resized_sine(size_t from, size_t to, PositionResize how) {
  const Matrix<double> w = position_resize_weights(from, to, how);
  std::vector<double> out(to);
  for (size_t i = 0; i < to; ++i)
    for (size_t j = 0; j < from; ++j) out[i] += w(i, j) * std::sin(0.5 * double(j));
  return out;
}

void expect_ends(const std::vector<double>& x, const std::vector<double>& first,
                 const std::vector<double>& last) {
  for (size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(x[i], first[i], 6e-9) << i;
  for (size_t i = 0; i < last.size(); ++i)
    EXPECT_NEAR(x[x.size() - last.size() + i], last[i], 6e-9) << i << " of the last";
}

TEST(Positions, KernelDPrintsTheDigits) {
  expect_ends(resized_sine(14, 32, PositionResize::bicubic_offset),
              {-0.05227063, 0.05765768, 0.24949646, 0.49574658}, {0.13918079, 0.26640173});
  expect_ends(resized_sine(37, 16, PositionResize::bicubic_offset),
              {0.27917462, 0.99485250, 0.48123271, -0.59310073}, {-0.63383929, -0.95394657});
}

// SPEC 7.5.
TEST(Positions, RelativeBucketsAsPrinted) {
  for (const auto& [offset, bucket] : std::initializer_list<std::pair<long, size_t>>{
           {-128, 15}, {-64, 14}, {-46, 13}, {-32, 12}, {-23, 11}, {-16, 10}, {-12, 9},
           {-11, 8},   {-8, 8},   {-7, 7},   {-1, 1},   {0, 0},    {1, 17},   {7, 23},
           {8, 24},    {12, 25},  {16, 26},  {23, 27},  {32, 28},  {64, 30},  {128, 31}})
    EXPECT_EQ(relative_bucket(offset, 32, 128), bucket) << offset;
  EXPECT_EQ(relative_bucket(-5000, 32, 128), 15u) << "all that is far shares the last one";
  EXPECT_EQ(relative_bucket(5000, 32, 128), 31u);
}

TEST(Positions, EveryResizeKeepsAConstant) {
  for (const auto how :
       {PositionResize::antialias_bicubic, PositionResize::bicubic_offset, PositionResize::bicubic,
        PositionResize::bicubic_corners, PositionResize::bilinear, PositionResize::cut_bilinear})
    for (const auto& [from, to] : {std::pair<size_t, size_t>{14, 32}, {37, 16}, {1, 3}, {4, 1}}) {
      const Matrix<double> w = position_resize_weights(from, to, how);
      for (size_t i = 0; i < to; ++i) {
        double sum = 0;
        for (size_t j = 0; j < from; ++j) sum += w(i, j);
        EXPECT_NEAR(sum, 1, 1e-12) << to_string(how) << " " << from << " to " << to << ", " << i;
      }
    }
}

}  // namespace
}  // namespace fungi
