// SPDX-License-Identifier: Apache-2.0
// Whom to ask, and the key that is shown to them: it comes from the environment, is shown to nobody
// else, and never written or printed.
#pragma once

#include <string>

namespace fungi {

struct Endpoint {
  std::string url;  // of the chat completions
  bool encrypted = false, loopback = false;
};
// Of a base address as servers state it: https://host/v1, http://localhost:8080/v1. Errors: another
// scheme, no host, a name or password, a query, characters that belong to no address.
Endpoint parse_endpoint(const std::string& address);

struct KeyOptions {
  std::string variable = {};  // of the environment; empty: OPENAI_API_KEY if it is set; "none"
  bool over_http = false;     // to other machines without encryption
};

class ApiKey {
 public:
  ApiKey() = default;  // none
  bool given() const { return !key_.empty(); }
  const std::string& secret() const { return key_; }
  std::string hidden(std::string text) const;  // the text with [key] wherever the key stands in it

 private:
  friend ApiKey read_key(const Endpoint&, const KeyOptions&);
  std::string key_;
};

// Errors: a stated variable that is not set, a key that could be read on the way and `over_http`
// does not say that it may, one with characters that no key has.
ApiKey read_key(const Endpoint& endpoint, const KeyOptions& options);

}  // namespace fungi
