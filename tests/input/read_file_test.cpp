// SPDX-License-Identifier: Apache-2.0
// Why a file cannot be read: its own fault, which is recorded, or that of the moment, which is not.
#include <gtest/gtest.h>

#include <cerrno>

#include "fungi/input/image.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

bool is_of_the_moment(int reason) {
  try {
    fail_reading("cannot read", reason, "a.png");
  } catch (const Exhausted&) {
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(ReadFile, ALostDiskIsNoPicturesFault) {
  for (const int reason : {ESTALE, ENOTCONN, ETIMEDOUT, EHOSTDOWN, EHOSTUNREACH}) {
    EXPECT_TRUE(is_of_the_moment(reason)) << reason;
    EXPECT_ERROR("connect the disk", fail_reading("cannot read", reason, "a.png"));
  }
  for (const int reason : {EMFILE, ENFILE}) {
    EXPECT_ERROR("ulimit -n", fail_reading("cannot open", reason, "a.png"));
    EXPECT_TRUE(is_of_the_moment(reason)) << reason;
  }
  EXPECT_TRUE(is_of_the_moment(ENOMEM));
  EXPECT_ERROR("free memory", fail_reading("cannot read", ENOMEM, "a.png"));
  for (const int reason : {EACCES, EIO, ENOENT}) {
    EXPECT_ERROR("a.png: cannot read", fail_reading("cannot read", reason, "a.png"));
    EXPECT_FALSE(is_of_the_moment(reason)) << reason;
  }
}

TEST(ReadFile, WhatIsNoFileIsNamed) {
  const test::TemporaryFolder folder;
  EXPECT_ERROR("found a folder", read_file_bytes(folder.path()));
  EXPECT_ERROR("No such file", read_file_bytes(folder / "none"));
  EXPECT_EQ(read_file_bytes(folder.write("a", "xyz")), (std::vector<uint8_t>{'x', 'y', 'z'}));
  EXPECT_TRUE(read_file_bytes(folder.write("empty", "")).empty());
}

}  // namespace
}  // namespace fungi
