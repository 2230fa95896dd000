// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 on a connection, through cpp-httplib, which one file includes.
// Internal to this room.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "fungi/service/message.h"
#include "fungi/service/wire.h"

namespace fungi::service {

struct HttpRules {
  // Asked when the head has come; an answer spares reading the body.
  std::function<std::optional<WebAnswer>(const WebRequest&)> gate;
  std::function<WebAnswer(const WebRequest&)> answer;
  // The answer to what is no request, as `answer` would put it.
  std::function<WebAnswer(int status, const std::string& sentence, const std::string& hint)> refuse;
  // Told of every answer, and how long it took.
  std::function<void(const WebRequest&, const WebAnswer&, double seconds)> log;
  std::function<bool()> draining;
  size_t body_bytes = size_t{32} << 20, head_bytes = size_t{32} << 10;
  double head_seconds = 10, body_seconds = 60, answer_seconds = 60, idle_seconds = 15;
};

// False where this build has no cpp-httplib; then make_http() is an Error.
bool have_http_server();

class Http {
 public:
  virtual ~Http() = default;
  // One request after the other, until either side ends it.
  virtual void serve(Wire& wire) = 0;
};
std::unique_ptr<Http> make_http(HttpRules rules);

}  // namespace fungi::service
