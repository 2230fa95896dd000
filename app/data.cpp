// SPDX-License-Identifier: Apache-2.0
// fungi data DIR: which data set lies there, and whether it is whole.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "app/cli.h"
#include "app/data_report.h"
#include "app/features.h"
#include "app/progress.h"

namespace fungi::app {
namespace {

constexpr size_t kClassesShown = 5;

nlohmann::json to_json(const SplitReport& split) {
  nlohmann::json off = nlohmann::json::array();
  for (const ClassCount& c : split.off)
    off.push_back({{"class", c.name}, {"samples", c.here}, {"least", c.least}, {"most", c.most}});
  nlohmann::json out{{"split", split.name},
                     {"samples", split.samples},
                     {"classes", split.classes},
                     {"smallest_class", split.smallest},
                     {"largest_class", split.largest},
                     {"missing", split.missing},
                     {"empty", split.empty},
                     {"damaged", split.damaged},
                     {"examples", split.examples},
                     {"classes_off", off},
                     {"error", split.error},
                     {"whole", split.is_whole()}};
  out["published"] = split.official ? nlohmann::json(*split.official) : nlohmann::json();
  return out;
}

std::string per_class(const SplitReport& split) {
  if (split.classes == 0 || split.largest == 0) return "-";
  return split.smallest == split.largest ? fmt::format("{}", split.smallest)
                                         : fmt::format("{} to {}", split.smallest, split.largest);
}

void print_trouble(const SplitReport& split) {
  if (!split.error.empty()) fmt::print("{}: {}\n", split.name, shown(split.error, true));
  for (const auto& [what, number] :
       {std::pair("missing", split.missing), std::pair("empty", split.empty),
        std::pair("damaged", split.damaged)})
    if (number > 0) fmt::print("{}: {} file(s) {}\n", split.name, number, what);
  for (const std::string& example : split.examples) fmt::print("  {}\n", shown(example));
  for (size_t i = 0; i < std::min(kClassesShown, split.off.size()); ++i) {
    const ClassCount& c = split.off[i];
    fmt::print(
        "{}: class '{}' has {} samples here, {} in the published set\n", split.name, shown(c.name),
        c.here,
        c.least == c.most ? fmt::format("{}", c.most) : fmt::format("{} to {}", c.least, c.most));
  }
  if (split.off.size() > kClassesShown)
    fmt::print("{}: {} more classes have another number of samples\n", split.name,
               split.off.size() - kClassesShown);
}

void print_report(const DataReport& report) {
  if (report.title.empty())
    fmt::print("{}: no published data set; {}\n", shown(report.root.string()), report.kind);
  else
    fmt::print("{} in {}\n", report.title, shown(report.root.string()));
  std::vector<std::vector<std::string>> rows;
  for (const SplitReport& split : report.splits)
    rows.push_back({split.name, fmt::format("{}", split.samples),
                    split.official ? fmt::format("{}", *split.official) : "-",
                    fmt::format("{}", split.classes), per_class(split),
                    split.is_whole() ? (report.title.empty() ? "" : "whole") : "see below"});
  print_table({"split", "samples", "published", "classes", "per class", ""}, rows);
  for (const SplitReport& split : report.splits) print_trouble(split);
  for (const std::string& note : report.notes) fmt::print("{}\n", shown(note));
}

struct Arguments {
  std::string data;
  bool decode = false, json = false;
};

int run(const Arguments& a) {
  const DataReport report = [&] {
    Progress progress("look", a.json);
    return look_at_data(a.data, a.decode,
                        [&](size_t done, size_t total) { progress.update(done, total); });
  }();
  if (a.json) {
    nlohmann::json splits = nlohmann::json::array();
    for (const SplitReport& split : report.splits) splits.push_back(to_json(split));
    print_json({{"set", report.key.empty() ? nlohmann::json() : nlohmann::json(report.key)},
                {"title", report.title},
                {"kind", report.kind},
                {"root", report.root.string()},
                {"whole", report.is_whole()},
                {"splits", splits},
                {"notes", report.notes}});
  } else {
    print_report(report);
  }
  return report.is_whole() ? kOk : kPartial;
}

}  // namespace

Verb add_data(CLI::App& parent, CLI::App*& self) {
  self =
      parent.add_subcommand("data", "Which data set lies in a folder, and what of it is missing");
  auto a = std::make_shared<Arguments>();
  self->add_option("data", a->data, "Folder of a data set as it was downloaded, or any other")
      ->required();
  self->add_flag("--decode", a->decode, "Look into every file, which takes a while");
  self->add_flag("--json", a->json, "Print JSON");
  return [a] { return run(*a); };
}

}  // namespace fungi::app
