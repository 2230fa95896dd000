// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as the body of a request. The first byte says of which kind; what is
// understood keeps the limits of openapi.json, all else is refused with a status and a sentence.
#include <cstdlib>

#include "fungi/base/utf8.h"
#include "fungi/service/multipart.h"
#include "fungi/service/parse.h"
#include "fungi/service/refused.h"

namespace {

using fungi::Question;
using fungi::WebRequest;

void require(bool promise) {
  if (!promise) std::abort();
}

void search(const WebRequest& request) {
  const fungi::service::ParsedSearch parsed = fungi::service::parse_search(request);
  const fungi::SearchRequest& s = parsed.search;
  require(s.k >= 1 && s.k <= 1000 && !s.features.empty() && s.features.size() <= 8);
  require(s.question.kind == Question::Kind::row || s.question.row == 0);
  for (const std::string& text : {s.store, s.question.id, s.features.front()})
    require(!fungi::first_bad_byte(text));
  if (s.question.kind == Question::Kind::text) require(!fungi::first_bad_byte(s.question.bytes));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  WebRequest request{.method = "POST"};
  request.body.assign(reinterpret_cast<const char*>(data) + 1, size - 1);
  request.content_type = data[0] % 3 == 0   ? "application/json"
                         : data[0] % 3 == 1 ? "multipart/form-data; boundary=XX"
                                            : "multipart/form-data; boundary=\"" + request.body.substr(0, 8);
  try {
    search(request);
  } catch (const fungi::service::Refused& e) {
    require(e.status() >= 400 && e.status() < 500 && !e.message().empty());
  }
  try {
    const auto asked = fungi::service::parse_embedding_request(request);
    require(!asked.input.empty() && asked.input.size() <= 256);
  } catch (const fungi::service::Refused& e) {
    require(e.status() >= 400 && e.status() < 500 && !e.message().empty());
  }
  return 0;
}
