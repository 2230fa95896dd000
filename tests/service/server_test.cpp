// SPDX-License-Identifier: Apache-2.0
// The service on a port of loopback: what sockets, slow and broken clients do to it.
#include "fungi/service/server.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <thread>

#include "tests/service/served_store.h"
#include "tests/support/errors.h"
#include "tests/support/made_store.h"

namespace fungi {
namespace {

using test::Client;
using test::Json;
using test::status_of;

// Rows without a model: sockets do not care.
class ServerTest : public testing::Test {
 protected:
  ServerTest() {
    if (!have_server()) return;
    std::vector<test::MadeRow> rows;
    for (size_t i = 0; i < 30; ++i)
      rows.push_back({"row " + std::to_string(i), int64_t(i % 2), {{float(i), float(i * i % 7)}}});
    test::write_made_store(folder_ / "made", rows, {"even", "odd"});
    service_ = std::make_unique<Service>(ServiceOptions{.stores = {{.path = folder_ / "made"}}});
  }
  void SetUp() override {
    if (!have_server()) GTEST_SKIP() << "this build has no server (FUNGI_HTTPLIB)";
  }
  Server& start(ServerOptions options = {}) {
    server_ = std::make_unique<Server>(*service_, std::move(options));
    return *server_;
  }
  Client client() const { return Client(server_->port()); }
  int status(const std::string& method, const std::string& target, const std::string& body = "",
             const std::string& headers = "") {
    return status_of(client().ask(method, target, body, headers));
  }

  const test::TemporaryFolder folder_{test::place_in_memory()};
  std::unique_ptr<Service> service_;
  std::unique_ptr<Server> server_;
};

const std::string kJson = "Content-Type: application/json\r\n";

TEST_F(ServerTest, AnswersOnOneConnectionWithTheHeadersOfItsPage) {
  Server& server = start();
  EXPECT_EQ(server.url(), "http://127.0.0.1:" + std::to_string(server.port()));
  Client one = client();
  for (int i = 0; i < 3; ++i) {
    const std::string answer =
        one.ask("POST", "/v1/search", R"({"row": 3, "k": 2})", kJson);
    EXPECT_EQ(status_of(answer), 200) << answer;
    const Json body = Json::parse(answer.substr(answer.find("\r\n\r\n")));
    EXPECT_EQ(body["searches"][0]["neighbours"][0]["row"], 3);
  }
  const std::string page = one.ask("GET", "/");
  EXPECT_EQ(status_of(page), 200);
  for (const char* header :
       {"Content-Security-Policy: default-src 'none'", "X-Content-Type-Options: nosniff",
        "X-Frame-Options: DENY", "Referrer-Policy: no-referrer"})
    EXPECT_NE(page.find(header), std::string::npos) << header;
  EXPECT_EQ(page.find("Access-Control"), std::string::npos) << "CORS is off";
  // Parts and packed answers are not made.
  const std::string part =
      one.ask("GET", "/openapi.json", "", "Range: bytes=0-1,0-2\r\nAccept-Encoding: gzip, br\r\n");
  EXPECT_EQ(status_of(part), 200);
  EXPECT_NE(part.find("\"openapi\""), std::string::npos);
  EXPECT_EQ(status_of(one.ask("GET", "/metrics")), 200);
  Client heads = client();
  heads.send("HEAD /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(status_of(heads.receive()), 200);
  // Also methods that nobody here has heard of.
  for (const std::string method : {"TRACE", "PUT", "QUERY"})
    for (const auto& [path, allowed] : {std::pair<std::string, std::string>("/healthz", "GET, HEAD"),
                                        {"/v1/search?k=3", "POST"}}) {
      const std::string refused = client().ask(method, path);
      EXPECT_EQ(status_of(refused), 405) << method;
      EXPECT_NE(refused.find("Allow: " + allowed + "\r\n"), std::string::npos) << refused;
    }
  EXPECT_EQ(status("QUERY", "/nothing"), 404);
  EXPECT_EQ(status("GET", "/v1/rows?id=row%203"), 200);
  EXPECT_EQ(status("GET", "/v1/rows/%2e%2e%2f%2e%2e%2fetc%2fpasswd"), 400);
}

TEST_F(ServerTest, WhatIsNoRequestIsAnsweredToo) {
  start({.body_limit = 1000, .head_seconds = 1, .body_seconds = 1});
  const std::string post = "POST /v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\n" + kJson;
  const std::vector<std::pair<std::string, int>> wrong{
      {"nonsense\r\n\r\n", 400},
      {"GET /healthz HTTP/9\r\n\r\n", 400},
      {post + "\r\n", 411},
      {post + "Content-Length: 2000\r\n\r\n" + std::string(2000, ' '), 413},
      {post + "Content-Length: -1\r\n\r\n", 400},
      {post + "Content-Length: 1e3\r\n\r\n", 400},
      {post + "Content-Length: 99999999999999999999\r\n\r\n", 400},
      {post + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}}", 400},
      {post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", 400},
      {post + "Transfer-Encoding: gzip\r\n\r\n{}", 501},
      {post + "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", 415},
      {post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n7d0\r\n" + std::string(2000, ' ') + "\r\n0\r\n\r\n",
       413},
      {post + "Content-Length: 20\r\n\r\n{", 408},
      {"GET /" + std::string(9000, 'a') + " HTTP/1.1\r\n\r\n", 414},
      {"GET /healthz HTTP/1.1\r\nA: " + std::string(100'000, 'a'), 431},
      {"GET /healthz HTTP/1.1\r\nHost: 127", 408},
  };
  for (const auto& [bytes, expected] : wrong) {
    SCOPED_TRACE(bytes.substr(0, 120));
    Client one = client();
    one.send(bytes);
    const std::string answer = one.receive();
    EXPECT_EQ(status_of(answer), expected) << answer;
    const size_t body = answer.find("\r\n\r\n");
    ASSERT_NE(body, std::string::npos);
    EXPECT_TRUE(Json::accept(answer.substr(body + 4))) << answer;
    EXPECT_EQ(status("GET", "/healthz"), 200);
  }
  // A chunked body of the right size is one.
  Client one = client();
  one.send(post + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"row\r\n5\r\n\": 1}\r\n0\r\n\r\n");
  EXPECT_EQ(status_of(one.receive()), 200);
}

TEST_F(ServerTest, StrangersAndOtherPagesStayOutside) {
  start();
  EXPECT_EQ(status("GET", "/v1/stores", "", "Origin: http://evil.example\r\n"), 403);
  const std::string own = "Origin: http://127.0.0.1\r\n";
  EXPECT_EQ(status("GET", "/v1/stores", "", own), 200);
  Client rebound = client();
  rebound.send("GET /v1/stores HTTP/1.1\r\nHost: evil.example\r\n\r\n");
  EXPECT_EQ(status_of(rebound.receive()), 421);
  server_.reset();

  EXPECT_ERROR("whoever reaches this address", start({.listen = "0.0.0.0"}));
  EXPECT_ERROR("no address of this machine", start({.listen = "no.such.host.invalid"}));
  EXPECT_ERROR("at least 16 characters",
               start({.token_file = folder_.write("short", "password\n")}));
  EXPECT_ERROR("belong together", start({.certificate = folder_.write("a.pem", "x")}));
  EXPECT_ERROR("expected a certificate", start({.certificate = folder_.write("a.pem", "x"),
                                                .key = folder_.write("b.pem", "y")}));
  const auto token = folder_.write("token", "correct horse battery staple\n");
  start({.listen = "0.0.0.0", .token_file = token, .origins = {"https://good.example"}});
  EXPECT_EQ(status("GET", "/healthz"), 200);
  EXPECT_EQ(status("GET", "/"), 200);
  for (const std::string given :
       {"", "Authorization: Bearer correct horse battery stapl\r\n",
        "Authorization: Bearer\r\n", "Authorization: Basic correct horse battery staple\r\n"}) {
    EXPECT_EQ(status("GET", "/v1/stores", "", given), 401) << given;
    EXPECT_EQ(status("GET", "/metrics", "", given), 401) << given;
    EXPECT_EQ(status("POST", "/v1/search", R"({"row": 1})", kJson + given), 401) << given;
  }
  const std::string right = "Authorization: Bearer correct horse battery staple\r\n";
  EXPECT_EQ(status("GET", "/v1/stores", "", right), 200);
  const std::string asked = client().ask(
      "OPTIONS", "/v1/search", "",
      "Origin: https://good.example\r\nAccess-Control-Request-Method: POST\r\n");
  EXPECT_EQ(status_of(asked), 204);
  EXPECT_NE(asked.find("Access-Control-Allow-Origin: https://good.example"), std::string::npos);
  Server second(*service_, {});
  EXPECT_ERROR("another program has it", Server(*service_, {.port = second.port()}));
}

// Clients that say a byte now and then, and never end: others are answered at once, and the slow
// ones are given up.
TEST_F(ServerTest, SlowClientsDoNotStopOthers) {
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  struct Case {
    size_t slow, connections;
  };
  for (const auto& [slow_ones, connections] : {Case{300, 200}, Case{1000, 1500}}) {
    SCOPED_TRACE(slow_ones);
    if (files.rlim_cur < 2 * slow_ones + 100) GTEST_SKIP() << "too few open files are allowed";
    start({.connections = connections, .head_seconds = 3});
    std::vector<std::unique_ptr<Client>> slow;
    for (size_t i = 0; i < slow_ones; ++i) {
      slow.push_back(std::make_unique<Client>(server_->port()));
      ASSERT_TRUE(slow.back()->connected()) << i;
      slow.back()->send("GET /healthz HTTP/1.1\r\nX: ");
    }
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(status("GET", "/v1/rows/1"), 200);
      for (size_t s = 0; s < slow_ones; s += 7) slow[s]->send("x");
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(taken.count(), 20);
    if (slow_ones > connections) {
      EXPECT_TRUE(slow.front()->ended(10)) << "more than may be: the oldest ones leave";
    }
    EXPECT_GT(slow.back()->receive(10).size(), 0u) << "408";
    EXPECT_TRUE(slow.back()->ended(10));
    server_.reset();
  }
}

TEST_F(ServerTest, ConnectionsAreGivenBack) {
  start({.idle_seconds = 1});
  for (int i = 0; i < 200; ++i) {
    Client one = client();
    if (i % 3 == 0) one.send("POST /v1/search HTTP/1.1\r\nContent-Length: 100\r\n\r\n{");
    if (i % 3 == 1) one.send("GET /v1/rows/1 HTTP/1.1\r\n\r\n");
  }
  Client idle = client();
  EXPECT_EQ(status_of(idle.ask("GET", "/healthz")), 200);
  EXPECT_TRUE(idle.ended(10)) << "one that asks nothing more is given up";
  const std::string metrics = client().ask("GET", "/metrics");
  const size_t at = metrics.find("\nfungi_connections ");
  ASSERT_NE(at, std::string::npos);
  EXPECT_LT(std::stoul(metrics.substr(at + 19)), 20u);
}

TEST_F(ServerTest, StoppingAnswersWhoHasAsked) {
  Server& server = start();
  Client idle = client();
  EXPECT_EQ(status_of(idle.ask("GET", "/healthz")), 200);
  Client asking = client();
  const std::string body = R"({"row": 3})";
  asking.send("POST /v1/search HTTP/1.1\r\n" + kJson +
              "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n{");
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  std::thread stopper([&] { server.stop(); });
  EXPECT_TRUE(idle.ended(10));
  const uint16_t port = server.port();
  asking.send(body.substr(1));
  const std::string answer = asking.receive();
  EXPECT_EQ(status_of(answer), 200);
  EXPECT_NE(answer.find("Connection: close"), std::string::npos);
  stopper.join();
  EXPECT_FALSE(Client(port).connected());
  EXPECT_EQ(service_->answer(test::get("/healthz")).status, 503);
}

}  // namespace
}  // namespace fungi
