// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/error.h"
#include "fungi/service/http.h"

#ifdef FUNGI_HAVE_HTTPLIB
#include <httplib.h>
#endif

namespace fungi::service {

#ifndef FUNGI_HAVE_HTTPLIB

bool have_http_server() { return false; }

std::unique_ptr<Http> make_http(HttpRules) {
  fail("this build of fungi has no server", "`listen`",
       "build it with libcpp-httplib-dev installed (-DFUNGI_HTTPLIB=ON)");
}

#else

bool have_http_server() { return true; }

namespace {

auto after(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

class Stream final : public httplib::Stream {
 public:
  explicit Stream(Wire& wire) : wire_(wire) {}
  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, size_t size) override { return wire_.read(to, size); }
  ssize_t write(const char* from, size_t size) override {
    return wire_.write(from, size) ? ssize_t(size) : -1;
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip = wire_.peer(), port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override { ip.clear(), port = 0; }
  socket_t socket() const override { return 0; }  // nothing of the library may wait for it

 private:
  Wire& wire_;
};

// What is known of the request that a thread is at.
struct Current {
  Wire* wire = nullptr;
  WebRequest request;
  std::optional<WebAnswer> refused;
  bool head_came = false, body_left = false, last = false;
  Clock::time_point begin;
};
thread_local Current* current = nullptr;

class Protocol final : public httplib::Server, public Http {
 public:
  explicit Protocol(HttpRules rules) : rules_(std::move(rules)) {
    set_keep_alive_timeout(time_t(rules_.idle_seconds));
    set_keep_alive_max_count(kRequests);
    // What has a body of its own kind is read by the handler of POST; all else is answered here.
    set_pre_routing_handler([this](const httplib::Request& r, httplib::Response& out) {
      if (!current->refused && r.method == "POST") return HandlerResponse::Unhandled;
      put(current->refused ? *current->refused : rules_.answer(current->request), out);
      return HandlerResponse::Handled;
    });
    Post("/", [this](const httplib::Request&, httplib::Response& out,
                     const httplib::ContentReader& read) { post(out, read); });
    set_error_handler(Handler([this](const httplib::Request& r, httplib::Response& out) {
      if (out.body.empty()) put(unknown_method(r) ? answer_method(r) : explain(out.status), out);
    }));
    set_expect_100_continue_handler([](const httplib::Request&, httplib::Response&) {
      return current->refused ? current->refused->status : 100;
    });
    set_logger([this](const httplib::Request&, const httplib::Response& out) {
      const std::chrono::duration<double> taken = Clock::now() - current->begin;
      rules_.log(current->request, {.status = out.status}, taken.count());
    });
  }

  void serve(Wire& wire) override {
    if (!wire.greet(after(rules_.head_seconds))) return;
    Stream stream(wire);
    for (size_t count = 1; count <= kRequests; ++count) {
      wire.set_idle(true);
      if (!wire.wait_readable(after(count == 1 ? rules_.head_seconds : rules_.idle_seconds)))
        return;
      Current now;
      now.wire = &wire;
      now.begin = Clock::now();
      current = &now;
      wire.set_deadline(after(rules_.head_seconds));
      wire.allow(rules_.head_bytes);
      bool closed = false;
      const bool last = count == kRequests || rules_.draining();
      const bool alive = process_request(stream, last, closed,
                                         [&](httplib::Request& r) { head_came(r, closed); });
      current = nullptr;
      if (now.body_left || !now.head_came) return wire.finish();
      if (!alive || closed || last || now.last) return wire.finish();
    }
  }

 private:
  static constexpr size_t kRequests = 100'000;  // of one connection

  void head_came(httplib::Request& r, bool& closed) {
    Current& c = *current;
    c.head_came = true;
    c.wire->set_idle(false);
    c.wire->allow(SIZE_MAX);
    WebRequest& to = c.request;
    to.method = r.method, to.path = r.path;
    to.query.insert(r.params.begin(), r.params.end());
    to.content_type = r.get_header_value("Content-Type");
    to.authorization = r.get_header_value("Authorization");
    to.origin = r.get_header_value("Origin");
    to.host = r.get_header_value("Host");
    to.gone = [wire = c.wire] { return wire->gone(); };
    c.refused = judge(r);
    if (!c.refused) c.refused = rules_.gate(to);
    const bool body = r.has_header("Transfer-Encoding") ||
                      (r.has_header("Content-Length") && r.get_header_value("Content-Length") != "0");
    c.body_left = body;  // until it is read
    if (body && (c.refused || r.method != "POST")) closed = true;
    // The library shall neither take the body apart, nor send a part of an answer, nor pack it: a
    // page of numbers that is packed at its best level takes longer than to compute it.
    for (const char* own : {"Content-Type", "Range", "Accept-Encoding"}) r.headers.erase(own);
    r.ranges.clear();
    r.path = "/";
    if (closed || rules_.draining()) {
      r.headers.erase("Connection");
      r.set_header("Connection", "close");
      closed = c.last = true;
    }
  }

  // What two programs in a row may understand in two ways, and what the library would wait for.
  std::optional<WebAnswer> judge(const httplib::Request& r) const {
    const size_t lengths = r.get_header_value_count("Content-Length"),
                 codings = r.get_header_value_count("Transfer-Encoding");
    const std::string length = r.get_header_value("Content-Length");
    if (lengths + codings > 1 ||
        (lengths && (length.empty() || length.size() > 18 ||
                     !std::all_of(length.begin(), length.end(),
                                  [](unsigned char d) { return d >= '0' && d <= '9'; }))))
      return rules_.refuse(400, "the length of the body is not clear",
                           "send one Content-Length, or Transfer-Encoding: chunked");
    if (codings && r.get_header_value("Transfer-Encoding") != "chunked")
      return rules_.refuse(501, "expected the transfer encoding chunked, found another one",
                           "send the body as it is");
    if (r.method == "POST" && lengths + codings == 0)
      return rules_.refuse(411, "expected the length of the body, found none",
                           "send Content-Length");
    if (!r.get_header_value("Content-Encoding").empty() &&
        r.get_header_value("Content-Encoding") != "identity")
      return rules_.refuse(415, "the body is packed", "send it as it is");
    if (lengths && std::stoull(length) > rules_.body_bytes) return too_large();
    return {};
  }

  WebAnswer too_large() const {
    return rules_.refuse(413, fmt::format("the body is larger than {} bytes", rules_.body_bytes),
                         "send less, or have the server started with a larger limit");
  }

  void post(httplib::Response& out, const httplib::ContentReader& read) {
    Current& c = *current;
    c.wire->set_deadline(after(rules_.body_seconds));
    bool large = false;
    const bool whole = read([&](const char* data, size_t size) {
      large = size > rules_.body_bytes - c.request.body.size();
      if (!large) c.request.body.append(data, size);
      return !large;
    });
    if (large) return put(too_large(), out);
    if (!whole)
      return put(c.wire->timed_out()
                     ? rules_.refuse(408, "the body did not come in time", "send it faster")
                     : rules_.refuse(400, "the body ended before it was whole", "send all of it"),
                 out);
    c.body_left = false;
    put(rules_.answer(c.request), out);
  }

  // The library takes the line of a request apart, and gives up at a method that it does not know.
  static bool unknown_method(const httplib::Request& r) {
    const auto letter = [](char c) { return c >= 'A' && c <= 'Z'; };
    return !current->head_came && !r.method.empty() && r.target.starts_with('/') &&
           r.version.starts_with("HTTP/1.") &&
           std::all_of(r.method.begin(), r.method.end(), letter) && r.method != "GET" &&
           r.method != "POST" && !current->wire->exceeded() && !current->wire->timed_out();
  }
  WebAnswer answer_method(const httplib::Request& r) {
    current->request.method = r.method;
    current->request.path = r.target.substr(0, r.target.find('?'));
    return rules_.answer(current->request);
  }

  WebAnswer explain(int status) const {
    const Wire& wire = *current->wire;
    if (wire.exceeded())
      return rules_.refuse(431, fmt::format("the head is larger than {} bytes", rules_.head_bytes),
                           "send fewer and shorter headers");
    if (wire.timed_out())
      return rules_.refuse(408, "the request did not come in time", "send it faster");
    if (status == 414)
      return rules_.refuse(414, "the address is too long", "send what is long by POST");
    return rules_.refuse(status, "expected a request of HTTP/1.1, found something else",
                         "ask in the words of /openapi.json");
  }

  void put(const WebAnswer& from, httplib::Response& to) const {
    current->wire->set_deadline(after(rules_.answer_seconds));
    to.status = from.status;
    to.body.clear();
    for (const auto& [name, value] : from.headers) {
      to.headers.erase(name);
      to.set_header(name, value);
    }
    // A server that began to end meanwhile; one that ended before has said so by itself.
    if (!current->last && rules_.draining()) {
      to.set_header("Connection", "close");
      current->last = true;
    }
    to.headers.erase("Content-Type");
    to.set_content(from.body, from.content_type);
  }

  HttpRules rules_;
};

}  // namespace

std::unique_ptr<Http> make_http(HttpRules rules) {
  return std::make_unique<Protocol>(std::move(rules));
}

#endif

}  // namespace fungi::service
