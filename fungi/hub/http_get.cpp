// SPDX-License-Identifier: Apache-2.0
#include "fungi/hub/http_get.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "fungi/base/error.h"
#include "fungi/base/text.h"

#ifdef FUNGI_HAVE_CURL
#include "fungi/base/curl_handle.h"
#endif

namespace fungi {

std::string GetReply::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

#ifndef FUNGI_HAVE_CURL

bool have_hub_session() { return false; }

[[noreturn]] static void refuse() {
  fail("this build of fungi cannot fetch models", "`pull`",
       "build it with libcurl4-openssl-dev installed (-DFUNGI_CURL=ON), or fetch the files in "
       "another way: a folder of them is a model");
}
HubEndpoint parse_hub_endpoint(const std::string&) { refuse(); }
std::unique_ptr<HubSession> open_hub_session(const HubEndpoint&, std::string, GetOptions) {
  refuse();
}

#else

bool have_hub_session() { return true; }

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kMostRedirects = 8;

struct Address {
  std::string scheme, host, port;
  bool plain = true;  // no name, password, query or fragment in it

  static std::optional<Address> of(const std::string& url) {
    const std::unique_ptr<CURLU, void (*)(CURLU*)> parsed(curl_url(), curl_url_cleanup);
    if (!parsed || curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK)
      return {};
    const auto part = [&](CURLUPart which, unsigned flags = 0) {
      char* text = nullptr;
      if (curl_url_get(parsed.get(), which, &text, flags) != CURLUE_OK) return std::string();
      std::string copy = text;
      curl_free(text);
      return copy;
    };
    Address a{lower(part(CURLUPART_SCHEME)), lower(part(CURLUPART_HOST)),
              part(CURLUPART_PORT, CURLU_DEFAULT_PORT)};
    for (const CURLUPart other :
         {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY, CURLUPART_FRAGMENT})
      a.plain &= part(other).empty();
    return a;
  }
  std::string origin() const { return scheme + "://" + host + ":" + port; }
  bool loopback() const { return host == "localhost" || host == "127.0.0.1" || host == "[::1]"; }
};

class CurlHubSession final : public HubSession {
 public:
  CurlHubSession(const HubEndpoint& endpoint, std::string token, GetOptions o)
      : endpoint_(endpoint), token_(std::move(token)), options_(o) {}

  GetReply get(const GetRequest& request) override {
    std::string url = request.url;
    std::map<std::string, std::string> before;  // headers of the hub, which tell what a file is
    for (int redirects = 0;; ++redirects) {
      std::string next;
      GetReply reply = once(url, request, before, next);
      if (next.empty()) return reply;
      if (redirects == kMostRedirects) return {0, "it redirects in a circle", {}, {}, true};
      const auto here = Address::of(url), there = Address::of(next);
      if (!there || (there->scheme != "https" && there->scheme != "http"))
        return {0, "it redirects to an address that is none of http", {}, {}, true};
      if (here && here->scheme == "https" && there->scheme != "https")
        return {0, "it redirects to " + there->host + " without encryption", {}, {}, true};
      for (const char* told : {"x-repo-commit", "x-linked-etag", "x-linked-size"})
        if (const std::string said = reply.header(told); !said.empty()) before[told] = said;
      url = next;
    }
  }

 private:
  struct Transfer {
    CurlHandle& handle;
    const GetRequest& request;
    const std::map<std::string, std::string>& before;
    const GetOptions& options;
    curl_off_t came = -1;
    Clock::time_point last = Clock::now();  // when something came
    bool silent = false;
    GetReply reply = {};
    bool begun = false;
  };

  GetReply once(const std::string& url, const GetRequest& request,
                const std::map<std::string, std::string>& before, std::string& next) {
    const auto address = Address::of(url);
    if (!address) return {0, "it is no address", {}, {}, true};
    CurlHandle handle(address->loopback());
    if (!token_.empty() && address->origin() == endpoint_.origin)
      handle.add_header("Authorization: Bearer " + token_);
    Transfer transfer{handle, request, before, options_};
    handle.set(CURLOPT_URL, url.c_str());
    handle.set(CURLOPT_PROTOCOLS_STR, "http,https");
    const std::string range = std::to_string(request.from) + "-";
    if (request.from > 0) handle.set(CURLOPT_RANGE, range.c_str());
    handle.set(CURLOPT_HEADERFUNCTION, take_header);
    handle.set(CURLOPT_HEADERDATA, &transfer);
    handle.set(CURLOPT_WRITEFUNCTION, take_body);
    handle.set(CURLOPT_WRITEDATA, &transfer);
    handle.set(CURLOPT_NOPROGRESS, 0L);
    handle.set(CURLOPT_XFERINFOFUNCTION, keep_on);
    handle.set(CURLOPT_XFERINFODATA, &transfer);
    GetReply& reply = transfer.reply;
    const CURLcode code = handle.perform(reply.trouble);
    if (transfer.silent) reply.trouble = "the server has said nothing for too long";
    const int status = handle.status();
    if (status >= 300 && status < 400) {
      if (const auto* to = handle.get<char*>(CURLINFO_REDIRECT_URL)) next = to;
      reply.status = status;
      return std::move(reply);
    }
    if (code == CURLE_OK) reply.status = status;
    if (const auto wait = handle.get<curl_off_t>(CURLINFO_RETRY_AFTER); wait > 0)
      reply.retry_after = double(wait);
    // An empty body begins, too.
    if (reply.status == 200 || reply.status == 206) begin(transfer);
    return std::move(reply);
  }

  static bool begin(Transfer& t) {
    if (t.begun) return true;
    t.begun = true;
    for (const auto& [name, value] : t.before) t.reply.headers[name] = value;
    const int ended = std::exchange(t.reply.status, t.handle.status());
    const bool wanted = !t.request.begin || t.request.begin(t.reply);
    t.reply.status = ended;
    t.reply.refused |= !wanted;
    return wanted;
  }
  static size_t take_header(const char* data, size_t, size_t count, void* to) {
    auto& t = *static_cast<Transfer*>(to);
    const std::string_view line(data, count);
    if (line.starts_with("HTTP/")) t.reply.headers.clear();  // of a proxy before, or of "continue"
    const size_t colon = line.find(':');
    constexpr size_t kMostHeaders = 200;
    if (colon == std::string_view::npos || t.reply.headers.size() >= kMostHeaders) return count;
    const size_t from = std::min(line.find_first_not_of(" \t", colon + 1), line.size());
    const size_t end = std::min(line.find_last_not_of(" \t\r\n") + 1, line.size());
    t.reply.headers[lower(std::string(line.substr(0, colon)))] =
        std::string(line.substr(from, end > from ? end - from : 0));
    return count;
  }
  static size_t take_body(const char* data, size_t, size_t count, void* to) {
    auto& t = *static_cast<Transfer*>(to);
    const int status = t.handle.status();
    if (status != 200 && status != 206) return count;  // what an error page says is in its headers
    if (!begin(t)) return 0;
    if (t.request.take && !t.request.take(std::as_bytes(std::span(data, count)))) {
      t.reply.refused = true;
      return 0;
    }
    return count;
  }
  // libcurl's own limit looks at the mean of some seconds, and is as late.
  static int keep_on(void* of, curl_off_t, curl_off_t came, curl_off_t, curl_off_t) {
    auto& t = *static_cast<Transfer*>(of);
    const auto now = Clock::now();
    if (std::exchange(t.came, came) != came) t.last = now;
    t.silent = std::chrono::duration<double>(now - t.last).count() > t.options.timeout;
    return t.silent || (t.options.stop && t.options.stop->load()) ? 1 : 0;
  }

  const HubEndpoint endpoint_;
  const std::string token_;
  const GetOptions options_;
};

}  // namespace

HubEndpoint parse_hub_endpoint(const std::string& text) {
  CurlHandle::start();
  std::string url = text;
  while (url.ends_with('/')) url.pop_back();
  const auto address = Address::of(url);
  // What is wrong with it may be a password: it is not repeated.
  if (!address || !address->plain || address->host.empty() ||
      (address->scheme != "https" && address->scheme != "http"))
    fail(
        "expected the address of a hub that begins with https:// or http://, without name, "
        "password, '?' and '#'",
        "`endpoint`", "give the base address, such as https://hub.example.org");
  return {url, address->origin(), address->scheme == "https", address->loopback()};
}

std::unique_ptr<HubSession> open_hub_session(const HubEndpoint& endpoint, std::string token,
                                             GetOptions options) {
  CurlHandle::start();
  return std::make_unique<CurlHubSession>(endpoint, std::move(token), options);
}

#endif

}  // namespace fungi
