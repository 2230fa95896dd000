// SPDX-License-Identifier: Apache-2.0
// What is said when something is refused.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "fungi/base/error.h"

namespace fungi::test {

// The text of the Error that `action` ends with; empty when it ends with none.
template <class Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Every Error has a text, so that an empty `part` asks for any Error, and not for none.
#define EXPECT_ERROR(part, ...)                                                         \
  do {                                                                                  \
    const std::string error_text = ::fungi::test::error_of([&] { __VA_ARGS__; });       \
    EXPECT_NE(error_text, "") << "no Error was thrown";                                 \
    EXPECT_NE(error_text.find(part), std::string::npos) << "the error: " << error_text; \
  } while (false)

}  // namespace fungi::test
