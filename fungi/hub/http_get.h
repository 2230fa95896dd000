// SPDX-License-Identifier: Apache-2.0
// Fetching by HTTP, one address after the other: redirects are followed by hand, so that a token
// never leaves the host that it is for. Internal to the library.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace fungi {

// Where a hub is. Error where the text is no address, or holds a name and password.
struct HubEndpoint {
  std::string url;     // without a slash at its end
  std::string origin;  // scheme, host and port
  bool encrypted = false, loopback = false;
};
HubEndpoint parse_hub_endpoint(const std::string& address);

struct GetReply {
  int status = 0;       // 0: no whole reply came, `trouble` says why
  std::string trouble;  // in libcurl's words
  std::map<std::string, std::string> headers =
      {};                                  // lower case; of all hosts on the way, the first
  std::optional<double> retry_after = {};  // seconds
  bool refused = false;                    // by `begin` or `take`: it is of no use to try again

  std::string header(const std::string& name) const;
};

struct GetRequest {
  std::string url;
  uint64_t from = 0;  // asks for the bytes from here on
  // Of a reply with 200 or 206, before its first byte; false ends the transfer.
  std::function<bool(const GetReply&)> begin = {};
  std::function<bool(std::span<const std::byte>)> take = {};
};

struct GetOptions {
  double timeout = 60;  // seconds without a byte
  const std::atomic<bool>* stop = nullptr;
};

// One thread uses it. Never throws for what a network or a server does.
class HubSession {
 public:
  virtual ~HubSession() = default;
  virtual GetReply get(const GetRequest& request) = 0;
};

// token: shown to the endpoint's own origin and to nobody else; empty: none. Error where this build
// has no libcurl.
std::unique_ptr<HubSession> open_hub_session(const HubEndpoint& endpoint, std::string token,
                                             GetOptions options);
bool have_hub_session();

}  // namespace fungi
