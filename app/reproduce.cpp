// SPDX-License-Identifier: Apache-2.0
// fungi reproduce [TABLE]: the paper's tables, what they need, and our numbers beside them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "app/features.h"
#include "app/reproduce_run.h"
#include "app/words.h"
#include "fungi/feature/extractor.h"

namespace fungi::app {
namespace {

struct Arguments {
  std::string table, preset = "paper", precision = "auto";
  std::vector<std::string> use;  // key=file
  FindOptions find;
  RunOptions run{.work = "reproduce"};
  ThreadsOption threads;
  bool json = false;
};

constexpr const char* kProtocols[] = {"knn",       "linear", "clusters",
                                      "retrieval", "icl",    "segmentation"};

int list_tables(bool json) {
  nlohmann::json list = nlohmann::json::array();
  for (const PaperTable& t : paper_tables()) {
    list.push_back({{"table", t.name},
                    {"title", t.title},
                    {"protocol", kProtocols[size_t(t.protocol)]},
                    {"backbones", backbones_of(t)},
                    {"data", data_sets_of(t)},
                    {"numbers", cells_of(t).size()}});
    if (!json)
      fmt::print("{:<12}{}: {} numbers, {} backbones, {} data sets\n", t.name, t.title,
                 cells_of(t).size(), backbones_of(t).size(), data_sets_of(t).size());
  }
  if (json)
    print_json(list);
  else
    fmt::print(
        "fungi reproduce TABLE --data DIR --models DIR computes what is there; without the folders "
        "it says what a table needs\n");
  return kOk;
}

const PaperTable* find_table(const std::string& name) {
  for (const PaperTable& t : paper_tables())
    if (t.name == name) return &t;
  return nullptr;
}

std::string require_table(const std::string& name) {
  if (find_table(name)) return "";
  std::vector<std::string> names;
  for (const PaperTable& t : paper_tables()) names.push_back(t.name);
  return fmt::format("there is no table '{}': choose one of {}", name, fmt::join(names, ", "));
}

// Where the paper's experiments and the model as it was published part; asked of the model that was
// opened, since --use may give any file for a backbone of the paper.
std::vector<const char*> differences(const Backbone& backbone) {
  std::vector<const char*> notes;
  if (backbone.options().mha_input_as_activation)
    notes.push_back(
        "the preset paper takes the LayerNorm's output for the layer's input, as the paper did; "
        "the others its true input (docs/numerics.md)");
  if (backbone.architecture().family == "clip")
    notes.push_back(
        "the preset paper runs it with GELU, as the paper did; the others with QuickGELU, as it "
        "was trained (docs/numerics.md)");
  return notes;
}

// What tells that a file given with --use is another model; empty: nothing.
std::string other_size(const Architecture& a, const PaperBackbone& facts) {
  if (facts.patch == 0)
    return a.width == facts.width
               ? ""
               : fmt::format(" has width {}, {} has {}", a.width, facts.title, facts.width);
  if (a.width == facts.width && a.patch_h == facts.patch) return "";
  return fmt::format(" has width {} and patch {}, {} has {} and {}", a.width, a.patch_h,
                     facts.title, facts.width, facts.patch);
}

using Results =
    std::map<std::pair<std::string, std::string>, RunResult>;  // by backbone and data set

// Everything that is there; what goes wrong with one backbone or data set costs no other.
Results compute(const PaperTable& table, const Arguments& a, Findings& findings) {
  Results results;
  Pool pool(a.threads.count());
  if (findings.data.empty()) return results;
  const auto note_once = [&](const std::string& note) {
    if (std::find(findings.notes.begin(), findings.notes.end(), note) == findings.notes.end())
      findings.notes.push_back(note);
  };
  for (const auto& [key, path] : findings.checkpoints) {
    const PaperBackbone& facts = paper_backbone(key);
    std::optional<Backbone> backbone;
    for (const auto& [data, found] : findings.data) {
      try {
        if (table.protocol == Protocol::segmentation) {
          results[{key, data}] =
              run_segmentation(table, facts, path, paper_data(data), found, a.run, pool);
          continue;
        }
        const StatedFacts& own = paper_data(data).facts;
        if (!backbone || !own.empty()) {
          BackboneOptions o;
          o.precision = a.run.precision;
          o.stated_facts = facts.facts;
          o.stated_facts.insert(own.begin(), own.end());
          if (a.run.preset == Preset::paper)
            o.stated_facts.erase("activation");  // the preset has its own: backbone_for()
          ExtractorOptions looks;
          looks.objectives = objectives_of(table), looks.preset = a.run.preset;
          backbone.emplace(Backbone::open(path, backbone_for(looks, std::move(o)), pool));
          if (const std::string note = other_size(backbone->architecture(), facts); !note.empty())
            note_once(path.string() + note);
          for (const std::string& note : backbone->notes())
            note_once(fmt::format("{}: {}", key, worded(note)));
          for (const char* note : differences(*backbone))
            note_once(fmt::format("{}: {}", key, note));
        }
        results[{key, data}] =
            run_pair(table, facts, *backbone, paper_data(data), found, a.run, pool);
      } catch (const Error& e) {
        findings.absent.push_back({"result", key + " on " + data, "", worded(e).what()});
      }
    }
  }
  for (const auto& [pair, result] : results) {
    const PaperData& data = paper_data(pair.second);
    const bool tested = table.protocol != Protocol::clusters;
    findings.notes.insert(findings.notes.end(), result.notes.begin(), result.notes.end());
    for (const auto& [what, reason] : result.reasons)
      findings.absent.push_back(
          {"result",
           fmt::format("{} on {}, {} {}", pair.first, pair.second, what.first, what.second), "",
           reason});
    for (const auto& [what, how] : result.waiting)
      findings.absent.push_back(
          {"replies", fmt::format("{} on {}, {}", pair.first, pair.second, what.second), "", how});
    if (!data.note.empty()) findings.notes.push_back(fmt::format("{}: {}", data.title, data.note));
    if (result.failed)
      findings.notes.push_back(fmt::format("{} on {}: {} samples failed (failed.jsonl)", pair.first,
                                           pair.second, result.failed));
    if (result.train != data.train || (tested && result.test != data.test))
      findings.notes.push_back(fmt::format(
          "{} on {}: not the paper's data: {} training{} rows here, {}{} there", pair.first,
          pair.second, result.train, tested ? fmt::format(" and {} test", result.test) : "",
          data.train, tested ? fmt::format(" and {}", data.test) : ""));
  }
  return results;
}

struct Row {
  std::string backbone, data, setting, features;
  std::optional<double> paper, ours;
  std::optional<double> difference() const {
    return paper && ours ? std::optional(*ours - *paper) : std::nullopt;
  }
};

std::optional<double> find_result(const Results& results, const PaperCell& c,
                                  const std::string& data) {
  const auto run = results.find({c.backbone, data});
  if (run == results.end()) return {};
  const auto value = run->second.percent.find({c.setting, c.features});
  return value == run->second.percent.end() ? std::nullopt : std::optional(value->second);
}

// The paper's numbers in their order. Under a mean stand our numbers of the data sets it is made
// of; a mean of some of them is not compared.
std::vector<Row> rows_of(const PaperTable& table, const Results& results) {
  const std::vector<std::string> all = data_sets_of(table);
  std::vector<Row> rows;
  for (const PaperCell& c : cells_of(table)) {
    if (c.data != "mean") {
      rows.push_back(
          {c.backbone, c.data, c.setting, c.features, c.value, find_result(results, c, c.data)});
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
    rows.push_back({c.backbone, "mean", c.setting, c.features, c.value,
                    count == all.size() ? std::optional(sum / double(count)) : std::nullopt});
    const bool printed_by_set = table.numbers.starts_with("setting features backbone");
    if (!printed_by_set) rows.insert(rows.end(), parts.begin(), parts.end());
  }
  return rows;
}

nlohmann::json number(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

void print_json(const PaperTable& table, const std::vector<Row>& rows, const Findings& findings) {
  nlohmann::json out{{"table", table.name},
                     {"title", table.title},
                     {"protocol", kProtocols[size_t(table.protocol)]},
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
  app::print_json(out);
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

int run(Arguments& a) {
  if (a.table.empty()) return list_tables(a.json);
  const PaperTable& table = *find_table(a.table);
  a.run.preset = parse_preset(a.preset);
  if (a.precision != "auto") a.run.precision = parse_precision(a.precision);
  a.run.quiet = a.json;
  for (const std::string& use : a.use) {
    const size_t equals = use.find('=');
    a.find.use[use.substr(0, equals)] = use.substr(equals + 1);
  }
  Findings findings = find_for(table, a.find);
  if (table.protocol == Protocol::icl)
    findings.notes.push_back(
        "a language model gives the answers: with --data and --models, 'missing' says how to ask "
        "one with 'fungi prompts', for each number");
  const Results results = compute(table, a, findings);
  const std::vector<Row> rows = rows_of(table, results);
  if (a.json)
    print_json(table, rows, findings);
  else
    print_text(table, rows, findings);
  const bool went_wrong = std::any_of(findings.absent.begin(), findings.absent.end(),
                                      [](const Absent& m) { return m.kind == "result"; }) ||
                          std::any_of(results.begin(), results.end(),
                                      [](const auto& r) { return r.second.failed > 0; });
  return went_wrong ? kPartial : kOk;
}

}  // namespace

Verb add_reproduce(CLI::App& parent, CLI::App*& self) {
  self = parent.add_subcommand(
      "reproduce",
      "The paper's tables beside our numbers, for the data and checkpoints that are there");
  auto a = std::make_shared<Arguments>();
  auto* table =
      self->add_option("table", a->table, "Name of a table; without it the tables are listed")
          ->check(CLI::Validator(require_table, ""));
  self->add_option("--data", a->find.data,
                   "Folder with one folder per data set, each with train and test");
  self->add_option("--models", a->find.models,
                   "Folder with checkpoints, as published; searched with its sub-folders");
  self->add_option("--use", a->use, "BACKBONE=FILE: take this checkpoint for it, whatever its name")
      ->check(assignment("BACKBONE=FILE"));
  self->add_option("--work", a->run.work,
                   "Folder for the features; a repeated command goes on there")
      ->capture_default_str();
  self->add_option("--preset", a->preset, "paper: as the authors' experiments; native, lib")
      ->capture_default_str()
      ->check(CLI::IsMember({"native", "paper", "lib"}));
  self->add_option("--precision", a->precision,
                   "f32, bf16, int8 (bytes in most products: about twice bf16's speed, rougher), "
                   "or auto: bf16 "
                   "where the processor multiplies it faster")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "f32", "bf16", "int8"}));
  self->add_option("--seed", a->run.seed, "Seed of heads, projection, crops and support")
      ->capture_default_str();
  a->threads.add_to(*self);
  for (const char* option :
       {"--data", "--models", "--use", "--work", "--preset", "--precision", "--seed"})
    self->get_option(option)->needs(table);
  self->add_flag("--json", a->json, "Print JSON");
  return [a] { return run(*a); };
}

}  // namespace fungi::app
