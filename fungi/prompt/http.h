// SPDX-License-Identifier: Apache-2.0
// The way to a server and back: whoever asks knows nothing else of it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "fungi/prompt/endpoint.h"

namespace fungi {

struct HttpReply {
  int status = 0;  // 0: no whole reply came, `trouble` says why
  std::string body, trouble;
  std::optional<double> retry_after;  // seconds, as the server says
};

// A connection that one thread uses, one request after the other.
class HttpSession {
 public:
  virtual ~HttpSession() = default;
  // Never throws for what a network or a server does.
  virtual HttpReply post(const std::string& json) = 0;
};
using OpenSession = std::function<std::unique_ptr<HttpSession>()>;  // from any thread

struct HttpOptions {
  double timeout = 60;  // seconds for a request and its whole reply
};

// Through libcurl. Redirects are not followed. Error where this build has none (have_http()).
OpenSession http_sessions(const Endpoint& endpoint, const ApiKey& key, HttpOptions options = {});
bool have_http();

}  // namespace fungi
