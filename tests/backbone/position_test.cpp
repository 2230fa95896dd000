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

// SSAST's table of 8x64 for 12 rows of bins and fewer columns (SPEC 4.3), as torch's interpolate
// has it after the authors' cut.
TEST(Positions, SsastsTableIsCutToItsCentreAndStretched) {
  Matrix<float> table(8 * 64, 1);
  for (size_t i = 0; i < table.rows(); ++i) table(i, 0) = float(std::sin(0.37 * double(i)));
  struct Case {
    size_t columns;
    double corners[5][3], sum;
  };
  const Case cases[] = {{50,
                         {{0.52404422, 0.18059623, 0.95544016},
                          {0.71576488, 0.58928919, 0.68055171},
                          {-0.80392957, -0.86871415, -0.38741469},
                          {-0.09735266, -0.40298593, 0.49580303},
                          {-0.96247971, -0.79922342, -0.90271086}},
                         -0.27512018},
                        {12,
                         {{-0.19398426, -0.53560317, 0.90167600},
                          {0.37867236, 0.11995175, 0.28923616},
                          {-0.81386596, -0.64877480, 0.24400133},
                          {-0.65795904, -0.81863999, 0.84854925},
                          {-0.52199113, -0.17823122, -0.37019199}},
                         -1.26027510}};
  for (const Case& c : cases) {
    const Matrix<float> out =
        resize_positions(table, 8, 64, 12, c.columns, PositionResize::cut_bilinear);
    const size_t rows[] = {0, 1, 5, 6, 11}, columns[] = {0, 1, c.columns - 1};
    double sum = 0;
    for (size_t i = 0; i < out.rows(); ++i) sum += double(out(i, 0));
    EXPECT_NEAR(sum, c.sum, 1e-3);
    for (size_t i = 0; i < 5; ++i)
      for (size_t j = 0; j < 3; ++j)
        EXPECT_NEAR(out(rows[i] * c.columns + columns[j], 0), c.corners[i][j], 1e-5)
            << rows[i] << " " << columns[j];
  }
}

TEST(Positions, AShorterWhisperHasTheFirstOfThem) {
  Matrix<float> table(5, 2);
  for (size_t i = 0; i < 10; ++i) table.data()[i] = float(i);
  const Matrix<float> out = resize_positions(table, 1, 5, 1, 3, PositionResize::cut);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(out.data()[i], float(i));
}

}  // namespace
}  // namespace fungi
