// SPDX-License-Identifier: Apache-2.0
// Bodies of multipart/form-data (RFC 7578).
// Internal to this room.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fungi::service {

struct FormField {
  std::string name, file_name;  // as the other side wrote them
  bool is_file = false;
  std::string_view value;  // into the body
};

// The media type alone, in small letters: "multipart/form-data".
std::string media_type(std::string_view content_type);
// Refused (400) where the body is none of that kind.
std::vector<FormField> read_multipart(std::string_view content_type, std::string_view body);

}  // namespace fungi::service
