// SPDX-License-Identifier: Apache-2.0
#include "fungi/prompt/endpoint.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/errors.h"

namespace fungi {
namespace {

TEST(Endpoint, IsTheWorkBelowABaseAddress) {
  EXPECT_EQ(parse_endpoint("https://api.example.org/v1").url,
            "https://api.example.org/v1/chat/completions");
  EXPECT_EQ(parse_endpoint("HTTP://Host:8080/").url, "http://Host:8080/chat/completions");
  EXPECT_EQ(parse_endpoint("http://h/v1/chat/completions/").url, "http://h/v1/chat/completions");
  EXPECT_EQ(parse_endpoint("http://[::1]:80/v1").url, "http://[::1]:80/v1/chat/completions");
  EXPECT_TRUE(parse_endpoint("https://h").encrypted);
  EXPECT_FALSE(parse_endpoint("http://h").encrypted);
}

TEST(Endpoint, KnowsThisMachine) {
  for (const char* own : {"localhost", "LocalHost:80", "127.0.0.1", "127.1.2.255:8080", "[::1]"})
    EXPECT_TRUE(parse_endpoint(std::string("http://") + own + "/v1").loopback) << own;
  for (const char* other :
       {"localhost.example.org", "127.0.0.1.example.org", "128.0.0.1", "127.0.0.256", "127.1",
        "0127.0.0.1", "127.0.0.01", "127.0.0.1.", "[::2]", "localhost.", "127.0.0.1.5", "10.0.0.1"})
    EXPECT_FALSE(parse_endpoint(std::string("http://") + other + "/v1").loopback) << other;
}

TEST(Endpoint, RefusesWhatAnotherReaderMightTakeForSomethingElse) {
  for (const char* bad : {"",
                          "localhost:8080",
                          "ftp://host/",
                          "file:///etc/passwd",
                          "https:/host",
                          "http://",
                          "http:///v1",
                          "http://user:secret@host/v1",
                          "http://127.0.0.1@example.org/",
                          "http://127.0.0.1\\@example.org/",
                          "http://host/v1?key=secret",
                          "http://host/#x",
                          "http://ho st/",
                          "http://host\n/",
                          "http://host:/v1",
                          "http://host:x/",
                          "http://host:99999/",
                          "http://[::1/",
                          "http://[]/",
                          "http://[::1]x/",
                          "http://h\xc3\xb6st/"}) {
    const std::string error = test::error_of([&] { parse_endpoint(bad); });
    EXPECT_NE(error.find("expected"), std::string::npos) << bad;
    EXPECT_EQ(error.find("secret"), std::string::npos) << error;
  }
}

class KeyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("OPENAI_API_KEY");
    ::unsetenv("FUNGI_TEST_KEY");
  }
  void TearDown() override { SetUp(); }
  const Endpoint safe_ = parse_endpoint("https://h"), own_ = parse_endpoint("http://localhost"),
                 clear_ = parse_endpoint("http://h");
};

TEST_F(KeyTest, ComesFromTheEnvironment) {
  EXPECT_FALSE(read_key(safe_, {}).given());
  EXPECT_FALSE(read_key(clear_, {}).given());
  EXPECT_ERROR("FUNGI_TEST_KEY is not set", read_key(safe_, {.variable = "FUNGI_TEST_KEY"}));
  ::setenv("OPENAI_API_KEY", "usual", 1);
  ::setenv("FUNGI_TEST_KEY", "own", 1);
  EXPECT_EQ(read_key(safe_, {}).secret(), "usual");
  EXPECT_EQ(read_key(own_, {}).secret(), "usual");
  EXPECT_EQ(read_key(safe_, {.variable = "FUNGI_TEST_KEY"}).secret(), "own");
  EXPECT_FALSE(read_key(safe_, {.variable = "none"}).given());
}

TEST_F(KeyTest, TravelsUnreadOrIsAllowedNotTo) {
  ::setenv("OPENAI_API_KEY", "usual", 1);
  const std::string error = test::error_of([&] { read_key(clear_, {}); });
  EXPECT_NE(error.find("`key_over_http`"), std::string::npos) << error;
  EXPECT_EQ(error.find("usual,"), std::string::npos) << error;
  EXPECT_EQ(read_key(clear_, {.over_http = true}).secret(), "usual");
  EXPECT_FALSE(read_key(clear_, {.variable = "none"}).given());
}

TEST_F(KeyTest, IsOneWordAndHidden) {
  for (const char* bad : {"two words", "key\nHeader: x", "k\xc3\xa9y", "key\r", "\tkey"}) {
    ::setenv("OPENAI_API_KEY", bad, 1);
    const std::string error = test::error_of([&] { read_key(safe_, {}); });
    EXPECT_NE(error.find("OPENAI_API_KEY: expected a key"), std::string::npos) << error;
    EXPECT_EQ(error.find(bad), std::string::npos) << error;
  }
  ::setenv("OPENAI_API_KEY", "abc", 1);
  EXPECT_EQ(read_key(safe_, {}).hidden("abcabc, xabcd, ab"), "[key][key], x[key]d, ab");
  EXPECT_EQ(ApiKey().hidden("abc"), "abc");
}

}  // namespace
}  // namespace fungi
