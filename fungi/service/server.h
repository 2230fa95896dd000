// SPDX-License-Identifier: Apache-2.0
// A Service on a port, as HTTP/1.1 through cpp-httplib. By default programs of this machine alone
// reach it.
//
//   Service service({.stores = {{.path = "train"}}});
//   Server server(service, {.port = 8080});
//   std::puts(server.url().c_str());
//   server.stop();  // when whoever asked has an answer
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "fungi/service/service.h"

namespace fungi {

struct ServerOptions {
  std::string listen = "127.0.0.1";  // beyond loopback: with a token file only
  uint16_t port = 0;                 // 0: a free one
  // Whose first line every request has to bring, as `Authorization: Bearer ...`. Empty: nobody is
  // asked.
  std::filesystem::path token_file = {};
  std::filesystem::path certificate = {}, key = {};  // PEM; both: TLS
  std::vector<std::string> origins = {};             // pages of others that may ask, by CORS
  size_t connections = 1500;
  size_t body_limit = size_t{32} << 20;  // bytes
  // Seconds: for a head, for a body, for taking an answer, for the next request, for the last ones.
  double head_seconds = 10, body_seconds = 60, answer_seconds = 60, idle_seconds = 15,
         drain_seconds = 30;
};

class Server {
 public:
  // Listens from now on. Errors: a port that cannot be had, an address beyond loopback without a
  // token, a build without cpp-httplib (have_server()). The service must outlive it.
  Server(Service& service, ServerOptions options);
  ~Server();  // stops
  Server(const Server&) = delete;

  uint16_t port() const;
  std::string url() const;  // "http://127.0.0.1:8080"
  // No new connections; whoever has asked gets an answer, for so many seconds as `drain_seconds`.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// False where this build cannot listen.
bool have_server();

}  // namespace fungi
