// SPDX-License-Identifier: Apache-2.0
// fungi reproduce [TABLE]: the paper's tables, what they need, and our numbers beside them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "app/features.h"
#include "app/progress.h"
#include "app/reproduce_rows.h"
#include "app/words.h"
#include "fungi/base/atomic_file.h"
#include "fungi/feature/extractor.h"
#include "fungi/report/compared_page.h"

namespace fungi::app {
namespace {

struct Arguments {
  std::string table, preset = "paper", precision = "auto";
  std::vector<std::string> use;  // key=file
  FindOptions find;
  RunOptions run{.work = "reproduce"};
  std::string page;
  ThreadsOption threads;
  bool json = false, plan = false;
};

constexpr const char* kAll = "all";

int list_tables(bool json) {
  nlohmann::json list = nlohmann::json::array();
  for (const PaperTable& t : paper_tables()) {
    list.push_back({{"table", t.name},
                    {"title", t.title},
                    {"protocol", protocol_name(t.protocol)},
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
  if (find_table(name) || name == kAll) return "";
  std::vector<std::string> names;
  for (const PaperTable& t : paper_tables()) names.push_back(t.name);
  return fmt::format("there is no table '{}': choose all, or one of {}", name,
                     fmt::join(names, ", "));
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

Backbone open_backbone(const PaperTable& table, const PaperBackbone& facts,
                       const std::filesystem::path& path, const PaperData& data,
                       const RunOptions& run, Pool& pool) {
  BackboneOptions o;
  o.precision = run.precision;
  o.stated_facts = facts.facts;
  o.stated_facts.insert(data.facts.begin(), data.facts.end());
  if (run.preset == Preset::paper)
    o.stated_facts.erase("activation");  // the preset has its own: backbone_for()
  ExtractorOptions looks;
  looks.objectives = objectives_of(table), looks.preset = run.preset;
  return Backbone::open(path, backbone_for(looks, std::move(o)), pool);
}

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
          backbone.emplace(open_backbone(table, facts, path, paper_data(data), a.run, pool));
          if (const std::string note = other_size(backbone->architecture(), facts); !note.empty())
            note_once(fmt::format("{} is not the paper's model: it{}", path.string(), note));
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

// What it would take, before anything is started.
void plan(const PaperTable& table, const Arguments& a, const Findings& findings,
          nlohmann::json& out) {
  Pool pool(a.threads.count());
  for (const auto& [key, path] : findings.checkpoints) {
    double seconds_per_view = 0;
    for (const auto& [data, found] : findings.data) try {
        if (table.protocol == Protocol::segmentation) continue;  // its views are patches
        const PaperBackbone& facts = paper_backbone(key);
        const Backbone backbone = open_backbone(table, facts, path, paper_data(data), a.run, pool);
        const PlannedRun planned = plan_pair(table, facts, backbone, paper_data(data), found, a.run,
                                             seconds_per_view, pool);
        out.push_back({{"table", table.name},
                       {"backbone", key},
                       {"data", data},
                       {"samples", planned.samples},
                       {"forward_passes", planned.samples * planned.views},
                       {"hours", planned.seconds / 3600}});
        if (!a.json)
          fmt::print("{}: {} on {}: {} samples, {} forward passes{}\n", table.name, key, data,
                     planned.samples, planned.samples * planned.views,
                     planned.seconds > 0 ? ", about " + human_seconds(planned.seconds) : "");
      } catch (const Error& e) {
        if (!a.json) fmt::print("{}: {} on {}: {}\n", table.name, key, data, worded(e).what());
      }
  }
  for (const Absent& m : findings.absent)
    if (!a.json) fmt::print("{}: missing {} {}: {}\n", table.name, m.kind, m.key, m.reason);
}

// What a page says first: nobody shall take its numbers for the paper's protocol where they are
// not.
std::vector<std::string> warnings(const Arguments& a, const std::vector<ComparedTable>& tables) {
  std::vector<std::string> out;
  if (a.run.limit)
    out.push_back(
        fmt::format("A rehearsal: {} samples of each split at most (--limit). These are "
                    "not the paper's data.",
                    a.run.limit));
  for (const ComparedTable& table : tables)
    for (const std::string& note : table.notes)
      if (note.find("is not the paper's model") != std::string::npos &&
          std::find(out.begin(), out.end(), note) == out.end())
        out.push_back(note);
  return out;
}

int run(Arguments& a) {
  if (a.table.empty()) return list_tables(a.json);
  a.run.preset = parse_preset(a.preset);
  if (a.precision != "auto") a.run.precision = parse_precision(a.precision);
  a.run.quiet = a.json;
  for (const std::string& use : a.use) {
    const size_t equals = use.find('=');
    a.find.use[use.substr(0, equals)] = use.substr(equals + 1);
  }
  const bool all = a.table == kAll;
  if (all && a.page.empty() && !a.plan && !a.find.data.empty())
    a.page = (std::filesystem::path(a.run.work) / "reproduce.html").string();
  nlohmann::json printed = nlohmann::json::array();
  std::vector<ComparedTable> page;
  bool went_wrong = false;
  for (const PaperTable& table : paper_tables()) {
    if (!all && table.name != a.table) continue;
    Findings findings = find_for(table, a.find);
    if (a.plan) {
      plan(table, a, findings, printed);
      continue;
    }
    if (a.run.limit)
      findings.notes.push_back(fmt::format(
          "a rehearsal: {} samples of each split at most; not the paper's data", a.run.limit));
    if (table.protocol == Protocol::icl)
      findings.notes.push_back(
          "a language model gives the answers: with --data and --models, 'missing' says how to ask "
          "one with 'fungi prompts', for each number");
    const Results results = compute(table, a, findings);
    const std::vector<Row> rows = rows_of(table, results);
    printed.push_back(to_json(table, rows, findings));
    if (!a.json) print_text(table, rows, findings);
    page.push_back(to_page(table, rows, findings));
    went_wrong = went_wrong ||
                 std::any_of(findings.absent.begin(), findings.absent.end(),
                             [](const Absent& m) { return m.kind == "result"; }) ||
                 std::any_of(results.begin(), results.end(),
                             [](const auto& r) { return r.second.failed > 0; });
    if (!a.page.empty()) {  // after each table: what is interrupted is shown
      std::filesystem::create_directories(std::filesystem::absolute(a.page).parent_path());
      write_file_atomically(a.page,
                            compared_page("The paper beside ours", warnings(a, page), page));
    }
  }
  if (a.json) app::print_json(all || a.plan ? printed : printed.at(0));
  if (!a.page.empty() && !a.json) fmt::print("page: {}\n", shown(a.page));
  return went_wrong ? kPartial : kOk;
}

}  // namespace

Verb add_reproduce(CLI::App& parent, CLI::App*& self) {
  self = parent.add_subcommand(
      "reproduce",
      "The paper's tables beside our numbers, for the data and checkpoints that are there");
  auto a = std::make_shared<Arguments>();
  auto* table = self->add_option("table", a->table,
                                 "Name of a table, or all; without it the tables are listed")
                    ->check(CLI::Validator(require_table, ""));
  self->add_option("--data", a->find.data,
                   "Folder with one folder per data set, each with train and test");
  self->add_option("--models", a->find.models,
                   "Folder with checkpoints, as published; searched with its sub-folders");
  self->add_option("--limit", a->run.limit,
                   "A rehearsal: so many samples of each split, evenly spread; 0 = all")
      ->capture_default_str();
  self->add_flag("--plan", a->plan,
                 "Only say what it would take: samples, forward passes, hours on this machine");
  self->add_option("--page", a->page,
                   "HTML page of paper and ours; of all: reproduce.html in the folder of --work");
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
  for (const char* option : {"--data", "--models", "--use", "--work", "--preset", "--precision",
                             "--seed", "--limit", "--plan", "--page"})
    self->get_option(option)->needs(table);
  self->add_flag("--json", a->json, "Print JSON");
  return [a] { return run(*a); };
}

}  // namespace fungi::app
