// SPDX-License-Identifier: Apache-2.0
#include "fungi/base/scratch_matrix.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/support/errors.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

TEST(ScratchMatrix, HoldsTheSameInMemoryAndOnDisk) {
  for (const size_t limit : {size_t{1} << 20, size_t{0}}) {
    ScratchMatrix m(100, 7, limit);
    EXPECT_EQ(m.on_disk(), limit == 0);
    EXPECT_EQ(m.view()(99, 6), 0.0f);
    for (size_t i = 0; i < 700; ++i) m.view().data[i] = float(i);
    const ScratchMatrix moved = std::move(m);
    const View<const float> view = moved;
    EXPECT_EQ(view.rows, 100u);
    EXPECT_EQ(view(99, 6), 699.0f);
    EXPECT_TRUE(m.rows() == 0 && m.view().data == nullptr && !m.on_disk()) << "moved from";
  }
}

TEST(ScratchMatrix, LeavesNoFileBehindAndNamesAFolderThatIsGone) {
  const test::TemporaryFolder place;
  const auto folder = place / "scratch";
  std::filesystem::create_directories(folder);
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before ? before : "";
  setenv("TMPDIR", folder.c_str(), 1);
  {
    const ScratchMatrix m(1000, 10, 0);
    EXPECT_TRUE(m.on_disk());
    EXPECT_TRUE(std::filesystem::is_empty(folder));
  }
  // It was said where the rows shall go: another place may have no room for them.
  for (const auto& wrong : {place / "gone", place / "file"}) {
    std::ofstream(place / "file") << "x";
    setenv("TMPDIR", wrong.c_str(), 1);
    try {
      ScratchMatrix(10, 10, 0);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_NE(error.message().find(wrong.string()), std::string::npos) << error.what();
      EXPECT_EQ(error.place(), "TMPDIR");
    }
    EXPECT_FALSE(ScratchMatrix(10, 10, 1000).on_disk()) << "in memory it does not matter";
  }
  setenv("TMPDIR", "", 1);
  EXPECT_TRUE(ScratchMatrix(10, 10, 0).on_disk()) << "empty is as good as not set";
  const char* other = std::getenv("TMP");
  const std::string kept_other = other ? other : "";
  setenv("TMP", (place / "gone").c_str(), 1);
  EXPECT_ERROR("a folder in TMP,", ScratchMatrix(10, 10, 0));
  other ? setenv("TMP", kept_other.c_str(), 1) : unsetenv("TMP");
  setenv("TMPDIR", folder.c_str(), 1);
  // More than any disk has: an Error, not a signal.
  EXPECT_THROW(ScratchMatrix(size_t{1} << 40, 1 << 10, 0), Error);
  if (before)
    setenv("TMPDIR", kept.c_str(), 1);
  else
    unsetenv("TMPDIR");
  std::filesystem::remove_all(folder);
}

TEST(ScratchMatrix, NothingIsAMatrix) {
  EXPECT_THROW(ScratchMatrix(size_t{1} << 62, 4, SIZE_MAX), std::bad_alloc);
  EXPECT_EQ(ScratchMatrix(0, 5, 0).rows(), 0u);
  EXPECT_EQ(ScratchMatrix().cols(), 0u);
}

}  // namespace
}  // namespace fungi
