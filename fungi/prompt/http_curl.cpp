// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/error.h"
#include "fungi/prompt/http.h"

#ifdef FUNGI_HAVE_CURL
#include <curl/curl.h>

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
constexpr long kConnectSeconds = 15;

size_t take(const char* data, size_t, size_t count, void* to) {
  auto& body = *static_cast<std::string*>(to);
  if (body.size() + count > kLargestReply) return 0;  // ends the transfer
  body.append(data, count);
  return count;
}

class CurlSession final : public HttpSession {
 public:
  CurlSession(const Endpoint& endpoint, const ApiKey& key, HttpOptions o)
      : handle_(curl_easy_init(), curl_easy_cleanup), headers_(nullptr, curl_slist_free_all) {
    FUNGI_ASSERT(handle_ != nullptr);
    add_header("Content-Type: application/json");
    add_header("Accept: application/json");
    add_header("Expect:");  // no waiting for a permission to send the body
    if (key.given()) add_header("Authorization: Bearer " + key.secret());
    set(CURLOPT_URL, endpoint.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, endpoint.encrypted ? "https" : "http");
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_HTTPHEADER, headers_.get());
    set(CURLOPT_HEADEROPT, long(CURLHEADER_SEPARATE));  // a proxy does not see the key
    if (endpoint.loopback) set(CURLOPT_PROXY, "");
    set(CURLOPT_USERAGENT, "fungi/" FUNGI_VERSION);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    set(CURLOPT_TIMEOUT_MS, long(std::clamp(o.timeout * 1000, 1.0, 1e9)));  // 0 would be none
    set(CURLOPT_WRITEFUNCTION, take);
    set(CURLOPT_ACCEPT_ENCODING, "");  // whatever libcurl unpacks
    set(CURLOPT_POST, 1L);
  }

  HttpReply post(const std::string& json) override {
    HttpReply reply;
    char trouble[CURL_ERROR_SIZE] = "";
    set(CURLOPT_ERRORBUFFER, trouble);
    set(CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(json.size()));
    set(CURLOPT_POSTFIELDS, json.c_str());
    set(CURLOPT_WRITEDATA, &reply.body);
    const CURLcode code = curl_easy_perform(handle_.get());
    set(CURLOPT_ERRORBUFFER, nullptr);
    if (code != CURLE_OK) {
      reply.trouble = code == CURLE_WRITE_ERROR
                          ? fmt::format("the reply is longer than {} MB", kLargestReply >> 20)
                          : std::string(*trouble ? trouble : curl_easy_strerror(code));
      return reply;
    }
    long status = 0;
    curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &status);
    reply.status = int(status);
    curl_off_t wait = 0;
    curl_easy_getinfo(handle_.get(), CURLINFO_RETRY_AFTER, &wait);
    if (wait > 0) reply.retry_after = double(wait);
    return reply;
  }

 private:
  template <class Value>
  void set(CURLoption option, Value value) {
    FUNGI_ASSERT(curl_easy_setopt(handle_.get(), option, value) == CURLE_OK);
  }
  void add_header(const std::string& line) {
    curl_slist* longer = curl_slist_append(headers_.get(), line.c_str());
    FUNGI_ASSERT(longer != nullptr);
    static_cast<void>(headers_.release());
    headers_.reset(longer);
  }

  std::unique_ptr<CURL, void (*)(CURL*)> handle_;
  std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers_;
};

}  // namespace

OpenSession http_sessions(const Endpoint& endpoint, const ApiKey& key, HttpOptions o) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (ready != CURLE_OK)
    fail("libcurl could not be started", "`endpoint`", curl_easy_strerror(ready));
  return [=] { return std::make_unique<CurlSession>(endpoint, key, o); };
}

#endif

}  // namespace fungi
