// SPDX-License-Identifier: Apache-2.0
#include "app/reproduce_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/features.h"
#include "fungi/evaluate/seeds.h"

namespace fungi::app {
namespace {

constexpr const char* kProtocols[] = {"knn", "linear",       "clusters", "retrieval",
                                      "icl", "segmentation", "cka"};

const std::vector<double>* find_values(const Results& results, const std::string& backbone,
                                       const std::string& data, const CellKey& key) {
  const auto run = results.find({backbone, data});
  if (run == results.end()) return nullptr;
  const auto values = run->second.values.find(key);
  return values == run->second.values.end() ? nullptr : &values->second;
}

// What a cell that stands for many stands for; nothing is known before it is computed.
std::vector<CellKey> find_many(const Results& results, const PaperCell& c) {
  const auto run = results.find({c.backbone, c.data});
  if (run == results.end()) return {};
  const auto keys = run->second.many.find({c.setting, c.features});
  return keys == run->second.many.end() ? std::vector<CellKey>{} : keys->second;
}

std::optional<double> printed(double value) {
  return std::isnan(value) ? std::nullopt : std::optional(value);
}

Row row_of(const PaperCell& c, const std::string& data, const CellKey& key,
           const std::vector<double>* values) {
  Row row{c.backbone, data, key.first, key.second, {}, {}};
  if (!values) return row;
  const Spread spread = spread_of(*values);
  row.ours = spread.mean;
  if (values->size() > 1) row.deviation = spread.deviation;
  return row;
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
  const std::vector<PaperCell> cells = cells_of(table);
  const bool by_set = std::any_of(cells.begin(), cells.end(), [](const PaperCell& c) {
    return !is_mean(c.data) && c.data != kMachine;
  });
  std::vector<Row> rows;
  const auto add = [&](const PaperCell& c, Row row) {
    row.paper = printed(c.value), row.paper_deviation = printed(c.deviation);
    rows.push_back(std::move(row));
  };
  for (const PaperCell& c : cells) {
    const CellKey key{c.setting, c.features};
    const std::vector<CellKey> many = find_many(results, c);
    for (const CellKey& one : many)
      add(c, row_of(c, c.data, one, find_values(results, c.backbone, c.data, one)));
    if (!many.empty()) continue;
    if (!is_mean(c.data)) {
      add(c, row_of(c, c.data, key, find_values(results, c.backbone, c.data, key)));
      continue;
    }
    std::vector<double> mean;  // of each seed
    size_t count = 0;
    std::vector<Row> parts;
    for (const std::string& data : all)
      if (const std::vector<double>* ours = find_values(results, c.backbone, data, key)) {
        mean.resize(ours->size());
        for (size_t i = 0; i < mean.size(); ++i) mean[i] += (*ours)[i] / double(all.size());
        ++count;
        parts.push_back(row_of(c, data, key, ours));
      }
    const bool whole = count == all.size() && c.data == "mean";
    add(c, row_of(c, c.data, key, whole ? &mean : nullptr));
    if (!by_set) rows.insert(rows.end(), parts.begin(), parts.end());
  }
  return rows;
}

nlohmann::json to_json(const PaperTable& table, const std::vector<Row>& rows,
                       const Findings& findings, const std::vector<uint64_t>& seeds) {
  nlohmann::json out{{"table", table.name},
                     {"title", table.title},
                     {"protocol", protocol_name(table.protocol)},
                     {"rows", nlohmann::json::array()},
                     {"missing", nlohmann::json::array()},
                     {"seeds", seeds},
                     {"notes", findings.notes}};
  for (const Row& r : rows) {
    nlohmann::json row{{"backbone", r.backbone},
                       {"data", r.data},
                       {"setting", r.setting},
                       {"features", r.features},
                       {"paper", number(r.paper)},
                       {"ours", number(r.ours)},
                       {"difference", number(r.difference())}};
    if (r.paper_deviation) row["paper_deviation"] = *r.paper_deviation;
    if (r.deviation) row["deviation"] = *r.deviation;
    out["rows"].push_back(std::move(row));
  }
  for (const Absent& m : findings.absent)
    out["missing"].push_back(
        {{"kind", m.kind}, {"key", m.key}, {"title", m.title}, {"reason", m.reason}});
  return out;
}

ComparedTable to_page(const PaperTable& table, const std::vector<Row>& rows,
                      const Findings& findings, const std::vector<PlannedPair>& missing) {
  ComparedTable out{.name = table.name, .title = table.title, .figure = table.figure};
  for (const Row& r : rows) {
    const bool known = r.data != kMachine && !is_mean(r.data);
    out.numbers.push_back({.backbone = r.backbone,
                           .data = known                ? paper_data(r.data).title
                                   : r.data == kMachine ? "this machine"
                                                        : r.data,
                           .setting = r.setting,
                           .features = r.features,
                           .unit = is_rate(r.setting) ? "per second" : "percent",
                           .paper = r.paper,
                           .ours = r.ours,
                           .paper_deviation = r.paper_deviation,
                           .deviation = r.deviation});
  }
  for (const Absent& m : findings.absent)
    out.missing.push_back({.what = fmt::format("{} {}", m.kind, m.key),
                           .reason = m.reason,
                           .cost = cost_of(m, missing, findings).text_if_any()});
  out.cost = sum_of(missing).text_if_any();
  out.notes = findings.notes;
  if (!table.note.empty()) out.notes.insert(out.notes.begin(), table.note);
  return out;
}

void print_text(const PaperTable& table, const std::vector<Row>& rows, const Findings& findings) {
  const auto text = [](const std::optional<double>& value, const char* format) {
    return value ? fmt::format(fmt::runtime(format), *value) : std::string("-");
  };
  std::vector<std::vector<std::string>> lines;
  for (const Row& r : rows)
    lines.push_back(
        {r.backbone, r.data, r.setting, r.features,
         text(r.paper, "{:.1f}") + (r.paper_deviation ? text(r.paper_deviation, "±{:.1f}") : ""),
         text(r.ours, "{:.2f}") + (r.deviation ? text(r.deviation, "±{:.2f}") : ""),
         text(r.difference(), "{:+.2f}")});
  fmt::print("{} (percent{})\n", table.title,
             std::any_of(rows.begin(), rows.end(), [](const Row& r) { return is_rate(r.setting); })
                 ? ", or per second"
                 : "");
  print_table({"backbone", "data", "setting", "features", "paper", "ours", "difference"}, lines);
  if (!findings.absent.empty()) fmt::print("\nmissing:\n");
  for (const Absent& m : findings.absent)
    fmt::print("  {} {}{}: {}\n", m.kind, m.key,
               m.title.empty() ? "" : fmt::format(" ({})", m.title), m.reason);
  if (!findings.notes.empty()) fmt::print("\nnotes:\n");
  for (const std::string& note : findings.notes) fmt::print("  {}\n", note);
}

}  // namespace fungi::app
