// SPDX-License-Identifier: Apache-2.0
// `fungi reproduce --json`, and what is looked for in its tables.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/support/command.h"

namespace fungi::test {

using nlohmann::json;

inline json reproduce(const std::string& arguments, int status = 0) {
  const auto o = run_fungi("reproduce --json " + arguments);
  EXPECT_EQ(o.status, status) << o.err << o.out;
  return json::parse(o.out);
}

inline json row_of(const json& table, const std::string& backbone, const std::string& data,
                   const std::string& setting, const std::string& features) {
  for (const json& row : table["rows"])
    if (row["backbone"] == backbone && row["data"] == data && row["setting"] == setting &&
        row["features"] == features)
      return row;
  ADD_FAILURE() << "no row " << backbone << " " << data << " " << setting << " " << features;
  return {};
}

inline std::string reason_for(const json& table, const std::string& key) {
  for (const json& m : table["missing"])
    if (m["key"] == key) return m["reason"];
  return "";
}

// In an order that does not depend on the file system.
inline std::set<std::filesystem::path> entries(const std::filesystem::path& folder) {
  std::set<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.insert(entry.path());
  return paths;
}

// The first pictures of some classes of the demo.
inline void link_pictures(const std::string& split, size_t classes, size_t each,
                          const std::filesystem::path& to) {
  for (const auto& folder :
       entries(std::filesystem::path(FUNGI_SOURCE_DIR) / "demo/images" / split)) {
    if (classes-- == 0) break;
    std::filesystem::create_directories(to / folder.filename());
    size_t left = each;
    for (const auto& file : entries(folder))
      if (left-- > 0)
        std::filesystem::create_symlink(std::filesystem::absolute(file),
                                        to / folder.filename() / file.filename());
      else
        break;
  }
}

}  // namespace fungi::test
