// SPDX-License-Identifier: Apache-2.0
// Real weights and photographs, which the repository does not hold: the folder named by the
// environment variable FUNGI_DATA, or else ../shared/data beside the sources. Tests that want what
// is not there are skipped and say so.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace fungi::test {

inline std::filesystem::path data_folder() {
  const char* given = std::getenv("FUNGI_DATA");
  if (given && *given) return given;
  return FUNGI_SOURCE_DIR "/../shared/data";
}

// Why a test is skipped.
inline std::string missing_data(const std::filesystem::path& path) {
  return "needs " + path.lexically_normal().string() +
         "; set the environment variable FUNGI_DATA to the folder that has such data";
}

}  // namespace fungi::test
