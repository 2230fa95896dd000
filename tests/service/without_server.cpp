// SPDX-License-Identifier: Apache-2.0
// Linked with its own http_httplib.cpp and tls.cpp, compiled as where cpp-httplib is missing.
#include <gtest/gtest.h>

#include "fungi/service/http.h"
#include "tests/support/errors.h"

namespace fungi {
namespace {

TEST(WithoutServer, SaysSo) {
  EXPECT_FALSE(service::have_http_server());
  EXPECT_ERROR("libcpp-httplib-dev", service::make_http({}));
  EXPECT_ERROR("libcpp-httplib-dev", service::open_tls("a", "b"));
}

}  // namespace
}  // namespace fungi
