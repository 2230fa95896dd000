// SPDX-License-Identifier: Apache-2.0
#include "app/reproduce_rows.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "app/features.h"

namespace fungi::app {
namespace {

constexpr const char* kProtocols[] = {"knn",       "linear", "clusters",
                                      "retrieval", "icl",    "segmentation"};

std::optional<double> find_result(const Results& results, const PaperCell& c,
                                  const std::string& data) {
  const auto run = results.find({c.backbone, data});
  if (run == results.end()) return {};
  const auto value = run->second.percent.find({c.setting, c.features});
  return value == run->second.percent.end() ? std::nullopt : std::optional(value->second);
}

std::optional<double> printed(const PaperCell& c) {
  return std::isnan(c.value) ? std::nullopt : std::optional(c.value);
}

nlohmann::json number(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

}  // namespace

const char* protocol_name(Protocol protocol) { return kProtocols[size_t(protocol)]; }

// The paper's numbers in their order. Under a mean stand our numbers of the data sets it is made
// of; a mean of some of them is not compared.
std::vector<Row> rows_of(const PaperTable& table, const Results& results) {
  const std::vector<std::string> all = data_sets_of(table);
  std::vector<Row> rows;
  for (const PaperCell& c : cells_of(table)) {
    if (c.data != "mean") {
      rows.push_back(
          {c.backbone, c.data, c.setting, c.features, printed(c), find_result(results, c, c.data)});
      continue;
    }
    double sum = 0;
    size_t count = 0;
    std::vector<Row> parts;
    for (const std::string& data : all)
      if (const auto ours = find_result(results, c, data)) {
        sum += *ours, ++count;
        parts.push_back({c.backbone, data, c.setting, c.features, {}, ours});
      }
    rows.push_back({c.backbone, "mean", c.setting, c.features, printed(c),
                    count == all.size() ? std::optional(sum / double(count)) : std::nullopt});
    const bool printed_by_set = table.numbers.starts_with("setting features backbone");
    if (!printed_by_set) rows.insert(rows.end(), parts.begin(), parts.end());
  }
  return rows;
}

nlohmann::json to_json(const PaperTable& table, const std::vector<Row>& rows,
                       const Findings& findings) {
  nlohmann::json out{{"table", table.name},
                     {"title", table.title},
                     {"protocol", protocol_name(table.protocol)},
                     {"rows", nlohmann::json::array()},
                     {"missing", nlohmann::json::array()},
                     {"notes", findings.notes}};
  for (const Row& r : rows)
    out["rows"].push_back({{"backbone", r.backbone},
                           {"data", r.data},
                           {"setting", r.setting},
                           {"features", r.features},
                           {"paper", number(r.paper)},
                           {"ours", number(r.ours)},
                           {"difference", number(r.difference())}});
  for (const Absent& m : findings.absent)
    out["missing"].push_back(
        {{"kind", m.kind}, {"key", m.key}, {"title", m.title}, {"reason", m.reason}});
  return out;
}

ComparedTable to_page(const PaperTable& table, const std::vector<Row>& rows,
                      const Findings& findings) {
  ComparedTable out{table.name, table.title};
  for (const Row& r : rows)
    out.numbers.push_back({r.backbone, r.data, r.setting, r.features, r.paper, r.ours});
  for (const Absent& m : findings.absent)
    out.missing.push_back(fmt::format("{} {}: {}", m.kind, m.key, m.reason));
  out.notes = findings.notes;
  return out;
}

void print_text(const PaperTable& table, const std::vector<Row>& rows, const Findings& findings) {
  const auto text = [](const std::optional<double>& value, const char* format) {
    return value ? fmt::format(fmt::runtime(format), *value) : std::string("-");
  };
  std::vector<std::vector<std::string>> lines;
  for (const Row& r : rows)
    lines.push_back({r.backbone, r.data, r.setting, r.features, text(r.paper, "{:.1f}"),
                     text(r.ours, "{:.2f}"), text(r.difference(), "{:+.2f}")});
  fmt::print("{} (percent)\n", table.title);
  print_table({"backbone", "data", "setting", "features", "paper", "ours", "difference"}, lines);
  if (!findings.absent.empty()) fmt::print("\nmissing:\n");
  for (const Absent& m : findings.absent)
    fmt::print("  {} {}{}: {}\n", m.kind, m.key,
               m.title.empty() ? "" : fmt::format(" ({})", m.title), m.reason);
  if (!findings.notes.empty()) fmt::print("\nnotes:\n");
  for (const std::string& note : findings.notes) fmt::print("  {}\n", note);
}

}  // namespace fungi::app
