// SPDX-License-Identifier: Apache-2.0
#include "fungi/service/service.h"

#include <fmt/format.h>

#include <cmath>
#include <new>
#include <set>

#include "fungi/service/page_files.h"
#include "fungi/service/refused.h"
#include "fungi/service/state.h"

namespace fungi {
namespace {

using service::Json;
using service::Refused;

const char* type_of(int status) {
  switch (status) {
    case 401:
    case 403:
      return "authentication_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    default:
      return status < 500 ? "invalid_request_error" : "server_error";
  }
}

WebAnswer error(int status, const std::string& sentence, const std::string& hint,
                const std::string& param = "", double retry_after = 0) {
  Json body{{"message", sentence},
            {"type", type_of(status)},
            {"code", status},
            {"param", param.empty() ? Json() : Json(param)}};
  if (!hint.empty()) body["hint"] = hint;
  WebAnswer out{.status = status, .body = service::dump({{"error", body}})};
  if (retry_after > 0)
    out.headers.emplace_back("Retry-After", fmt::format("{}", size_t(std::ceil(retry_after))));
  return out;
}

using Answer = WebAnswer (*)(Service::State&, const WebRequest&);
struct Route {
  std::string_view path, method;
  Answer answer;
};

WebAnswer health(Service::State& s, const WebRequest&) {
  const bool draining = s.draining;
  WebAnswer out{.status = draining ? 503 : 200,
                .body = service::dump({{"status", draining ? "draining" : "ok"},
                                       {"version", FUNGI_VERSION},
                                       {"stores", s.holdings.size()},
                                       {"waiting", s.samples.waiting()}})};
  if (draining) out.headers.emplace_back("Retry-After", "5");
  return out;
}

WebAnswer metrics(Service::State& s, const WebRequest&) {
  std::string out = s.metrics.text();
  const auto add = [&](const char* name, const char* kind, const char* help, auto value) {
    out += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}\n", name, help, kind, value);
  };
  add("fungi_samples_total", "counter", "Samples computed", s.computed.load());
  add("fungi_passes_total", "counter", "Passes that computed them", s.passes.load());
  add("fungi_waiting_samples", "gauge", "Samples in the queue", s.samples.waiting());
  if (s.metrics.connections)
    add("fungi_connections", "gauge", "Open connections", s.metrics.connections());
  add("process_resident_memory_bytes", "gauge", "Memory of this process",
      service::resident_bytes());
  out += "# HELP fungi_store_rows Rows of a store\n# TYPE fungi_store_rows gauge\n";
  for (const auto& h : s.holdings) try {
      out += fmt::format("fungi_store_rows{{store=\"{}\"}} {}\n", service::escape_label(h->name()),
                         h->now()->rows().rows());
    } catch (const Error&) {  // it has gone: no rows to tell of
    }
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = std::move(out)};
}

constexpr Route kRoutes[] = {
    {"/healthz", "GET", health},
    {"/metrics", "GET", metrics},
    {"/v1/stores", "GET",
     [](Service::State& s, const WebRequest&) { return service::answer_stores(s); }},
    {"/v1/models", "GET",
     [](Service::State& s, const WebRequest&) { return service::answer_models(s); }},
    {"/v1/rows", "GET", service::answer_rows},
    {"/v1/classes", "GET", service::answer_classes},
    {"/v1/search", "POST", service::answer_search},
    {"/v1/embeddings", "POST", service::answer_embeddings},
    {"/v1/map", "GET", service::answer_map},
    {"/v1/gains", "GET", service::answer_gains},
};
constexpr std::string_view kRow = "/v1/rows/";

bool reads(const std::string& method) { return method == "GET" || method == "HEAD"; }

WebAnswer wrong_method(std::string_view wanted) {
  WebAnswer out = error(405, fmt::format("expected {}, found another method", wanted), "");
  out.headers.emplace_back("Allow", wanted == "GET" ? "GET, HEAD" : std::string(wanted));
  return out;
}

WebAnswer route(Service::State& s, const WebRequest& r) {
  for (const Route& at : kRoutes)
    if (r.path == at.path)
      return r.method == at.method || (at.method == "GET" && reads(r.method)) ? at.answer(s, r)
                                                                              : wrong_method(at.method);
  if (r.path.starts_with(kRow)) {
    if (!reads(r.method)) return wrong_method("GET");
    return service::answer_row(s, r, std::string_view(r.path).substr(kRow.size()));
  }
  for (const service::PageFile& file : service::page_files())
    if (r.path == file.path || (r.path == "/" && file.path == "/index.html")) {
      if (!reads(r.method)) return wrong_method("GET");
      return {.content_type = std::string(file.type),
              .body = std::string(file.bytes),
              .headers = {{"Cache-Control", "no-cache"}}};
    }
  return error(404, "there is nothing at this address", "/openapi.json tells what there is");
}

// The path as /metrics counts it: of so few that no client fills the memory with them.
std::string counted(const std::string& path) {
  for (const Route& at : kRoutes)
    if (path == at.path) return path;
  if (path.starts_with(kRow))
    return path.ends_with("/thumbnail") ? "/v1/rows/{row}/thumbnail"
           : path.ends_with("/sample")  ? "/v1/rows/{row}/sample"
                                        : "/v1/rows/{row}";
  return "page";
}

}  // namespace

Service::Service(ServiceOptions options) : state_(std::make_unique<State>(std::move(options))) {
  State& s = *state_;
  if (s.options.stores.empty()) fail("expected a store or an index, found none", "stores");
  std::set<std::string> names;
  std::vector<std::shared_ptr<const service::Opened>> opened;
  for (ServedStore source : s.options.stores) {
    if (source.name.empty()) {
      const auto path = source.path.lexically_normal();
      source.name = (path.has_filename() ? path : path.parent_path()).filename().string();
    }
    if (!names.insert(source.name).second)
      fail(fmt::format("two stores would be called '{}'", source.name), source.path.string(),
           "give one of them another name");
    auto held = std::make_unique<service::Holding>(std::move(source), s.options.memory, opened,
                                                   s.searching);
    opened.push_back(held->now());
    try {
      held->now()->extractor().get(s.computing);
    } catch (const Error& e) {
      s.notes.push_back(fmt::format("{}: rows can be searched, but no samples of yours: {}",
                                    held->name(), e.what()));
    }
    s.holdings.push_back(std::move(held));
  }
}

Service::~Service() = default;

const std::vector<std::string>& Service::notes() const { return state_->notes; }
size_t Service::stores() const { return state_->holdings.size(); }
size_t Service::waiting() const { return state_->samples.waiting(); }
bool Service::draining() const { return state_->draining; }
void Service::drain(bool draining) { state_->draining = draining; }

void Service::count_connections(std::function<size_t()> count) {
  state_->metrics.connections = std::move(count);
}

void Service::log(const WebRequest& request, const WebAnswer& answer, double seconds) {
  state_->metrics.count(counted(request.path), answer.status, seconds);
}

WebAnswer Service::refuse(int status, const std::string& sentence, const std::string& hint) {
  return error(status, sentence, hint);
}

WebAnswer Service::answer(const WebRequest& request) {
  try {
    return route(*state_, request);
  } catch (const Refused& e) {
    return error(e.status(), e.message(), e.hint(), e.place(), e.retry_after());
  } catch (const Error& e) {
    // Of what the server itself reads; its paths are nobody's business.
    return error(503, e.message(), "come back later; the server's own log may tell more", "", 5);
  } catch (const std::bad_alloc&) {
    return error(503, "there is not enough memory for this request", "ask for less, or later", "",
                 5);
  } catch (const std::exception&) {
    return error(500, "a fault of the server", "tell those who run it");
  }
}

}  // namespace fungi
