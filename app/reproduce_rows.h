// SPDX-License-Identifier: Apache-2.0
// The paper's numbers with ours beside them: as a table, JSON, and a part of the page.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/reproduce_plan.h"
#include "app/reproduce_run.h"
#include "fungi/report/compared_page.h"

namespace fungi::app {

using Results = std::map<std::pair<std::string, std::string>, RunResult>;  // backbone, data set

const char* protocol_name(Protocol protocol);

struct Row {
  std::string backbone, data, setting, features;
  std::optional<double> paper, ours;
  // Over seeds; none: one seed, or not printed.
  std::optional<double> paper_deviation = {}, deviation = {};
  std::optional<double> difference() const {
    return paper && ours ? std::optional(*ours - *paper) : std::nullopt;
  }
};

std::vector<Row> rows_of(const PaperTable& table, const Results& results);
nlohmann::json to_json(const PaperTable& table, const std::vector<Row>& rows,
                       const Findings& findings, const std::vector<uint64_t>& seeds);
ComparedTable to_page(const PaperTable& table, const std::vector<Row>& rows,
                      const Findings& findings, const std::vector<PlannedPair>& missing);
void print_text(const PaperTable& table, const std::vector<Row>& rows, const Findings& findings);

}  // namespace fungi::app
