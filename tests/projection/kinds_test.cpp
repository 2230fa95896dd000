// SPDX-License-Identifier: Apache-2.0
// Every kind against a plain f64 product with its own matrix, bit identity over batches and
// threads, and the statistics that make it a projection: E⟨y, y'⟩ = ⟨M, M'⟩.
#include <gtest/gtest.h>

#include <cmath>

#include "fungi/base/random.h"
#include "fungi/projection/projection.h"
#include "fungi/projection/rows.h"

namespace fungi {
namespace {

struct Samples {
  Matrix<float> b, a;
  std::vector<GradientFactors> list;
};

// Sample s has terms[s] factor pairs.
Samples random_samples(const std::vector<size_t>& terms, const LayerShape& layer, uint64_t seed) {
  size_t total = 0;
  for (const size_t t : terms) total += t;
  Samples samples{Matrix<float>(total, layer.outputs), Matrix<float>(total, layer.inputs), {}};
  const RandomStream b(seed, "b"), a(seed, "a");
  for (size_t i = 0; i < total * layer.outputs; ++i)
    samples.b.data()[i] = static_cast<float>(b.normal(i));
  for (size_t i = 0; i < total * layer.inputs; ++i)
    samples.a.data()[i] = static_cast<float>(a.normal(i));
  size_t first = 0;
  for (const size_t t : terms) {
    samples.list.push_back({samples.b.view().slice(first, t), samples.a.view().slice(first, t)});
    first += t;
  }
  return samples;
}

std::vector<double> plain_gradient(const GradientFactors& sample, const LayerShape& layer) {
  std::vector<double> m(layer.gradient_length());
  for (size_t v = 0; v < sample.b.rows; ++v)
    for (size_t i = 0; i < layer.outputs; ++i)
      for (size_t j = 0; j < layer.row_length(); ++j)
        m[i * layer.row_length() + j] +=
            static_cast<double>(sample.b(v, i)) * (j < layer.inputs ? sample.a(v, j) : 1.0f);
  return m;
}

double length(const std::vector<double>& x) {
  double square = 0;
  for (const double value : x) square += value * value;
  return std::sqrt(square);
}

ProjectionOptions options_for(ProjectionKind kind, size_t rows, size_t gradient_length,
                              uint64_t seed = 7) {
  ProjectionOptions options;
  options.kind = kind;
  options.rows = rows;
  options.seed = seed;
  if (kind == ProjectionKind::matrix) {
    options.matrix = Matrix<float>(rows, gradient_length);
    const RandomStream stream(seed, "user's own");
    for (size_t i = 0; i < rows * gradient_length; ++i)
      options.matrix.data()[i] = static_cast<float>(stream.normal(i));
  }
  return options;
}

constexpr ProjectionKind kDense[] = {ProjectionKind::sign, ProjectionKind::sign_reference,
                                     ProjectionKind::gaussian, ProjectionKind::sparse,
                                     ProjectionKind::matrix};

TEST(Projection, DenseKindsEqualAPlainProduct) {
  // Panels and stretches of several lengths: one row, a part of a panel, many panels, no bias, odd
  // everything.
  for (const LayerShape layer : {LayerShape{1, 1, true}, LayerShape{37, 53, true},
                                 LayerShape{40, 300, false}, LayerShape{19, 130, true}})
    for (const ProjectionKind kind : kDense)
      for (const Precision precision : {Precision::f32, Precision::bf16}) {
        constexpr size_t rows = 37;
        ProjectionOptions options = options_for(kind, rows, layer.gradient_length());
        options.precision = precision;
        const auto projection = Projection::make(std::move(options), layer);
        const auto source = make_projection_rows(options_for(kind, rows, layer.gradient_length()),
                                                 layer.gradient_length());
        const Samples samples = random_samples({1, 12, 0, 3}, layer, 5);
        Matrix<float> y(4, rows);
        Pool pool(1);
        projection->project(samples.list, y, pool);
        std::vector<float> row(layer.gradient_length());
        for (size_t s = 0; s < 4; ++s) {
          const std::vector<double> m = plain_gradient(samples.list[s], layer);
          for (size_t r = 0; r < rows; ++r) {
            source->fill(r, 0, row.size(), row.data());
            double sum = 0;
            for (size_t j = 0; j < row.size(); ++j) sum += m[j] * row[j];
            // Independent roundings: √length of them, and bf16 keeps 8 bits of each entry. Of a
            // matrix that is given none are lost.
            const bool rounded = precision == Precision::bf16 && kind != ProjectionKind::matrix;
            const double each = rounded ? 0x1p-7 : 0x1p-19;
            EXPECT_NEAR(y(s, r), source->scale() * sum, each * (length(m) + 1e-30))
                << to_string(kind) << " " << layer.outputs << "x" << layer.inputs << " sample " << s
                << " row " << r;
          }
        }
      }
}

TEST(Projection, BothElementTypesAreTheSameMatrix) {
  for (const ProjectionKind kind : kDense) {
    if (kind == ProjectionKind::matrix) continue;
    const auto source = make_projection_rows(options_for(kind, 2, 5000), 5000);
    std::vector<float> floats(4203), whole(5000);
    std::vector<kernel::bfloat16> halves(4203);
    source->fill(1, 0, 5000, whole.data());
    source->fill(1, 72, 4203, floats.data());
    source->fill(1, 72, 4203, halves.data());
    for (size_t j = 0; j < floats.size(); ++j) {
      ASSERT_EQ(floats[j], whole[72 + j]) << to_string(kind) << " " << j;
      const uint32_t bits = uint32_t{halves[j].bits} << 16;
      float value;
      std::memcpy(&value, &bits, 4);
      ASSERT_EQ(value, floats[j]) << to_string(kind) << " " << j;
    }
  }
}

TEST(Projection, FactoredEqualsItsOwnFormula) {
  const LayerShape layer{33, 70, true};
  constexpr size_t rows = 50;
  const auto projection = Projection::make(options_for(ProjectionKind::factored, rows, 0), layer);
  const Samples samples = random_samples({1, 40, 0, 70, 2}, layer, 9);
  Matrix<float> y(5, rows);
  Pool pool(1);
  projection->project(samples.list, y, pool);
  for (size_t s = 0; s < 5; ++s) {
    const std::vector<double> m = plain_gradient(samples.list[s], layer);
    for (size_t r = 0; r < rows; ++r) {
      uint64_t u, w[2];
      sign_words(7, "projection/factored/outputs", r, 0, 1, &u);
      sign_words(7, "projection/factored/inputs", r, 0, 2, w);
      double sum = 0;
      for (size_t i = 0; i < layer.outputs; ++i)
        for (size_t j = 0; j < layer.row_length(); ++j)
          sum += (u >> i & 1 ? 1 : -1) * (w[j / 64] >> (j % 64) & 1 ? 1 : -1) *
                 m[i * layer.row_length() + j];
      EXPECT_NEAR(y(s, r), sum / std::sqrt(double{rows}), 1e-6 * length(m));
    }
  }
}

TEST(Projection, NoneIsTheGradient) {
  for (const bool bias : {true, false}) {
    const LayerShape layer{9, 14, bias};
    const auto projection = Projection::make(options_for(ProjectionKind::none, 0, 0), layer);
    EXPECT_EQ(projection->rows(), layer.gradient_length());
    const Samples samples = random_samples({3, 1}, layer, 2);
    Matrix<float> y(2, layer.gradient_length());
    Pool pool(1);
    projection->project(samples.list, y, pool);
    for (size_t s = 0; s < 2; ++s) {
      const std::vector<double> m = plain_gradient(samples.list[s], layer);
      for (size_t j = 0; j < m.size(); ++j) EXPECT_NEAR(y(s, j), m[j], 1e-5);
    }
  }
}

TEST(Projection, ASampleIsAlone) {
  const LayerShape layer{40, 60, true};
  std::vector<size_t> terms(150);
  for (size_t s = 0; s < terms.size(); ++s) terms[s] = 1 + s * 7 % 5;
  const Samples samples = random_samples(terms, layer, 3);
  for (const ProjectionKind kind : {ProjectionKind::sign, ProjectionKind::gaussian,
                                    ProjectionKind::factored, ProjectionKind::none})
    for (const Precision precision : {Precision::f32, Precision::bf16}) {
      ProjectionOptions options = options_for(kind, 70, 0);
      options.precision = precision;
      const auto projection = Projection::make(std::move(options), layer);
      Matrix<float> all(150, projection->rows()), threaded(150, projection->rows());
      Pool alone(1), pool(3);
      projection->project(samples.list, all, alone);
      projection->project(samples.list, threaded, pool);
      EXPECT_EQ(std::memcmp(all.data(), threaded.data(), 150 * projection->rows() * sizeof(float)),
                0)
          << to_string(kind);
      for (const size_t s : {0, 1, 17, 63, 64, 100, 149}) {
        Matrix<float> one(1, projection->rows()), three(3, projection->rows());
        projection->project({&samples.list[s], 1}, one, alone);
        EXPECT_EQ(std::memcmp(one.data(), all.row(s), projection->rows() * sizeof(float)), 0)
            << to_string(kind) << " " << s;
        const std::vector<GradientFactors> group = {samples.list[5], samples.list[s],
                                                    samples.list[90]};
        projection->project(group, three, pool);
        EXPECT_EQ(std::memcmp(three.row(1), all.row(s), projection->rows() * sizeof(float)), 0)
            << to_string(kind) << " " << s;
      }
    }
}

TEST(Projection, EntriesHaveTheirDistribution) {
  constexpr size_t n = 400000;
  const double unit = 1 / std::sqrt(double{n});
  for (const ProjectionKind kind :
       {ProjectionKind::sign, ProjectionKind::gaussian, ProjectionKind::sparse}) {
    const auto source = make_projection_rows(options_for(kind, 3, n), n);
    std::vector<float> x(n), other(n);
    source->fill(1, 0, n, x.data());
    source->fill(2, 0, n, other.data());
    const double scale = source->scale() * std::sqrt(3.0);  // s·√rows: the entries themselves
    double mean = 0, square = 0, fourth = 0, neighbours = 0, rows = 0, zeros = 0;
    for (size_t j = 0; j < n; ++j) {
      const double value = scale * x[j];
      mean += value / n, square += value * value / n, fourth += std::pow(value, 4) / n,
          zeros += (value == 0) / double{n};
      neighbours += value * scale * x[(j + 1) % n] / n, rows += value * scale * other[j] / n;
    }
    const double kurtosis =
        kind == ProjectionKind::sign ? 1 : 3;  // also of the sparse kind: 9 · 2/6
    EXPECT_NEAR(mean, 0, 5 * unit) << to_string(kind);
    EXPECT_NEAR(square, 1, 8 * unit) << to_string(kind);
    EXPECT_NEAR(fourth, kurtosis, 60 * unit) << to_string(kind);
    EXPECT_NEAR(neighbours, 0, 5 * unit) << to_string(kind);
    EXPECT_NEAR(rows, 0, 5 * unit) << to_string(kind);
    EXPECT_NEAR(zeros, kind == ProjectionKind::sparse ? 2.0 / 3 : 0, 5 * unit) << to_string(kind);
  }
}

TEST(Projection, PreservesInnerProducts) {
  const LayerShape layer{24, 31, true};
  const Samples samples = random_samples({1, 1, 8, 8}, layer, 21);
  std::vector<std::vector<double>> m;
  for (const GradientFactors& sample : samples.list) m.push_back(plain_gradient(sample, layer));
  for (const ProjectionKind kind :
       {ProjectionKind::sign, ProjectionKind::sign_reference, ProjectionKind::gaussian,
        ProjectionKind::sparse, ProjectionKind::factored}) {
    constexpr size_t rows = 30000;
    const auto projection = Projection::make(options_for(kind, rows, 0), layer);
    Matrix<float> y(4, rows);
    Pool pool(1);
    projection->project(samples.list, y, pool);
    for (size_t s = 0; s < 4; ++s)
      for (size_t t = 0; t <= s; ++t) {
        double exact = 0, found = 0;
        for (size_t j = 0; j < m[s].size(); ++j) exact += m[s][j] * m[t][j];
        for (size_t r = 0; r < rows; ++r) found += static_cast<double>(y(s, r)) * y(t, r);
        // One row's product has a deviation of at most 3 |M||M'| (factored, rank 1: the fourth
        // moments multiply).
        EXPECT_NEAR(found, exact, 5 * 3 / std::sqrt(double{rows}) * length(m[s]) * length(m[t]))
            << to_string(kind) << " " << s << " " << t;
      }
  }
}

TEST(Projection, SeedsAndPrefixes) {
  const LayerShape layer{16, 20, true};
  const Samples samples = random_samples({2}, layer, 1);
  const auto y_of = [&](size_t rows, uint64_t seed) {
    const auto projection =
        Projection::make(options_for(ProjectionKind::sign, rows, 0, seed), layer);
    Matrix<float> y(1, rows);
    Pool pool(1);
    projection->project(samples.list, y, pool);
    return y;
  };
  EXPECT_NE(y_of(8, 1)(0, 0), y_of(8, 2)(0, 0));
  const Matrix<float> few = y_of(16, 1),
                      many = y_of(64, 1);  // more rows only append, up to the scale
  for (size_t r = 0; r < 16; ++r) EXPECT_FLOAT_EQ(few(0, r), 2 * many(0, r));
}

TEST(Projection, BadOptionsAreErrors) {
  const LayerShape layer{3, 4, true};
  EXPECT_THROW(parse_projection("random"), Error);
  EXPECT_EQ(parse_projection("sign_reference"), ProjectionKind::sign_reference);
  EXPECT_THROW(Projection::make(options_for(ProjectionKind::sign, 0, 0), layer), Error);
  EXPECT_THROW(Projection::make(options_for(ProjectionKind::matrix, 2, 14), layer), Error);
  EXPECT_NO_THROW(Projection::make(options_for(ProjectionKind::matrix, 2, 15), layer));
}

TEST(Normalise, HasNoFloorAndReportsTheNorm) {
  std::vector<float> y = {3e-20f, -4e-20f};
  EXPECT_NEAR(normalise(y), 5e-20, 1e-26);
  EXPECT_FLOAT_EQ(y[0], 0.6f);
  EXPECT_FLOAT_EQ(y[1], -0.8f);
  std::vector<float> zero(3, 0.0f), bad = {1.0f, std::nanf("")};
  EXPECT_EQ(normalise(zero), 0);
  EXPECT_EQ(zero[0], 0);
  EXPECT_FALSE(std::isfinite(normalise(bad)));
  EXPECT_EQ(bad[0], 1.0f);
}

}  // namespace
}  // namespace fungi
