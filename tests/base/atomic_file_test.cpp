// SPDX-License-Identifier: Apache-2.0
// Whose file is whose; tests/checkpoint/npy_test.cpp has the rest.
#include "fungi/base/atomic_file.h"

#include <gtest/gtest.h>

#include "tests/support/folder.h"

namespace fungi {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(AtomicFile, LeavesTheNextWritersFileAlone) {
  const test::TemporaryFolder folder;
  {
    AtomicFile first(folder / "a");
    first.write(bytes_of("first"));
    first.finish();
    folder.write("a.tmp", "the next one's");
  }
  EXPECT_EQ(test::read_file(folder / "a"), "first");
  EXPECT_EQ(test::read_file(folder / "a.tmp"), "the next one's");
}

TEST(AtomicFile, IsWrittenOverWhereItWasWritten) {
  const test::TemporaryFolder folder;
  AtomicFile file(folder / "a");
  file.write(bytes_of("0123456789"));
  file.write_at(3, bytes_of("abc"));
  file.write(bytes_of("!"));
  file.finish();
  EXPECT_EQ(test::read_file(folder / "a"), "012abc6789!");
}

}  // namespace
}  // namespace fungi
