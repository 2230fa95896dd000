// SPDX-License-Identifier: Apache-2.0
// The files of web/ and openapi.json, which cmake/service.cmake compiles in.
// Internal to this room.
#pragma once

#include <span>
#include <string_view>

namespace fungi::service {

struct PageFile {
  std::string_view path, type, bytes;
};
std::span<const PageFile> page_files();

}  // namespace fungi::service
