// SPDX-License-Identifier: Apache-2.0
// What requests say, as the service understands it. Everything that is wrong is Refused (400),
// naming the field.
// Internal to this room.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fungi/base/view_plan.h"
#include "fungi/service/service.h"

namespace fungi::service {

// Of the query of an address: absent, or a whole number within the limits.
std::optional<std::string> word(const WebRequest& request, const std::string& name);
size_t number(const WebRequest& request, const std::string& name, size_t usual, size_t least,
              size_t most);
// "embedding+kl", whichever of "+", "," and a space (as browsers decode a plus) joins them. "all"
// is everything: empty.
std::string features_expression(std::string text);

// A question may say "file": then the store tells whether it is a picture or a sound.
struct ParsedSearch {
  SearchRequest search;
  bool any_file = false;
  std::optional<std::string> row_id;  // a row by its id
};
ParsedSearch parse_search(const WebRequest& request);

struct EmbeddingRequest {
  std::string model, features;
  std::vector<std::string> input;
  bool base64 = false;
  size_t dimensions = 0;  // 0: all
};
EmbeddingRequest parse_embedding_request(const WebRequest& request);

// The bytes of base64 or of a data URL, of which `type` becomes the media type.
std::string read_base64(std::string_view text, const std::string& param, std::string* type = nullptr);

}  // namespace fungi::service
