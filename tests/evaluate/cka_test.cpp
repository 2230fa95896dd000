// SPDX-License-Identifier: Apache-2.0
// CKA of a store against numpy, and its two ways, by products of columns and by products of rows,
// against its definition and each other.
#include "fungi/evaluate/cka.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fungi/base/random.h"
#include "tests/evaluate/golden.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"
#include "tests/support/made_store.h"
#include "tests/support/plain_cka.h"

namespace fungi {
namespace {

const std::vector<std::string> kNames{"embedding", "kl", "dino"};

// The first rows of some blocks, `times` times over, which changes no CKA.
Store stored(const std::filesystem::path& folder, const std::vector<View<const float>>& blocks,
             size_t count, size_t times = 1) {
  std::vector<test::MadeRow> rows(count * times);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].id = std::to_string(i);
    for (const View<const float>& block : blocks) {
      const float* from = block.row(i % count);
      rows[i].blocks.emplace_back(from, from + block.cols);
    }
  }
  test::write_made_store(folder, rows, {},
                         {kNames.begin(), kNames.begin() + ssize_t(blocks.size())});
  return Store::open(folder);
}

void expect_near(const Matrix<double>& found, const Matrix<double>& expected) {
  ASSERT_EQ(found.rows(), expected.rows());
  ASSERT_EQ(found.cols(), expected.cols());
  for (size_t i = 0; i < found.rows(); ++i)
    for (size_t j = 0; j < found.cols(); ++j)
      EXPECT_NEAR(found(i, j), expected(i, j), 1e-6) << i << " " << j;
}

class Cka : public testing::Test {
 protected:
  const test::TemporaryFolder folder_;
  Pool pool_{2};
};

TEST_F(Cka, EqualsNumpy) {
  const Matrix<float> a = golden_matrix("cka_a"), b = golden_matrix("cka_b"),
                      c = golden_matrix("cka_c");
  for (const auto& [topic, rows] : {std::pair("cka", 70), {"cka_few_rows", 20}}) {  // 25 columns
    const auto golden = golden_json(topic);
    const Matrix<double> found =
        linear_cka(stored(folder_ / topic, {a, b, c}, size_t(rows)), kNames, pool_);
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = 0; j < 3; ++j)
        EXPECT_NEAR(found(i, j), golden[i][j].get<double>(), 1e-6) << topic;
  }
}

// Blocks that share something, of rows of any length, and the same rows of length 1.
struct MadeBlocks {
  explicit MadeBlocks(size_t rows, const std::vector<size_t>& widths) {
    const RandomStream random(6, "cka");
    for (size_t b = 0; b < widths.size(); ++b) {
      raw.emplace_back(rows, widths[b]), unit.emplace_back(rows, widths[b]);
      for (size_t i = 0; i < rows; ++i) {
        double square = 0;
        for (size_t c = 0; c < widths[b]; ++c) {
          const double value =
              random.normal(i) * double(c % 7 + 1) + random.normal(100000 * (b + 1) + 1000 * i + c);
          raw[b](i, c) = float(double(1 + i % 4) * value);
          square += double(raw[b](i, c)) * double(raw[b](i, c));
        }
        for (size_t c = 0; c < widths[b]; ++c)
          unit[b](i, c) = float(raw[b](i, c) / std::sqrt(square));
      }
    }
  }
  Store store(const std::filesystem::path& folder, size_t times = 1) const {
    return stored(folder, {raw[0], raw[1], raw[2]}, raw[0].rows(), times);
  }
  std::vector<Matrix<float>> raw, unit;
};

// Blocks of a store are compared as every other evaluation has them: each row of length 1.
TEST_F(Cka, IsThatOfTheUnitRows) {
  const MadeBlocks made(40, {3, 7, 4});
  const Store store = made.store(folder_ / "store");
  const Matrix<double> found = linear_cka(store, kNames, pool_),
                       turned = linear_cka(store, {"dino", "embedding"}, pool_);
  for (const auto& [a, b] : {std::pair(0, 1), {0, 2}, {1, 2}}) {
    const double expected = test::plain_cka(made.unit[size_t(a)], made.unit[size_t(b)]);
    EXPECT_NEAR(found(size_t(a), size_t(b)), expected, 1e-6);
    EXPECT_EQ(found(size_t(b), size_t(a)), found(size_t(a), size_t(b)));
    EXPECT_EQ(found(size_t(a), size_t(a)), 1);
    EXPECT_GT(std::abs(test::plain_cka(made.raw[size_t(a)], made.raw[size_t(b)]) - expected), 1e-3);
  }
  EXPECT_NEAR(turned(0, 1), found(0, 2), 1e-6);
}

TEST_F(Cka, FewRowsOfManyColumnsAreComparedByTheirProducts) {
  const MadeBlocks made(90, {40, 130, 25});
  const Store few = made.store(folder_ / "few"), many = made.store(folder_ / "many", 3);
  const Matrix<double> by_rows = linear_cka(few, kNames, pool_),
                       by_columns = linear_cka(many, kNames, pool_);
  expect_near(by_rows, by_columns);
  EXPECT_NEAR(by_rows(2, 1), test::plain_cka(made.unit[2], made.unit[1]), 1e-6);
  EXPECT_LT(by_rows(2, 1), 0.999);
  // However many rows are taken at a time, down to one, and whoever helps.
  for (const size_t rows : {1, 32, 37, 89, 90})
    expect_near(linear_cka(few, kNames, pool_, rows * 195 * sizeof(float)), by_rows);
  expect_near(linear_cka(few, kNames, pool_, 0), by_rows);
  Pool alone(1);
  const Matrix<double> again = linear_cka(few, kNames, alone);
  EXPECT_TRUE(std::equal(again.data(), again.data() + 9, by_rows.data()));
}

TEST_F(Cka, FewRowsOfManyColumnsTakeLittleMemory) {  // products of these columns: 115 GB
  Matrix<float> a(3, 60000), turned(3, 60000);
  const RandomStream random(7, "cka");
  for (size_t i = 0; i < 3; ++i)
    for (size_t c = 0; c < 60000; ++c)
      turned(i, 59999 - c) = a(i, c) = float(random.normal(i * 60000 + c));
  EXPECT_NEAR(
      linear_cka(stored(folder_ / "wide", {a, turned}, 3), {"embedding", "kl"}, pool_)(0, 1), 1,
      1e-6);
}

TEST_F(Cka, DoesNotSeeTurnsAndScales) {
  const Matrix<float> a = golden_matrix("cka_a");
  Matrix<float> turned(a.rows(), a.cols());
  for (size_t i = 0; i < a.rows(); ++i)
    for (size_t c = 0; c < a.cols(); ++c) turned(i, c) = -3 * a(i, a.cols() - 1 - c);
  for (const size_t rows : {70, 20})
    EXPECT_NEAR(linear_cka(stored(folder_ / std::to_string(rows), {a, turned}, rows),
                           {"embedding", "kl"}, pool_)(0, 1),
                1, 1e-6);
}

TEST_F(Cka, RefusesRowsWithoutOne) {
  const Matrix<float> a = golden_matrix("cka_a");
  Matrix<float> same(70, 3);
  for (size_t i = 0; i < 70; ++i) same(i, 0) = 0.3f, same(i, 1) = 0.7f, same(i, 2) = -0.1f;
  for (const size_t rows : {70, 13}) {  // by columns, by rows
    const auto at = [&](const char* name) { return folder_ / (name + std::to_string(rows)); };
    const std::vector<std::string> names{"embedding", "kl"};
    EXPECT_ERROR("block kl has the same row everywhere",
                 linear_cka(stored(at("same"), {a, same}, rows), names, pool_));
    stored(at("broken"), {a, a}, rows);
    const std::filesystem::path file = at("broken") / "kl-00000.npy";
    Matrix<float> values = NpyFile::open(file).read();
    values(7, 2) = std::numeric_limits<float>::quiet_NaN();
    write_npy(file, npy_array(values));
    EXPECT_ERROR("the row of '7'", linear_cka(Store::open(at("broken")), names, pool_));
  }
  EXPECT_ERROR("at least two rows, found 1",
               linear_cka(stored(folder_ / "one", {a}, 1), {"embedding"}, pool_));
  EXPECT_ERROR("at least one block", linear_cka(stored(folder_ / "none", {a}, 70), {}, pool_));
}

}  // namespace
}  // namespace fungi
