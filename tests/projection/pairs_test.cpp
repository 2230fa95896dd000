// SPDX-License-Identifier: Apache-2.0
// Many samples of a single pair each: every kind against the plain f64 product with its own matrix,
// and a sample alone.
#include <gtest/gtest.h>

#include <cmath>

#include "fungi/base/random.h"
#include "fungi/kernel/bfloat16.h"
#include "fungi/projection/projection.h"
#include "fungi/projection/rows.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"

namespace fungi {
namespace {

Matrix<float> normal(size_t rows, size_t cols, const char* purpose, bool rounded) {
  Matrix<float> m(rows, cols);
  const RandomStream stream(3, purpose);
  for (size_t i = 0; i < rows * cols; ++i) {
    m.data()[i] = float(stream.normal(i));
    if (rounded) m.data()[i] = rounded_to_bfloat16(m.data()[i]);
  }
  return m;
}

ProjectionOptions options_for(ProjectionKind kind, size_t rows, size_t length) {
  ProjectionOptions options;
  options.kind = kind, options.rows = rows, options.seed = 7;
  if (kind == ProjectionKind::matrix) options.matrix = normal(rows, length, "own", false);
  return options;
}

TEST(ProjectionOfPairs, DenseKindsEqualAPlainProduct) {
  for (const LayerShape layer : {LayerShape{3, 1, true}, LayerShape{17, 53, true},
                                 LayerShape{8, 40, false}, LayerShape{19, 130, true}})
    for (const ProjectionKind kind :
         {ProjectionKind::sign, ProjectionKind::sign_reference, ProjectionKind::gaussian,
          ProjectionKind::sparse, ProjectionKind::matrix})
      for (const Precision precision : {Precision::f32, Precision::bf16}) {
        constexpr size_t kRows = 131, kPairs = 11;  // more than a block of rows
        const size_t length = layer.gradient_length();
        const bool bf16 = precision == Precision::bf16;
        const Matrix<float> b = normal(kPairs, layer.outputs, "b", false),
                            a = normal(kPairs, layer.inputs, "a", bf16);
        const auto projection = Projection::make(options_for(kind, kRows, length), layer);
        const auto source = make_projection_rows(options_for(kind, kRows, length), length);
        Matrix<float> y(kPairs, kRows);
        Pool pool(2);
        projection->project_pairs(b, a, precision, y, pool);
        std::vector<float> row(length);
        Matrix<double> expected(kPairs, kRows);
        for (size_t r = 0; r < kRows; ++r) {
          source->fill(r, 0, length, row.data());
          for (size_t t = 0; t < kPairs; ++t) {
            double sum = 0;
            for (size_t i = 0; i < layer.outputs; ++i)
              for (size_t j = 0; j < layer.row_length(); ++j)
                sum += double(row[i * layer.row_length() + j]) * b(t, i) *
                       (j < layer.inputs ? a(t, j) : 1.0f);
            expected(t, r) = sum * source->scale();
          }
        }
        for (size_t t = 0; t < kPairs; ++t)
          EXPECT_LT(golden::relative_error(y.row(t), expected.row(t), kRows), 3e-6)
              << to_string(kind) << " " << layer.outputs << " " << to_string(precision);
      }
}

TEST(ProjectionOfPairs, OtherKindsDoAsForAnySample) {
  const LayerShape layer{12, 9, true};
  const Matrix<float> b = normal(5, 12, "b", false), a = normal(5, 9, "a", false);
  for (const ProjectionKind kind : {ProjectionKind::factored, ProjectionKind::none}) {
    const auto projection = Projection::make(options_for(kind, 7, layer.gradient_length()), layer);
    Matrix<float> pairs(5, projection->rows()), samples(5, projection->rows());
    std::vector<GradientFactors> list;
    for (size_t i = 0; i < 5; ++i) list.push_back({b.view().slice(i, 1), a.view().slice(i, 1)});
    Pool pool(1);
    projection->project_pairs(b, a, Precision::f32, pairs, pool);
    projection->project(list, samples, pool);
    EXPECT_EQ(std::memcmp(pairs.data(), samples.data(), 5 * projection->rows() * sizeof(float)), 0);
  }
}

TEST(ProjectionOfPairs, ASampleIsAlone) {
  const LayerShape layer{24, 31, true};
  constexpr size_t kPairs = 150;
  const Matrix<float> b = normal(kPairs, 24, "b", false), a = normal(kPairs, 31, "a", true);
  const auto projection =
      Projection::make(options_for(ProjectionKind::sign, 140, layer.gradient_length()), layer);
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    Matrix<float> all(kPairs, 140), one(1, 140);
    Pool two(2), single(1);
    projection->project_pairs(b, a, precision, all, two);
    for (const size_t t : {0, 1, 37, 149}) {
      projection->project_pairs(b.view().slice(t, 1), a.view().slice(t, 1), precision, one, single);
      EXPECT_EQ(std::memcmp(one.data(), all.row(t), 140 * sizeof(float)), 0) << t;
    }
  }
}

TEST(ProjectionOfPairs, ShapesAreChecked) {
  const LayerShape layer{4, 5, true};
  const auto projection =
      Projection::make(options_for(ProjectionKind::sign, 6, layer.gradient_length()), layer);
  Pool pool(1);
  Matrix<float> b(3, 4), a(3, 5), y(3, 6), few(2, 5), none(0, 6);
  EXPECT_ERROR("pairs", projection->project_pairs(b, few, Precision::f32, y, pool));
  EXPECT_ERROR("pairs", projection->project_pairs(b, a, Precision::f32, a, pool));
  projection->project_pairs({b.data(), 0, 4}, {a.data(), 0, 5}, Precision::f32, none, pool);
}

}  // namespace
}  // namespace fungi
