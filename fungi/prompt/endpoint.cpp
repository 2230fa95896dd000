// SPDX-License-Identifier: Apache-2.0
#include "fungi/prompt/endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "fungi/base/error.h"
#include "fungi/base/text.h"

namespace fungi {
namespace {

constexpr const char* kUsualVariable = "OPENAI_API_KEY";
constexpr std::string_view kDigits = "0123456789";

bool only(std::string_view text, std::string_view letters) {
  return text.find_first_not_of(letters) == std::string_view::npos;
}

// 127.0.0.0/8 written as four numbers; nothing that another reader might take for something else.
bool is_loopback_number(std::string_view host) {
  size_t parts = 0;
  for (bool last = false; !last; ++parts) {
    const size_t dot = std::min(host.find('.'), host.size());
    const std::string_view part = host.substr(0, dot);
    last = dot == host.size();
    host.remove_prefix(last ? dot : dot + 1);
    if (part.empty() || part.size() > 3 || !only(part, kDigits)) return false;
    if (part.size() > 1 && part[0] == '0') return false;
    if (std::stoi(std::string(part)) > 255 || (parts == 0 && part != "127")) return false;
  }
  return parts == 4;
}

}  // namespace

Endpoint parse_endpoint(const std::string& address) {
  // What is wrong with it may be a password: it is not repeated.
  const auto refuse = [](const char* what) {
    fail(what, "`endpoint`", "give the base address, such as https://api.example.org/v1");
  };
  Endpoint out;
  std::string_view rest = address;
  const std::string scheme = lower(std::string(rest.substr(0, rest.find(':'))));
  if ((scheme != "http" && scheme != "https") || !rest.substr(scheme.size()).starts_with("://"))
    refuse("expected an address that begins with https:// or http://");
  out.encrypted = scheme == "https";
  rest.remove_prefix(scheme.size() + 3);
  for (const char c : rest)
    if (c <= ' ' || c >= 0x7F || c == '\\')
      refuse("expected an address of ASCII letters without blanks");
  if (rest.find('@') != std::string_view::npos)
    refuse("expected an address without name and password: a key comes from the environment");
  if (rest.find_first_of("?#") != std::string_view::npos)
    refuse("expected an address without '?' and '#'");
  const size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view authority = rest.substr(0, slash), path = rest.substr(slash), port;
  std::string host;
  if (authority.starts_with('[')) {
    const size_t end = std::min(authority.find(']'), authority.size());
    host = lower(std::string(authority.substr(1, end - 1)));
    if (end == authority.size() || host.empty() || !only(host, "0123456789abcdef:."))
      refuse("expected an address of IPv6 between brackets");
    port = authority.substr(end + 1);
  } else {
    const size_t colon = std::min(authority.find(':'), authority.size());
    host = lower(std::string(authority.substr(0, colon)));
    if (host.empty() || !only(host, "0123456789abcdefghijklmnopqrstuvwxyz.-_"))
      refuse("expected the name of a host");
    port = authority.substr(colon);
  }
  if (!port.empty() &&
      (port[0] != ':' || port.size() < 2 || port.size() > 6 || !only(port.substr(1), kDigits) ||
       std::stoi(std::string(port.substr(1))) > 65535))
    refuse("expected a port from 0 to 65535 behind the host");
  out.loopback = host == "localhost" || host == "::1" || is_loopback_number(host);
  while (path.ends_with('/')) path.remove_suffix(1);
  constexpr std::string_view kWork = "/chat/completions";
  out.url = fmt::format("{}://{}{}{}", scheme, authority, path, path.ends_with(kWork) ? "" : kWork);
  return out;
}

std::string ApiKey::hidden(std::string text) const {
  if (key_.empty()) return text;
  constexpr std::string_view kInstead = "[key]";
  for (size_t at = 0; (at = text.find(key_, at)) != std::string::npos; at += kInstead.size())
    text.replace(at, key_.size(), kInstead);
  return text;
}

ApiKey read_key(const Endpoint& endpoint, const KeyOptions& o) {
  ApiKey key;
  if (o.variable == "none") return key;
  const std::string variable = o.variable.empty() ? kUsualVariable : o.variable;
  const char* value = std::getenv(variable.c_str());
  if (!value || !*value) {
    if (!o.variable.empty())
      fail(fmt::format("the environment variable {} is not set", variable), "`key_variable`",
           "export the key in it, or give another name; none: no key is sent");
    return key;
  }
  key.key_ = value;
  for (const char c : key.key_)
    if (c <= ' ' || c >= 0x7F)
      fail("expected a key of ASCII letters without blanks or line ends, found others", variable,
           "export the key again, and nothing else with it");
  if (!endpoint.encrypted && !endpoint.loopback && !o.over_http)
    fail(fmt::format(
             "the key in {} would travel without encryption, for everybody on the way to read",
             variable),
         "`endpoint`",
         "use https://, send no key with `key_variable=none`, or allow it with `key_over_http`");
  return key;
}

}  // namespace fungi
