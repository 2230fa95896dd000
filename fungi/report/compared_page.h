// SPDX-License-Identifier: Apache-2.0
// One page of numbers that somebody has printed beside ours.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace fungi {

struct ComparedNumber {
  std::string backbone, data, setting, features;
  std::optional<double> paper, ours;  // percent
};

struct ComparedTable {
  std::string name, title;
  std::vector<ComparedNumber> numbers = {};
  std::vector<std::string> missing = {}, notes = {};
};

// A self-contained HTML page: a table and a chart (SVG) of each, with what is missing. `warnings`
// stand first: that it is a rehearsal, or another model than the printed numbers are of.
std::string compared_page(const std::string& title, const std::vector<std::string>& warnings,
                          const std::vector<ComparedTable>& tables);

}  // namespace fungi
