// SPDX-License-Identifier: Apache-2.0
// What the tests of this room share: golden files, files made on the spot, and the message of an
// expected Error.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>

#include "fungi/base/error.h"
#include "fungi/checkpoint/source.h"
#include "tests/support/folder.h"

namespace fungi {

inline std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(FUNGI_GOLDEN_DIR) / "checkpoint" / name;
}

using test::read_file;

// A folder of its own for each test, removed at its end.
class FolderTest : public ::testing::Test {
 protected:
  const test::TemporaryFolder folder_;
};

// Opens bytes as a file and reads every float tensor of it; returns how many there were.
inline size_t read_all(std::string_view bytes) {
  const auto source = open_source(FileBytes::borrow("memory", std::as_bytes(std::span(bytes))));
  size_t count = 0;
  for (size_t i = 0; i < source->tensors.size(); ++i) {
    const TensorInfo& info = source->tensors[i];
    if (info.type > DType::f64) continue;
    Matrix<float> values(1, info.count());
    source->read(i, values.data());
    ++count;
  }
  return count;
}

// The text of the Error that an action ends with; fails the test when there is none, or another
// exception.
template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_FALSE(error.place().empty()) << error.what();
    EXPECT_FALSE(error.hint().empty()) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return "";
}

inline std::string open_error(std::string_view bytes) {
  return error_of([&] { read_all(bytes); });
}

#define EXPECT_CONTAINS(text, part)                                            \
  do {                                                                         \
    const std::string contains_text_ = (text);                                 \
    EXPECT_NE(contains_text_.find(part), std::string::npos) << contains_text_; \
  } while (false)

// One text of many; a chain of + over short literals makes GCC 12 warn of overlaps that cannot be.
template <class... Parts>
std::string join(const Parts&... parts) {
  std::string all;
  (all.append(parts), ...);
  return all;
}

template <class T>
std::string raw(const T& value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

}  // namespace fungi
