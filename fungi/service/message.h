// SPDX-License-Identifier: Apache-2.0
// What a service is asked and what it answers, whatever carries it: a socket, or a program that
// holds the service itself.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace fungi {

struct WebRequest {
  std::string method = "GET", path = "/";             // the path is decoded, without the query
  std::multimap<std::string, std::string> query = {};  // decoded
  std::string content_type = {}, body = {};
  std::string authorization = {}, origin = {}, host = {};  // as the headers have them
  // Whether whoever asks has left: then nobody waits for the answer. Empty: never.
  std::function<bool()> gone = {};
};

struct WebAnswer {
  int status = 200;
  std::string content_type = "application/json", body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
};

}  // namespace fungi
