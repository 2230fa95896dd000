// SPDX-License-Identifier: Apache-2.0
// `fungi reproduce --json`, and what is looked for in its tables.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

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

}  // namespace fungi::test
