// SPDX-License-Identifier: Apache-2.0
// Indices of which one number, or one field, is wrong.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fungi/checkpoint/npy.h"
#include "fungi/search/index.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

class IndexFiles : public testing::Test {
 protected:
  void build(IndexKind kind) {
    Matrix<float> rows(60, 3);
    for (size_t i = 0; i < 180; ++i) rows.data()[i] = float((i * i) % 37);
    Index::build(rows, {.kind = kind, .lists = 5}, pool_).save(folder_);
  }
  template <class T>
  void set(const char* file, size_t row, T value) {
    const NpyFile old = NpyFile::open(folder_ / file);
    const std::vector<size_t> shape = old.shape();
    std::vector<T> values(old.view<T>().data, old.view<T>().data + old.rows() * old.cols());
    values[row] = value;
    write_npy(folder_ / file, npy_array(values.data(), shape));
  }

  Pool pool_{1};
  const test::TemporaryFolder place_;
  const std::filesystem::path folder_ = place_ / "index";
};

TEST_F(IndexFiles, ListsAreRangesOfRows) {
  const auto refusal = [&](const char* file, size_t row, auto value) {
    build(IndexKind::ivf);
    EXPECT_NO_THROW(Index::open(folder_));
    set(file, row, value);
    return test::error_of([&] { Index::open(folder_); });
  };
  for (const auto& [row, value] : {std::pair(0, 1), {0, -1}, {2, 61}, {3, 0}, {3, -5}, {5, 59}})
    EXPECT_NE(refusal("offsets.npy", size_t(row), int64_t{value}).find("ascending offsets"),
              std::string::npos)
        << row << " " << value;
  for (const int32_t wrong : {-1, 60})
    EXPECT_NE(refusal("numbers.npy", 59, wrong).find("one row number per vector"),
              std::string::npos)
        << wrong;
}

TEST_F(IndexFiles, ListsForTheCosineHoldDirectionsWhateverTheLengths) {
  Matrix<float> rows(60, 3);
  for (size_t i = 0; i < 180; ++i) rows.data()[i] = float((i * i) % 37) - 18;
  const auto lists = [&] {
    Index::build(rows, {.kind = IndexKind::ivf, .metric = Metric::cosine, .lists = 5}, pool_)
        .save(folder_);
    return test::read_file(folder_ / "offsets.npy") + test::read_file(folder_ / "numbers.npy");
  };
  const std::string found = lists();
  const NpyFile offsets = NpyFile::open(folder_ / "offsets.npy");
  for (size_t l = 0; l < 5; ++l)
    EXPECT_LT(offsets.view<int64_t>()(l, 0), offsets.view<int64_t>()(l + 1, 0))
        << "no list is empty";
  for (size_t i = 0; i < 60; ++i)
    for (size_t c = 0; c < 3; ++c) rows(i, c) *= float(1 << i % 20);
  EXPECT_EQ(lists(), found);
}

TEST_F(IndexFiles, EveryFieldOfTheDescriptionIsNeeded) {
  build(IndexKind::exact);
  const auto whole = nlohmann::json::parse(test::read_file(folder_ / "index.json"));
  for (const auto& [key, value] : whole.items()) {
    auto without = whole, other = whole;
    without.erase(key);
    other[key] = nlohmann::json::array({1});
    for (const auto& wrong : {without, other}) {
      test::write_file(folder_ / "index.json", wrong.dump());
      EXPECT_ERROR("build the index again", Index::open(folder_));
    }
  }
}

}  // namespace
}  // namespace fungi
