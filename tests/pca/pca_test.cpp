// SPDX-License-Identifier: Apache-2.0
// PCA against scikit-learn (tests/golden/make_evaluate.py) and against itself.
#include "fungi/pca/pca.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>

#include "fungi/base/random.h"
#include "fungi/checkpoint/npy.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

std::string golden(const std::string& name) {
  return std::string(FUNGI_GOLDEN_DIR) + "/evaluate/" + name + ".npy";
}

Matrix<float> spectrum(size_t rows, size_t cols, uint64_t seed, double decay = 0.97,
                       double mean = 1) {
  Matrix<float> m(rows, cols);
  const RandomStream random(seed, "pca test");
  for (size_t i = 0; i < rows; ++i) {
    double shared = random.normal(i * (cols + 1) + cols);
    for (size_t c = 0; c < cols; ++c)
      m(i, c) = float(mean + std::pow(decay, double(c)) * random.normal(i * (cols + 1) + c) +
                      0.3 * shared);
  }
  return m;
}

double distance(const auto& m, size_t i, size_t j) {
  double sum = 0;
  for (size_t c = 0; c < m.cols; ++c) sum += std::pow(double(m(i, c)) - double(m(j, c)), 2);
  return std::sqrt(sum);
}

TEST(Pca, equals_scikit_learn) {
  Pool pool(2);
  for (const std::string name : {"pca_tall", "pca_wide"}) {
    SCOPED_TRACE(name);
    const NpyFile train = NpyFile::open(golden(name + "_train")),
                  test = NpyFile::open(golden(name + "_test"));
    const NpyFile components = NpyFile::open(golden(name + "_components"));
    const NpyFile variance = NpyFile::open(golden(name + "_variance"));
    const NpyFile transformed = NpyFile::open(golden(name + "_transformed"));
    const size_t dim = components.rows(), width = components.cols();
    const Pca pca = Pca::fit(train.view<float>(), dim, pool);
    ASSERT_EQ(pca.output_width(), dim);
    for (size_t i = 0; i < dim; ++i) {
      EXPECT_NEAR(pca.explained_variance()[i], variance.view<double>()(i, 0),
                  1e-5 * variance.view<double>()(i, 0));
      for (size_t c = 0; c < width; ++c)  // the signs are part of it
        EXPECT_NEAR(pca.components()(i, c), components.view<double>()(i, c), 1e-5);
    }
    const Matrix<float> out = pca.transform(test.view<float>(), pool);
    const View<const double> expected = transformed.view<double>();
    for (size_t i = 0; i < expected.rows; ++i)
      for (size_t j = 0; j < i; ++j) {
        const double want = distance(expected, i, j);
        EXPECT_NEAR(distance(out.view(), i, j), want, 1e-5 * want);
      }
  }
}

TEST(Pca, rule_of_application) {
  // SPEC 1.7: five-shot rows for 512 and 384.
  for (size_t rows : {235u, 50u, 500u, 185u, 505u, 510u})
    EXPECT_FALSE(Pca::applies(512, rows, 3072)) << rows;
  for (size_t rows : {980u, 1000u, 5000u}) EXPECT_TRUE(Pca::applies(512, rows, 3072)) << rows;
  for (size_t rows : {500u, 505u, 510u}) EXPECT_TRUE(Pca::applies(384, rows, 1536)) << rows;
  EXPECT_FALSE(Pca::applies(512, 512, 3072));
  EXPECT_FALSE(Pca::applies(512, 10000, 512));
  EXPECT_FALSE(Pca::applies(0, 10000, 512));
  Pool pool(1);
  const Matrix<float> rows = spectrum(10, 6, 1);
  for (size_t dim : {6u, 10u, 99u, 0u}) {
    const Pca pca = Pca::fit(rows, dim, pool);
    EXPECT_TRUE(pca.identity());
    EXPECT_EQ(pca.output_width(), 6u);
    const Matrix<float> out = pca.transform(rows, pool);
    EXPECT_TRUE(std::equal(out.data(), out.data() + 60, rows.data()));
  }
  EXPECT_FALSE(Pca::fit(rows, 5, pool).identity());
}

TEST(Pca, same_bytes_for_any_batch_and_thread_count) {
  for (size_t count : {60u, 5000u}) {  // fewer rows than columns, and several blocks of rows
    const Matrix<float> rows = spectrum(count, 70, 2);
    Pool one(1), three(3);
    const Pca expected = Pca::fit(rows, 20, one);
    const Matrix<float> out = expected.transform(rows, one);
    for (size_t batch : {1u, 37u, 2048u, 4999u})
      for (Pool* pool : {&one, &three}) {
        if (batch == 1 && count > 1000) continue;
        PcaFit fit(70);
        for (size_t first = 0; first < count; first += batch)
          fit.add(rows.view().slice(first, std::min<size_t>(batch, count - first)), *pool);
        EXPECT_EQ(fit.rows(), count);
        const Pca pca = fit.finish(20, *pool);
        EXPECT_TRUE(std::equal(pca.components().data, pca.components().data + 20 * 70,
                               expected.components().data));
        EXPECT_EQ(pca.explained_variance(), expected.explained_variance());
        EXPECT_EQ(pca.mean(), expected.mean());
        // A row alone or in a batch.
        const Matrix<float> alone = pca.transform(rows.view().slice(count / 2, 1), *pool);
        EXPECT_TRUE(std::equal(alone.data(), alone.data() + 20, out.row(count / 2)));
      }
  }
}

TEST(Pca, both_roads_agree) {
  Pool pool(2);
  // 200 rows x 199 columns go by the covariance; the same rows beside a column of zeros go by their
  // products.
  const Matrix<float> rows = spectrum(200, 199, 3);
  Matrix<float> wider(200, 201);
  for (size_t i = 0; i < 200; ++i) std::copy_n(rows.row(i), 199, wider.row(i));
  const Pca a = Pca::fit(rows, 30, pool), b = Pca::fit(wider, 30, pool);
  for (size_t i = 0; i < 30; ++i) {
    EXPECT_NEAR(a.explained_variance()[i], b.explained_variance()[i],
                1e-5 * a.explained_variance()[i]);
    for (size_t c = 0; c < 199; ++c) EXPECT_NEAR(a.components()(i, c), b.components()(i, c), 2e-4);
  }
  EXPECT_NEAR(a.total_variance(), b.total_variance(), 1e-5 * a.total_variance());
}

TEST(Pca, a_direction_without_variance_is_left_out) {
  Pool pool(2);
  for (const size_t count : {20u, 29u, 31u, 500u, 5000u}) {  // fewer rows than columns, and more
    Matrix<float> rows(count, 30);                           // rank 3, in directions of no column
    for (size_t i = 0; i < count; ++i)
      for (size_t d = 0; d < 3; ++d)
        for (size_t c = 0; c < 30; ++c)
          rows(i, c) += float((i * (d + 3)) % 7) * std::cos(float((d + 1) * (c + 2)));
    const Pca pca = Pca::fit(rows, 5, pool);
    EXPECT_GT(pca.explained_variance()[2], 1);
    for (size_t i = 3; i < 5; ++i) {
      EXPECT_EQ(pca.explained_variance()[i], 0) << count;
      for (size_t c = 0; c < 30; ++c) EXPECT_EQ(pca.components()(i, c), 0);
    }
    const Matrix<float> out = pca.transform(rows, pool);
    EXPECT_NEAR(distance(out.view(), 0, 5), distance(rows.view(), 0, 5), 1e-4);
  }
}

TEST(Pca, survives_saving) {
  Pool pool(1);
  const Matrix<float> rows = spectrum(50, 12, 4);
  const test::TemporaryFolder folder;
  const auto path = folder / "pca.npz";
  for (size_t dim : {5u, 40u}) {  // a projection, and the identity
    const Pca pca = Pca::fit(rows, dim, pool);
    pca.save(path);
    const Pca again = Pca::load(path);
    EXPECT_EQ(again.identity(), pca.identity());
    EXPECT_EQ(again.fitted_rows(), 50u);
    EXPECT_EQ(again.explained_variance(), pca.explained_variance());
    EXPECT_EQ(again.total_variance(), pca.total_variance());
    const Matrix<float> a = pca.transform(rows, pool), b = again.transform(rows, pool);
    EXPECT_TRUE(std::equal(a.data(), a.data() + a.rows() * a.cols(), b.data()));
  }
  const std::vector<float> other{1, 2};
  write_npz(path, {{"mean", npy_array(other)}});
  EXPECT_ERROR("expected an array 'width_and_rows' (use a file written by this program's PCA)",
               Pca::load(path));
  const std::vector<int64_t> size{3, 9};
  write_npz(path, {{"width_and_rows", npy_array(size)},
                   {"components", npy_array(other)},
                   {"mean", npy_array(other)},
                   {"explained_variance", npy_array(other)},
                   {"total_variance", npy_array(other)}});
  EXPECT_THROW(Pca::load(path), Error);
}

TEST(Pca, refuses_what_it_cannot_fit) {
  Pool pool(2);
  EXPECT_THROW(Pca::fit(Matrix<float>(0, 4), 2, pool), Error);
  const Matrix<float> good = spectrum(3000, 8, 5);
  const Pca pca = Pca::fit(good, 3, pool);
  EXPECT_THROW(pca.transform(Matrix<float>(2, 9), pool), Error);
  PcaFit fit(8);
  EXPECT_THROW(fit.add(Matrix<float>(2, 9), pool), Error);
  for (size_t count : {7u, 3000u})
    for (float bad :
         {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      Matrix<float> broken = good.copy();
      const size_t row = count - 2;
      broken(row, 5) = bad;
      for (int use = 0; use < 2; ++use) try {
          if (use == 0)
            Pca::fit(broken.view().slice(0, count), 3, pool);
          else
            pca.transform(broken.view().slice(0, count), pool);
          ADD_FAILURE() << "accepted " << bad;
        } catch (const Error& e) {
          EXPECT_NE(std::string(e.what()).find("row " + std::to_string(row)), std::string::npos)
              << e.what();
        }
    }
}

}  // namespace
}  // namespace fungi
