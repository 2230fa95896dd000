// SPDX-License-Identifier: Apache-2.0
// Linked with its own http_curl.cpp, compiled as where libcurl is missing.
#include <gtest/gtest.h>

#include "fungi/prompt/http.h"
#include "tests/support/errors.h"

namespace fungi {
namespace {

TEST(AskWithoutCurl, SaysSo) {
  EXPECT_FALSE(have_http());
  EXPECT_ERROR("cannot ask a server", http_sessions(parse_endpoint("http://localhost"), {}));
}

}  // namespace
}  // namespace fungi
