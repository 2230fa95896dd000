// SPDX-License-Identifier: Apache-2.0
#include "fungi/service/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <thread>

#include "fungi/base/error.h"
#include "fungi/base/text.h"
#include "fungi/checkpoint/sha256.h"
#include "fungi/service/http.h"
#include "fungi/service/listener.h"

namespace fungi {
namespace {

using service::Clock;

constexpr size_t kShortestToken = 16;

std::string sum_of(const std::string& text) {
  return sha256(std::as_bytes(std::span(text.data(), text.size())));
}

// The token's sum: whatever is compared has the same length.
std::string read_token(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string token;
  if (!file || !std::getline(file, token))
    fail("expected a token in the first line, found none", path.string(),
         "write one there, such as 'openssl rand -hex 32' makes it");
  while (!token.empty() && (token.back() == '\r' || token.back() == ' ')) token.pop_back();
  if (token.size() < kShortestToken)
    fail(fmt::format("expected a token of at least {} characters, found {}", kShortestToken,
                     token.size()),
         path.string(), "a short one can be guessed");
  return sum_of(token);
}

// Takes as long wherever the first difference lies.
bool same(const std::string& a, const std::string& b) {
  unsigned difference = a.size() != b.size();
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    difference |= unsigned(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  return difference == 0;
}

std::string host_of(const std::string& header) {
  const size_t end = header.starts_with('[') ? header.find(']') : header.find(':');
  return lower(header.starts_with('[') ? header.substr(0, end + 1) : header.substr(0, end));
}

}  // namespace

struct Server::State {
  Service& service;
  ServerOptions options;
  std::string token;  // its sum; empty: none
  bool loopback;
  std::unique_ptr<service::Http> http;
  std::unique_ptr<service::Listener> listener;

  State(Service& s, ServerOptions o)
      : service(s), options(std::move(o)), loopback(service::is_loopback(options.listen)) {}

  bool allowed(const std::string& origin) const {
    return std::find(options.origins.begin(), options.origins.end(), origin) !=
           options.origins.end();
  }

  // A name of elsewhere that leads here is how a page of elsewhere would read what is served here.
  bool own_host(const std::string& header) const {
    const std::string host = host_of(header);
    return header.empty() || host == "localhost" || host == "[::1]" || host.starts_with("127.") ||
           host == lower(options.listen);
  }

  bool same_origin(const WebRequest& r) const {
    return r.origin == (options.certificate.empty() ? "http://" : "https://") + r.host;
  }

  std::optional<WebAnswer> gate(const WebRequest& r) const {
    if (loopback && token.empty() && !own_host(r.host))
      return finished(r, Service::refuse(421, "this server is not called by that name",
                                         "ask it as 127.0.0.1 or localhost"));
    const bool other = !r.origin.empty() && !same_origin(r);
    if (other && !allowed(r.origin))
      return finished(r, Service::refuse(403, "pages of another origin may not ask this server",
                                         "have the server started with this origin allowed"));
    if (other && r.method == "OPTIONS")
      return finished(
          r, {.status = 204,
              .headers = {{"Access-Control-Allow-Methods", "GET, POST"},
                          {"Access-Control-Allow-Headers", "Authorization, Content-Type"},
                          {"Access-Control-Max-Age", "600"}}});
    // The page itself holds nothing; whoever opens it says the token there.
    const bool guarded = r.path.starts_with("/v1/") || r.path == "/metrics";
    if (guarded && !token.empty()) {
      constexpr std::string_view kBearer = "bearer ";
      const bool bearer = lower(r.authorization.substr(0, kBearer.size())) == kBearer;
      if (!bearer || !same(sum_of(r.authorization.substr(kBearer.size())), token)) {
        WebAnswer out = Service::refuse(401, "expected the token of this server, found none or "
                                             "another one",
                                        "send Authorization: Bearer with the token");
        out.headers.emplace_back("WWW-Authenticate", "Bearer");
        return finished(r, std::move(out));
      }
    }
    return {};
  }

  WebAnswer finished(const WebRequest& r, WebAnswer out) const {
    const auto add = [&](const char* name, const std::string& value) {
      out.headers.emplace_back(name, value);
    };
    add("X-Content-Type-Options", "nosniff");
    add("Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
        "media-src 'self' blob:; connect-src 'self'; manifest-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'");
    add("X-Frame-Options", "DENY");
    add("Referrer-Policy", "no-referrer");
    add("Server", "fungi");
    if (!options.origins.empty()) add("Vary", "Origin");
    if (!r.origin.empty() && allowed(r.origin)) {
      add("Access-Control-Allow-Origin", r.origin);
      add("Access-Control-Expose-Headers", "Retry-After");
    } else {
      add("Cross-Origin-Resource-Policy", "same-origin");
    }
    const auto has = [&](const char* name) {
      return std::any_of(out.headers.begin(), out.headers.end(),
                         [&](const auto& h) { return h.first == name; });
    };
    if (!has("Cache-Control")) add("Cache-Control", "no-store");
    return out;
  }
};

bool have_server() { return service::have_http_server(); }

Server::Server(Service& service, ServerOptions options)
    : state_(std::make_unique<State>(service, std::move(options))) {
  State* const s = state_.get();
  const ServerOptions& o = s->options;
  if (!s->loopback && o.token_file.empty())
    fail("whoever reaches this address could read the stores and use the processor", o.listen,
         "name a file with a token (`token_file`), or listen on 127.0.0.1");
  if (o.certificate.empty() != o.key.empty())
    fail("a certificate and its key belong together, found one of them", "`certificate`",
         "give both `certificate` and `key`");
  if (!o.token_file.empty()) s->token = read_token(o.token_file);
  s->http = service::make_http(
      {.gate = [s](const WebRequest& r) { return s->gate(r); },
       .answer = [s](const WebRequest& r) { return s->finished(r, s->service.answer(r)); },
       .refuse =
           [s](int status, const std::string& sentence, const std::string& hint) {
             return s->finished({}, Service::refuse(status, sentence, hint));
           },
       .log = [s](const WebRequest& r, const WebAnswer& a,
                  double seconds) { s->service.log(r, a, seconds); },
       .draining = [s] { return s->service.draining(); },
       .body_bytes = o.body_limit,
       .head_seconds = o.head_seconds,
       .body_seconds = o.body_seconds,
       .answer_seconds = o.answer_seconds,
       .idle_seconds = o.idle_seconds});
  s->listener = std::make_unique<service::Listener>(
      o.listen, o.port, o.connections,
      o.certificate.empty() ? nullptr : service::open_tls(o.certificate, o.key),
      [s](service::Wire& wire) { s->http->serve(wire); });
  service.drain(false);
  service.count_connections([s] { return s->listener->connections(); });
}

Server::~Server() { stop(); }

uint16_t Server::port() const { return state_->listener->port(); }

std::string Server::url() const {
  const ServerOptions& o = state_->options;
  const bool six = o.listen.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", o.certificate.empty() ? "http" : "https", six ? "[" : "",
                     o.listen, six ? "]" : "", port());
}

void Server::stop() {
  if (!state_->listener) return;
  state_->service.drain();
  state_->listener->stop(state_->options.drain_seconds);
  state_->service.count_connections({});
  state_->listener = nullptr;
}

}  // namespace fungi
