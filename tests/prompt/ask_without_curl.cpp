// SPDX-License-Identifier: Apache-2.0
// Linked with its own http_curl.cpp and http_get.cpp, compiled as where libcurl is missing.
#include <gtest/gtest.h>

#include "fungi/hub/http_get.h"
#include "fungi/prompt/http.h"
#include "tests/support/errors.h"

namespace fungi {
namespace {

TEST(AskWithoutCurl, SaysSo) {
  EXPECT_FALSE(have_http());
  EXPECT_ERROR("cannot ask a server", http_sessions(parse_endpoint("http://localhost"), {}));
}

TEST(PullWithoutCurl, SaysSo) {
  EXPECT_FALSE(have_hub_session());
  EXPECT_ERROR("cannot fetch models", parse_hub_endpoint("http://localhost"));
  EXPECT_ERROR("cannot fetch models", open_hub_session({}, "", {}));
}

}  // namespace
}  // namespace fungi
