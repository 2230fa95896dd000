// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "fungi/base/error.h"
#include "fungi/prompt/http.h"

#ifdef FUNGI_HAVE_CURL
#include "fungi/base/curl_handle.h"
#endif

namespace fungi {

#ifndef FUNGI_HAVE_CURL

bool have_http() { return false; }

OpenSession http_sessions(const Endpoint&, const ApiKey&, HttpOptions) {
  fail("this build of fungi cannot ask a server", "`endpoint`",
       "build it with libcurl4-openssl-dev installed (-DFUNGI_CURL=ON), or send the file of "
       "requests in another way");
}

#else

bool have_http() { return true; }

namespace {

constexpr size_t kLargestReply = size_t{16} << 20;

size_t take(const char* data, size_t, size_t count, void* to) {
  auto& body = *static_cast<std::string*>(to);
  if (body.size() + count > kLargestReply) return 0;  // ends the transfer
  body.append(data, count);
  return count;
}

class CurlSession final : public HttpSession {
 public:
  CurlSession(const Endpoint& endpoint, const ApiKey& key, HttpOptions o)
      : handle_(endpoint.loopback) {
    handle_.add_header("Content-Type: application/json");
    handle_.add_header("Accept: application/json");
    handle_.add_header("Expect:");  // no waiting for a permission to send the body
    if (key.given()) handle_.add_header("Authorization: Bearer " + key.secret());
    handle_.set(CURLOPT_URL, endpoint.url.c_str());
    handle_.set(CURLOPT_PROTOCOLS_STR, endpoint.encrypted ? "https" : "http");
    handle_.set(CURLOPT_TIMEOUT_MS, CurlHandle::milliseconds(o.timeout));
    handle_.set(CURLOPT_WRITEFUNCTION, take);
    handle_.set(CURLOPT_ACCEPT_ENCODING, "");  // whatever libcurl unpacks
    handle_.set(CURLOPT_POST, 1L);
  }

  HttpReply post(const std::string& json) override {
    HttpReply reply;
    handle_.set(CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(json.size()));
    handle_.set(CURLOPT_POSTFIELDS, json.c_str());
    handle_.set(CURLOPT_WRITEDATA, &reply.body);
    if (const CURLcode code = handle_.perform(reply.trouble); code != CURLE_OK) {
      if (code == CURLE_WRITE_ERROR)
        reply.trouble = fmt::format("the reply is longer than {} MB", kLargestReply >> 20);
      return reply;
    }
    reply.status = handle_.status();
    if (const auto wait = handle_.get<curl_off_t>(CURLINFO_RETRY_AFTER); wait > 0)
      reply.retry_after = double(wait);
    return reply;
  }

 private:
  CurlHandle handle_;
};

}  // namespace

OpenSession http_sessions(const Endpoint& endpoint, const ApiKey& key, HttpOptions o) {
  CurlHandle::start();
  return [=] { return std::make_unique<CurlSession>(endpoint, key, o); };
}

#endif

}  // namespace fungi
